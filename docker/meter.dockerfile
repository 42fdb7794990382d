# Contains the meter that measures a container on a remote machine. The build context is the repository, or the same
# files in a wheel.
FROM debian:trixie-slim
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*
COPY toolset/meter/meter.py toolset/meter/link.py /
COPY harness/errors.py /harness/
COPY harness/host/metering.py harness/host/sockets.py /harness/host/
ENTRYPOINT ["python3", "-S", "/meter.py"]
