# Contains tfb with PostgreSQL and wrk, and the implementations from the same commit. The build context is the
# repository, with the wheel in dist/.
FROM debian:trixie-slim
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates postgresql-common \
    && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf \
    && apt-get install -y --no-install-recommends git postgresql python3-venv wrk \
    && rm -rf /var/lib/apt/lists/*
# pip must also trust the system's certificates.
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
RUN --mount=type=bind,source=requirements.lock,target=/build/requirements.lock \
    --mount=type=bind,source=dist,target=/build/dist \
    python3 -m venv /opt/tfb \
    && /opt/tfb/bin/pip install --quiet --no-cache-dir --require-hashes --only-binary :all: -r /build/requirements.lock \
    && /opt/tfb/bin/pip install --quiet --no-cache-dir --no-deps /build/dist/tfb-*"_$(uname -m).whl" \
    && ln -s /opt/tfb/bin/tfb /usr/local/bin/tfb \
    && useradd --create-home tfb \
    && install -d -o tfb -g tfb /srv/tfb /results
WORKDIR /srv/tfb
# With these links, tfb treats the folder as a clone of this project and applies the project's stricter rules to
# implementations.
RUN ln -s /opt/tfb/bin/tfb tfb \
    && ln -s /opt/tfb/lib/python3*/site-packages/harness harness
COPY --chown=tfb:tfb frameworks frameworks
# Root is needed only to install toolchains: docker run --user root … --yes
USER tfb
ENTRYPOINT ["tfb"]
CMD ["--help"]
