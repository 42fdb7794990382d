# Contains Debian's wrk, and the scripts from toolset/wrk in the working directory. The build context is toolset/.
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
