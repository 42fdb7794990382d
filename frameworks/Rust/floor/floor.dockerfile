FROM debian:trixie-slim AS build
# rustc and cargo come from Debian's backports. The apt setting docker-clean would empty the cache mount, so remove it.
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && sed -i 's/^Suites: trixie trixie-updates$/& trixie-backports/' /etc/apt/sources.list.d/debian.sources \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev \
    && apt-get install -y --no-install-recommends --target-release trixie-backports cargo rustc
ENV CARGO_HTTP_CAINFO=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app
COPY Cargo.toml Cargo.lock ./
COPY src src
RUN --mount=type=cache,target=/root/.cargo/registry --mount=type=cache,target=/app/target \
    cargo build --release --locked && cp target/release/server server

FROM debian:trixie-slim
RUN useradd --system --no-create-home app
WORKDIR /app
COPY --from=build /app/server server
USER app
EXPOSE 8080
CMD ["./server"]
