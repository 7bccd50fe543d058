set -m
export PATH="/work/h/pages/.venv/bin:$PATH" TALLYBOOK_DATA_DIR=tallybook-tour

# A tournament, and a token for its clients. Without a database address, an embedded PostgreSQL is used.
SLUG=$(tallybook tournament create "Chess Club Ladder")
TOKEN=$(tallybook token create tour --scope admin --tournament "$SLUG")

# The service. Other commands with its data directory join its database. If the port is taken, choose another one.
PORT=8281
tallybook serve --port $PORT 2> tallybook-tour.log &
until grep -q '^Listening' tallybook-tour.log; do
    kill -0 $! 2> /dev/null || { tail -n 1 tallybook-tour.log; break; }
    sleep 0.2
done

# Two functions for this page: ask PATH [curl options] sends a request; field NAME… reads one value from JSON.
ask() { local path=$1; shift; curl -s -H "Authorization: Bearer $TOKEN" "$@" "localhost:$PORT/tournament/$SLUG/$path"; }
field() { python3 -c '
import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1:]:
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value)' "$@"; }

# One on the command line, one over HTTP. A POST answers with what it created.
ANA=$(tallybook competitor add "$SLUG" "Ana" --tag junior)
BEN=$(ask competitors.json -d name=Ben -d color=0044ff | field competitor id)
ask competitors.json | python3 -m json.tool

# Every ranking has a main unity: here, points.
ask rankings.json -d name=Ladder -d main_unity_name=points -d "participants=$ANA,$BEN" > tallybook-tour.json
python3 -m json.tool tallybook-tour.json
RANKING=$(field ranking id < tallybook-tour.json)
POINTS=$(field ranking unities 0 id < tallybook-tour.json)

# A match that Ana wins.
MATCH=$(ask competitions.json -d group_id=1 -d "participants=$ANA,$BEN" -d result=1-0 -d "winner=$ANA" \
    | field competition id)

# Its points, sent twice. The Idempotency-Key makes the retry harmless; the second answer says that it is a replay.
add() { ask "rankings/$RANKING/add.json" -X PUT "$@"; }
WIN="participants_delta=[{\"competitor_id\":$ANA,\"unities\":[{\"unity_id\":$POINTS,\"delta\":\"3\"}]}]"
add -H "Idempotency-Key: match-$MATCH" --data-urlencode "$WIN" -d "competition_id=$MATCH" | python3 -m json.tool
add -H "Idempotency-Key: match-$MATCH" --data-urlencode "$WIN" -d "competition_id=$MATCH" -o tallybook-tour.json -D - \
    | grep -i -e sequence -e replayed

# Two points for Ben without a match, and why. Then the standings: now, and as they were after event 6.
add -d "reason=fair play" --data-urlencode "participants_delta=[{\"competitor_id\":$BEN,\"unities\":[{\"unity_id\":$POINTS,\"delta\":\"2\"}]}]" \
    | field ranking unities 0 competitors_ranking
tallybook standings "$SLUG" "$RANKING"
tallybook standings "$SLUG" "$RANKING" --at-sequence 6

# A window of the standings: Ben's line, with the one above it and the one below it.
ask "rankings/$RANKING/standings.json?around=$BEN&span=1" | field ranking unities 0

# Every delta. What would change if the match were void? Void it. Why does Ana have no points now?
tallybook history "$SLUG" "$RANKING"
ask "rankings/$RANKING/history.json?limit=1" | python3 -m json.tool
tallybook void "$SLUG" "$MATCH" --dry-run
tallybook void "$SLUG" "$MATCH"
tallybook explain "$SLUG" "$RANKING" "$ANA"

# The match counts again. Nothing was deleted: the history now has four lines.
tallybook unvoid "$SLUG" "$MATCH"
tallybook history "$SLUG" "$RANKING" --format csv

# Write the log's digest to a file. Check the whole log and all tables against it. Then export a proof of event 6,
# which anybody can check without the database.
tallybook digests --output tallybook-tour.digests
tallybook verify --digests tallybook-tour.digests
tallybook prove "$SLUG" 6 > tallybook-tour.proof
tallybook check-proof tallybook-tour.proof tallybook-tour.digests

# A closed ranking refuses every change with 409.
tallybook ranking close "$SLUG" "$RANKING"
add --data-urlencode "$WIN" | python3 -m json.tool

kill %1 && wait
