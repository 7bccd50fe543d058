-- The list of a ranking, changed row by row: who joins or leaves a list of a million costs as little as in a list of ten.
-- A row is of a competitor, and stays when they leave, because their totals do.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on: it writes tables of its own version of the fold, where nobody has left, and does not
-- read those of the new one, which newer code makes anew. The new key is built while the table is locked for writing.

ALTER TABLE enrolment
    ADD COLUMN has_left boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT enrolment_pkey,
    ADD PRIMARY KEY (tournament_id, ranking_id, competitor_id);
COMMENT ON TABLE enrolment IS 'Who was ever in the list of competitors of a ranking.';
COMMENT ON COLUMN enrolment.number IS 'Grows in the order of the list; numbers of those who came back are left out.';
COMMENT ON COLUMN enrolment.has_left IS 'Not in the list any more.';

CREATE OR REPLACE VIEW standing AS
SELECT
    t.slug AS tournament,
    r.name AS ranking,
    u.name AS unity,
    rank() OVER (
        PARTITION BY u.tournament_id, u.unity_id
        ORDER BY CASE u.sort WHEN 'DESC' THEN -coalesce(s.total, 0) ELSE coalesce(s.total, 0) END
    ) AS position,
    c.name AS competitor,
    coalesce(s.total, 0) AS total,
    u.version,
    u.tournament_id,
    u.ranking_id,
    u.unity_id,
    e.competitor_id,
    e.number AS enrolled
FROM unity AS u
JOIN tournament AS t ON t.tournament_id = u.tournament_id
JOIN ranking AS r ON r.tournament_id = u.tournament_id AND r.ranking_id = u.ranking_id
JOIN enrolment AS e ON e.tournament_id = u.tournament_id AND e.ranking_id = u.ranking_id AND NOT e.has_left
JOIN competitor AS c ON c.tournament_id = u.tournament_id AND c.competitor_id = e.competitor_id
LEFT JOIN total AS s
    ON s.tournament_id = u.tournament_id AND s.unity_id = u.unity_id AND s.competitor_id = e.competitor_id;

-- The boards of large tournaments are written and read in parts, so that no process holds the whole of one as bytes.
ALTER TABLE snapshot ADD COLUMN parts int NOT NULL DEFAULT 0;
COMMENT ON COLUMN snapshot.board IS 'The first part of the board in MessagePack, see projections/tables/snapshots.py.';
COMMENT ON COLUMN snapshot.parts IS 'How many more there are, in snapshot_part.';

CREATE TABLE snapshot_part (
    tournament_id bigint NOT NULL,
    fold_version  int NOT NULL,
    sequence      bigint NOT NULL,
    number        int NOT NULL,
    part          bytea NOT NULL,
    PRIMARY KEY (tournament_id, fold_version, sequence, number),
    FOREIGN KEY (tournament_id, fold_version, sequence) REFERENCES snapshot ON DELETE CASCADE
);
COMMENT ON TABLE snapshot_part IS 'The parts 1, 2, 3 … of boards that are too large for one.';

GRANT SELECT, INSERT, UPDATE, DELETE ON snapshot_part TO tallybook_service;
