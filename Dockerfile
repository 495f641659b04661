FROM node:20-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm run build

FROM node:20-slim
ENV NODE_ENV=production EOD_HTTP_HOST=0.0.0.0 EOD_HTTP_PORT=8080
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without optional packages there is no private Postgres in the image: its data would go when the
# container goes. DATABASE_URL is therefore needed here, and eod says so when it is missing.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
COPY bin bin
COPY migrations migrations
COPY --from=build /app/dist dist
USER node
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.EOD_HTTP_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "bin/eod.mjs"]
CMD ["up"]
