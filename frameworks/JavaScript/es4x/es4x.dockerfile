FROM debian:trixie-slim AS build
# The apt setting docker-clean would empty the cache mount, so remove it.
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && mkdir -p /usr/share/man/man1 \
    && apt-get install -y --no-install-recommends ca-certificates-java maven nodejs npm openjdk-25-jre-headless \
    && ln -s /usr/lib/jvm/java-25-openjdk-* /usr/lib/jvm/java-25
# Maven runs so briefly that it needs only half the CPU time without the C2 compiler.
ENV JAVA_HOME=/usr/lib/jvm/java-25 MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" \
    NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci
# Maven only collects the jars.
COPY pom.xml .
RUN --mount=type=cache,target=/root/.m2 mvn -q -B -C package

FROM debian:trixie-slim
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && mkdir -p /usr/share/man/man1 \
    && apt-get install -y --no-install-recommends openjdk-25-jre-headless
RUN useradd --system --no-create-home app
WORKDIR /app
COPY --from=build /app/target/graal target/graal
COPY --from=build /app/target/lib target/lib
COPY --from=build /app/node_modules node_modules
COPY java.args *.mjs ./
COPY views views
# Truffle unpacks a native library into the user's cache, but this user has no home directory.
ENV XDG_CACHE_HOME=/tmp
USER app
EXPOSE 8080
CMD ["java", "@java.args"]
