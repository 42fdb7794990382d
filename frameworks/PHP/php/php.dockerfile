FROM debian:trixie-slim
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends nginx php-apcu php-fpm php-pgsql \
    && useradd --system --no-create-home app
WORKDIR /app
COPY start.sh nginx.conf php-fpm.conf ./
COPY public public
COPY src src
USER app
EXPOSE 8080
CMD ["bash", "start.sh"]
