# The load generator: Debian's wrk and the project's scripts, in the folder it starts in. Context: toolset/.
FROM debian:trixie-slim
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends wrk \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /toolset/wrk
COPY wrk/ ./
USER nobody
ENTRYPOINT ["wrk"]
CMD ["--version"]
