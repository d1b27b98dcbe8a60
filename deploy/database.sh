#!/bin/sh
# PostgreSQL in the foreground, for one program on the same machine: no network, no password, a socket in /run/postgresql.
# The first time its folder is made: under another name, so that it is whole or not there.
set -eu

data=/var/lib/postgresql/data
draft=$data.new

if [ ! -s "$data/PG_VERSION" ]; then
    rm -rf "$draft"
    initdb --pgdata="$draft" --username=postgres --auth-local=peer --auth-host=reject \
        --encoding=UTF8 --locale=C.UTF-8 --data-checksums
    echo 'CREATE ROLE desk LOGIN;' | postgres --single -j -D "$draft" postgres >/dev/null
    echo 'CREATE DATABASE desk OWNER desk;' | postgres --single -j -D "$draft" postgres >/dev/null
    mv "$draft" "$data"
fi

# As the first process of its container it always has the same number, so a lock that a crash left behind is its own.
exec postgres -D "$data" -c listen_addresses= -c unix_socket_directories=/run/postgresql
