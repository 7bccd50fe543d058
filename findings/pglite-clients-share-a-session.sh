#!/usr/bin/env bash
# Two clients of PGlite's server are one session of PostgreSQL: both get the same lock, and the settings of each other.
#
# Guess: with more than one connection allowed, each client is a session of its own; while one is in a transaction, the
# statements of the others wait. What happens: they wait, and they are one session, which the package calls a multiplexer
# for which not all use cases are guaranteed to work. An advisory lock that one client holds is granted to the other as
# well, and a time zone that one sets decides the days of the other.
#
# Why it matters to a ranking service: PGlite is what tests use where no PostgreSQL is installed. Tests of a leader's
# lock pass there with two leaders, and the day on which a result counts depends on what another client has set. Tests
# of what sessions do to each other need PostgreSQL itself.
set -euo pipefail
folder=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server"; fi; rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" \
    @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 > "$folder/npm"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check asyncpg==0.32.0
"$folder/node_modules/.bin/pglite-server" --path "$folder/.s.PGSQL.5432" --max-connections 4 > "$folder/said" 2>&1 &
server=$!
for _ in $(seq 600); do
    if grep -q listening "$folder/said"; then break; fi
    sleep 0.2
done
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import asyncio
import sys

import asyncpg

LOCK = "SELECT pg_try_advisory_lock(7)"
DAY = "SELECT ('2026-11-30 20:00Z'::timestamptz)::date::text"


async def connected():
    return await asyncpg.connect(
        host=sys.argv[1], user="postgres", database="postgres", statement_cache_size=0, timeout=60, command_timeout=60
    )


async def seen():
    leader, other = await connected(), await connected()
    print((await leader.fetchval("SELECT version()")).partition(" on ")[0])
    locks = [await leader.fetchval(LOCK), await other.fetchval(LOCK)]
    print(f"A lock of which there is one: the first client gets it: {locks[0]}, and the second: {locks[1]}")
    days = [await other.fetchval(DAY)]
    await leader.execute("SET TimeZone = 'Asia/Tokyo'")
    days.append(await other.fetchval(DAY))
    print(f"The day of 20:00 UTC, for the second client: {days[0]}; after the first has set a time zone: {days[1]}")
    leader.terminate()
    other.terminate()
    return locks == [True, True] and days == ["2026-11-30", "2026-12-01"]


sys.exit(0 if asyncio.run(seen()) else "it has changed")
PYTHON
