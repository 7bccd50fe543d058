-- The one way past an event that cannot be folded: another event that names it.
--
-- Oldest code that runs on it: 0004
-- Adds only; running code goes on, and stops at an EventSetAside as at any event that it does not know. The index is
-- empty; to build it every event is read once, and nothing is appended meanwhile (a second for some millions). Where that
-- is too long, make it before, beside the running service:
--     CREATE INDEX CONCURRENTLY IF NOT EXISTS event_set_aside ON tallybook.event (tournament_id, sequence)
--         WHERE kind = 'EventSetAside';

CREATE INDEX IF NOT EXISTS event_set_aside ON event (tournament_id, sequence) WHERE kind = 'EventSetAside';

-- What counts is an EventSetAside just as the service writes it, that names an event before it in its log, by the digest
-- of the block that holds it. Any other is an event like others, and sets nothing aside.
CREATE VIEW set_aside AS
SELECT s.tournament_id, s.sequence, s.set_aside_by, s.set_aside_at, s.actor
FROM (
    SELECT
        tournament_id,
        substring(body FROM '^\{"sequence":([1-9][0-9]{0,17}),"digest":"[0-9a-f]{64}"\}$')::bigint AS sequence,
        substring(body FROM '"digest":"([0-9a-f]{64})"\}$') AS digest,
        sequence AS set_aside_by,
        recorded_at AS set_aside_at,
        actor
    FROM event
    WHERE kind = 'EventSetAside'
) AS s
CROSS JOIN LATERAL (
    SELECT digest
    FROM block
    WHERE tournament_id = s.tournament_id AND last_sequence >= s.sequence
    ORDER BY last_sequence
    LIMIT 1
) AS b
WHERE s.sequence < s.set_aside_by AND s.digest = encode(b.digest, 'hex');
COMMENT ON VIEW set_aside IS 'Events without effect, at every moment and for every reader, because an operator has set them aside.';

GRANT SELECT ON set_aside TO tallybook_service;
