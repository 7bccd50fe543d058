-- What continuous verification found last of each tournament, so that operators see it where they look anyway. It proves
-- nothing: who can write in the database can write this too.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on; it notes nothing.

CREATE TABLE verified (
    tournament_id bigint PRIMARY KEY,
    sequence      bigint NOT NULL,
    differences   bigint NOT NULL,
    verified_at   timestamptz NOT NULL
);
COMMENT ON TABLE verified IS 'What `tallybook verify --forever` found last of a tournament. For operators; no proof.';
COMMENT ON COLUMN verified.sequence IS 'The last event that was verified.';
COMMENT ON COLUMN verified.differences IS 'How many differences were found.';

GRANT SELECT, INSERT, UPDATE ON verified TO tallybook_service;
