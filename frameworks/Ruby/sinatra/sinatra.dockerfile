FROM debian:trixie-slim
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && apt-get install -y --no-install-recommends puma ruby-sequel-pg ruby-sinatra \
    && useradd --system --no-create-home app
WORKDIR /app
COPY *.rb config.ru ./
COPY views views
USER app
EXPOSE 8080
CMD ["puma", "-C", "puma.rb"]
