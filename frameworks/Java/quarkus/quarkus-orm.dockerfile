FROM debian:trixie-slim AS build
# The apt setting docker-clean would empty the cache mount, so remove it.
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && mkdir -p /usr/share/man/man1 \
    && apt-get install -y --no-install-recommends ca-certificates-java openjdk-25-jdk-headless maven \
    && ln -s /usr/lib/jvm/java-25-openjdk-* /usr/lib/jvm/java-25
ENV JAVA_HOME=/usr/lib/jvm/java-25 MAVEN_ARGS="-Dmaven.repo.local=/m2"
WORKDIR /app
COPY pom.xml build ./
COPY src src
RUN --mount=type=cache,target=/m2 ./build orm

FROM debian:trixie-slim
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt,sharing=locked \
    rm -f /etc/apt/apt.conf.d/docker-clean \
    && apt-get update \
    && mkdir -p /usr/share/man/man1 \
    && apt-get install -y --no-install-recommends openjdk-25-jre-headless
RUN useradd --system --no-create-home app
WORKDIR /app
COPY java.args .
COPY --from=build /app/target/orm/quarkus-app target/orm/quarkus-app
USER app
EXPOSE 8080
CMD ["java", "@java.args", "-jar", "target/orm/quarkus-app/quarkus-run.jar"]
