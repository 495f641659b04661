# docker build --build-arg REVISION=$(git rev-parse HEAD) --build-arg CREATED=$(date -u +%FT%TZ) -t eod-pipeline .
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
# The commit, for `eod --version` and the label: the image has no git.
ARG REVISION=""
RUN REVISION="$REVISION" npm run build

FROM node:24-slim
ENV NODE_ENV=production EOD_HTTP_HOST=0.0.0.0 EOD_HTTP_PORT=8080
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without optional packages there is no private Postgres in the image: its data would be lost with
# the container. So DATABASE_URL is required here, and eod reports it when it is missing.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
COPY LICENSE .env.example ./
COPY bin bin
COPY migrations migrations
COPY --from=build /app/dist dist
ARG REVISION=""
ARG CREATED=""
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="eod-pipeline" \
      org.opencontainers.image.description="Pulls end-of-day data of the Indian exchanges into Postgres" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# By number, so that a cluster can tell that it is not root.
USER 1000
EXPOSE 8080
# By bash, because a Node process every 15 seconds takes more of the processor than eod does between the nights. The
# image has no curl or wget.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$EOD_HTTP_PORT && printf 'GET /healthz HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["node", "bin/eod.mjs"]
CMD ["up"]
