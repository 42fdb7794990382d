# Contains a run's PostgreSQL server with a cluster that has already been seeded by toolset/database, so a container
# starts in about a second. The build context is the repository.
FROM debian:trixie-slim
ARG DEBIAN_FRONTEND=noninteractive

# Install postgresql-common first, so that its configuration can prevent the server's package from creating a cluster.
RUN apt-get update \
    && apt-get install -y --no-install-recommends postgresql-common \
    && sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && apt-get install -y --no-install-recommends postgresql-17 \
    && rm -rf /var/lib/apt/lists/*

ENV PATH=/usr/lib/postgresql/17/bin:$PATH \
    SEED=/usr/share/tfb/seed \
    PGDATA=/var/lib/postgresql/data \
    PGPORT=5432
# At run time, a tmpfs covers /var/lib/postgresql and /run/postgresql. The tmpfs belongs to root but keeps the mode of
# the covered folder, so this mode must let postgres write.
RUN install -d -o postgres -g postgres -m 0700 "$SEED" && chmod 1777 /var/lib/postgresql /run/postgresql
USER postgres

COPY toolset/database/ /usr/share/tfb/database/
COPY docker/pg_hba.conf /usr/share/tfb/
# These steps match those in harness/runtime/database. pg_stat_statements always counts statements, so a server cannot
# tell verification from a load. To restore the database, restore.sql copies the template.
RUN initdb --pgdata="$SEED" --username=tfb_admin --no-sync --locale=C.UTF-8 --encoding=UTF8 --auth=trust >/dev/null \
    && cd /usr/share/tfb/database \
    && cat postgresql.conf statistics.conf >"$SEED/postgresql.conf" \
    && pg_ctl --pgdata="$SEED" --wait --silent --options="-c listen_addresses='' -c unix_socket_directories=/tmp" start \
    && psql="psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --host=/tmp --username=tfb_admin" \
    && $psql --file=role.sql postgres \
    && $psql --file=schema.sql --file=seed.sql --file=orders.sql --file=statistics.sql --file=private.sql hello_world \
    && $psql --file=template.sql postgres \
    && pg_ctl --pgdata="$SEED" --wait --silent --mode=fast stop \
    && cp /usr/share/tfb/pg_hba.conf "$SEED/pg_hba.conf"

COPY docker/start-postgres /usr/local/bin/
EXPOSE 5432
STOPSIGNAL SIGINT
ENTRYPOINT ["start-postgres"]
