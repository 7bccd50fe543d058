-- Voiding finds the points of its competition by an index, and no longer reads the whole log for them.
--
-- Oldest code that runs on it: 0004
-- Adds only; running code goes on as before. Points that name no competition are not in the index, and append as fast as
-- before. To build it every event is read once, and nothing is appended meanwhile (some seconds for a million). Where that
-- is too long, make it before, beside the running service, by this very statement with CONCURRENTLY after INDEX and with
-- `tallybook.event` for `event`.
--
-- A partial index of the events themselves cannot say anything else than they do, whichever version of the code appended
-- them, and a restore makes it anew. The text is what the service writes; verification compares it with what the event
-- means, and counts the entries. An id is taken as text in the "C" collation, because a number too large for a column
-- would be an error in the middle of an append. A regular expression would take 8 µs for each event.
-- The competition stands before the deltas, within the first 80 characters: to look through a thousand deltas takes longer.

CREATE INDEX IF NOT EXISTS event_competition ON event (
    tournament_id,
    (rtrim(left(split_part(split_part(left(body, 80), '"competition_id":', 2), ',', 1), 20), '}') COLLATE "C"),
    sequence
) WHERE kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(body, 80), '"competition_id":') > 0;
