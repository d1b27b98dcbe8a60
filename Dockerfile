# Two images on one small Debian: `application`, the desk, and `database`, its PostgreSQL from Debian's packages.
# Packages are fetched while an image is built, never while a container runs. docs/deployment.md says how to use them.

ARG BASE=debian:bookworm-slim

FROM ${BASE} AS database
ARG POSTGRESQL=15
# Whoever is desk (10001) in the application is desk here: the socket tells who comes, and no password is needed.
RUN groupadd --gid 10001 desk \
    && useradd --uid 10001 --gid desk --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin desk \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-common \
    && sed -i 's/^#* *create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "postgresql-${POSTGRESQL}" \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o postgres -g postgres -m 0755 /run/postgresql \
    && install -d -o postgres -g postgres -m 0700 /var/lib/postgresql
ENV PATH=/usr/lib/postgresql/${POSTGRESQL}/bin:/usr/local/bin:/usr/bin:/bin
COPY deploy/database.sh /usr/local/share/vrbot/database.sh
USER postgres
WORKDIR /var/lib/postgresql
VOLUME ["/var/lib/postgresql", "/run/postgresql"]
# Connections are ended and all is written down; the usual signal would wait until everybody has gone.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["pg_isready", "--quiet", "--host=/run/postgresql", "--username=postgres", "--dbname=desk"]
ENTRYPOINT ["sh", "/usr/local/share/vrbot/database.sh"]

FROM ${BASE} AS build
# What pip reads by itself, for who has an index of their own; this stage is no part of an image.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates python3.11-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3.11 -m venv /usr/local/lib/vrbot
WORKDIR /source
# torch comes first and alone, so that a change of ours does not fetch it again; deploy/wheels may hold a wheel of it.
ARG TORCH=2.13.0
COPY deploy/wheels wheels
RUN /usr/local/lib/vrbot/bin/pip install --find-links wheels "torch==${TORCH}"
ARG EXTRAS=bert,postgres
COPY pyproject.toml versions.txt README.md LICENSE ./
COPY src src
RUN /usr/local/lib/vrbot/bin/pip install --find-links wheels --constraint versions.txt ".[${EXTRAS}]"

FROM ${BASE} AS application
RUN groupadd --gid 10001 desk \
    && useradd --uid 10001 --gid desk --no-create-home --home-dir /var/lib/vrbot --shell /usr/sbin/nologin desk \
    && install -d -o desk -g desk -m 0700 /var/lib/vrbot /witness /backups \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.11 tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/lib/vrbot /usr/local/lib/vrbot
ENV PATH=/usr/local/lib/vrbot/bin:/usr/local/bin:/usr/bin:/bin
USER 10001:10001
WORKDIR /var/lib/vrbot
VOLUME ["/var/lib/vrbot", "/witness", "/backups"]
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "from http.client import HTTPConnection as To; to = To('127.0.0.1', 8080, timeout=4); to.request('GET', '/livez'); raise SystemExit(to.getresponse().status != 200)"]
# tini is the first process: a container that is stopped while its model is loading stops at once.
ENTRYPOINT ["tini", "--", "vrbot"]
CMD ["serve", "/models/current", "--host", "0.0.0.0", "--port", "8080", "--database", "/var/lib/vrbot/desk.sqlite", "--witness", "/witness/desk.witness"]
