FROM debian:trixie-slim AS build
# The apt setting docker-clean would empty the cache mount, so remove it.
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates nodejs npm
# Make npm trust the system's certificates, too.
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci

# The server's Node.js is itself an npm package. Debian's Node.js only installs the packages.
FROM debian:trixie-slim
RUN useradd --system --no-create-home app
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY package.json start.sh *.js ./
COPY views views
COPY tuned tuned
USER app
EXPOSE 8080
CMD ["sh", "start.sh", "tuned"]
