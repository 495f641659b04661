# docker build --build-arg REVISION=$(git rev-parse HEAD) -t eod-pipeline .
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
# The commit, for `eod --version` and the label: there is no git in here.
ARG REVISION=""
RUN REVISION="$REVISION" npm run build

FROM node:24-slim
ENV NODE_ENV=production EOD_HTTP_HOST=0.0.0.0 EOD_HTTP_PORT=8080
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without optional packages there is no private Postgres in the image: its data would go when the
# container goes. DATABASE_URL is therefore needed here, and eod says so when it is missing.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
COPY LICENSE .env.example ./
COPY bin bin
COPY migrations migrations
COPY --from=build /app/dist dist
ARG REVISION=""
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="eod-pipeline" \
      org.opencontainers.image.description="Pulls end-of-day data of the Indian exchanges into Postgres" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# By number, so that a cluster can tell that it is not root.
USER 1000
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.EOD_HTTP_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "bin/eod.mjs"]
CMD ["up"]
