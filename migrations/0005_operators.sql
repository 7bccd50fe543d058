-- For operators: the last results of verification, and the last defects. No proof: the service itself can write them.

CREATE TABLE verified (
    tournament_id bigint PRIMARY KEY,
    sequence      bigint NOT NULL,
    differences   bigint NOT NULL,
    verified_at   timestamptz NOT NULL
);
COMMENT ON TABLE verified IS 'The last result of `tallybook verify --forever` for a tournament. For operators; no proof.';
COMMENT ON COLUMN verified.sequence IS 'The last event that was verified.';
COMMENT ON COLUMN verified.differences IS 'The number of differences found.';

CREATE TABLE defect (
    tournament_id bigint NOT NULL,
    part          text NOT NULL,
    reason        text NOT NULL,
    met_at        timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, part)
);
COMMENT ON TABLE defect IS 'The last unexpected failure in each part of the work for a tournament.';

GRANT SELECT, INSERT, UPDATE ON verified TO tallybook_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON defect TO tallybook_service;
