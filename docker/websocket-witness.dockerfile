# Contains the WebSocket witness. The build context is toolset/.
FROM debian:trixie-slim AS build
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates cargo \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY websocket-witness/ ./
RUN cargo build --release --locked

FROM debian:trixie-slim
COPY --from=build /build/target/release/websocket-witness /usr/local/bin/
USER nobody
ENTRYPOINT ["websocket-witness"]
