FROM debian:trixie-slim AS build
# The apt setting docker-clean would empty the cache mount, so remove it.
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3-venv
# Make pip trust the system's certificates, too.
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app
COPY requirements.lock build.sh ./
RUN --mount=type=cache,target=/root/.cache/pip sh build.sh

FROM debian:trixie-slim
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && useradd --system --no-create-home app
WORKDIR /app
COPY --from=build /app/.venv .venv
COPY *.py start-uvicorn.sh ./
COPY templates templates
ENV PYTHONDONTWRITEBYTECODE=1
USER app
EXPOSE 8080
CMD ["sh", "start-uvicorn.sh"]
