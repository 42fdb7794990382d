# Contains Debian's wrk and h2load, and the scripts from toolset/wrk in the working directory. The build context is
# toolset/.
FROM debian:trixie-slim
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends nghttp2-client wrk \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /toolset/wrk
COPY wrk/ ./
COPY h2load/h2load-timed /usr/local/bin/
USER nobody
ENTRYPOINT ["wrk"]
CMD ["--version"]
