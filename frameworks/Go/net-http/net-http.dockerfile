FROM debian:trixie-slim AS build
# Go 1.26 comes from Debian's backports. The apt setting docker-clean would empty the cache mount, so remove it.
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && sed -i 's/^Suites: trixie trixie-updates$/& trixie-backports/' /etc/apt/sources.list.d/debian.sources \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates golang-1.26-go
ENV PATH=/usr/lib/go-1.26/bin:$PATH GOTOOLCHAIN=local CGO_ENABLED=0
WORKDIR /app
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/root/go/pkg/mod go mod download
COPY *.go fortunes.html ./
RUN --mount=type=cache,target=/root/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -o server .

FROM debian:trixie-slim
RUN useradd --system --no-create-home app
WORKDIR /app
COPY --from=build /app/server server
USER app
EXPOSE 8080
CMD ["./server"]
