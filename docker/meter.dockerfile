# The reader of what a container uses, on the machine where it runs. Context: toolset/.
FROM debian:trixie-slim
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*
COPY meter/meter.py meter/link.py /
ENTRYPOINT ["python3", "-S", "/meter.py"]
