-- What the public sees of a tournament.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on, but a tournament that newer code publishes, freezes or reveals stops there.

CREATE TABLE publication (
    tournament_id bigint PRIMARY KEY,
    published     boolean NOT NULL,
    frozen_at     bigint,
    seen_before   bigint NOT NULL
) WITH (fillfactor = 70);
COMMENT ON TABLE publication IS
    'What the public sees of a tournament. No row: it was never published or frozen.';
COMMENT ON COLUMN publication.frozen_at IS 'The event at which that is held, published or not. NULL: it is not held.';
COMMENT ON COLUMN publication.seen_before IS
    'The last event that the public had seen when the tournament was last unpublished. 0: never.';

GRANT SELECT, INSERT, UPDATE, DELETE ON publication TO tallybook_service;
