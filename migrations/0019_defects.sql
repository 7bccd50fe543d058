-- Defects that tournaments met, so that operators see them where they look anyway; and tournaments that were deleted.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on; it notes no defect.

CREATE TABLE defect (
    tournament_id bigint NOT NULL,
    part          text NOT NULL,
    reason        text NOT NULL,
    met_at        timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, part)
);
COMMENT ON TABLE defect IS 'What failed last in each part of the work for a tournament, and should not have.';

GRANT SELECT, INSERT, UPDATE, DELETE ON defect TO tallybook_service;
