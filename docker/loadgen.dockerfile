# Contains the load generator and the upstream server for the fan-out test. The build context is toolset/.
FROM debian:trixie-slim AS build
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates cargo \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY loadgen/ loadgen/
COPY upstream/ upstream/
RUN for crate in loadgen upstream; do \
        cargo build --release --locked --manifest-path "$crate/Cargo.toml" --target-dir target || exit 1; \
    done

FROM debian:trixie-slim
COPY --from=build /build/target/release/loadgen /build/target/release/upstream /usr/local/bin/
USER nobody
ENTRYPOINT ["loadgen"]
CMD ["--help"]
