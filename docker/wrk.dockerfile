# Debian's wrk with the scripts of toolset/wrk in the working directory. Context: toolset/.
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
