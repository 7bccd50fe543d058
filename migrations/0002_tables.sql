-- The tables: the relational projection that the workers keep for SQL readers, cold starts and audits.
--
-- Adds only; code that does not know these tables runs on. Whatever is here can be dropped and folded again
-- from the log, so it has no foreign keys: the fold guarantees what they would check.

CREATE TABLE checkpoint (
    tournament_id bigint PRIMARY KEY,
    sequence      bigint NOT NULL,
    digest        bytea NOT NULL,
    recorded_at   timestamptz NOT NULL,
    fold_version  int NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE checkpoint IS 'The sequence that a tournament''s tables have reached, committed together with them.';
COMMENT ON COLUMN checkpoint.fold_version IS 'Version of the fold that made the rows; tables of another version are not read.';

CREATE TABLE stopped (
    tournament_id bigint PRIMARY KEY,
    sequence      bigint NOT NULL,
    reason        text NOT NULL,
    stopped_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE stopped IS 'Tournaments whose log holds an event that cannot be folded: answered with 503 until it can.';

CREATE TABLE competitor (
    tournament_id bigint NOT NULL,
    competitor_id bigint NOT NULL,
    number        int NOT NULL,
    parent_id     bigint,
    name          text NOT NULL,
    tags          text[] NOT NULL,
    color         text NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, competitor_id)
);

CREATE TABLE competition (
    tournament_id  bigint NOT NULL,
    competition_id bigint NOT NULL,
    number         int NOT NULL,
    group_id       bigint NOT NULL,
    started_at     timestamptz NOT NULL,
    location       text NOT NULL,
    result         text,
    winner_id      bigint,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, competition_id)
);
COMMENT ON COLUMN competition.number IS 'Order of creation in the tournament: 1, 2, 3 …; likewise in the other tables.';
COMMENT ON COLUMN competition.result IS 'The score; with more than two participants the results are theirs.';

CREATE TABLE participant (
    tournament_id  bigint NOT NULL,
    competition_id bigint NOT NULL,
    number         int NOT NULL,
    competitor_id  bigint NOT NULL,
    result         text,
    PRIMARY KEY (tournament_id, competition_id, number)
);

CREATE TABLE ranking (
    tournament_id bigint NOT NULL,
    ranking_id    bigint NOT NULL,
    number        int NOT NULL,
    name          text NOT NULL,
    description   text,
    closed_at     timestamptz,
    PRIMARY KEY (tournament_id, ranking_id)
);

CREATE TABLE enrolment (
    tournament_id bigint NOT NULL,
    ranking_id    bigint NOT NULL,
    number        int NOT NULL,
    competitor_id bigint NOT NULL,
    PRIMARY KEY (tournament_id, ranking_id, number)
);
COMMENT ON TABLE enrolment IS 'The list of competitors of a ranking, in its order.';

CREATE TABLE unity (
    tournament_id bigint NOT NULL,
    unity_id      bigint NOT NULL,
    ranking_id    bigint NOT NULL,
    number        int NOT NULL,
    name          text NOT NULL,
    sort          text NOT NULL CHECK (sort IN ('ASC', 'DESC')),
    version       bigint NOT NULL,
    PRIMARY KEY (tournament_id, unity_id)
);
COMMENT ON COLUMN unity.version IS 'How many events have shaped its standing, counted from its creation as 1.';

CREATE TABLE total (
    tournament_id bigint NOT NULL,
    unity_id      bigint NOT NULL,
    competitor_id bigint NOT NULL,
    total         bigint NOT NULL,
    PRIMARY KEY (tournament_id, unity_id, competitor_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE total IS 'Sum of the deltas of one competitor in one unity; of those who left the ranking too.';

-- One line per competitor of a ranking and unity, for people with psql. Position is 1 + the number of strictly
-- better totals; that is what rank() counts, once "better" is made "smaller".
CREATE VIEW standing AS
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
JOIN enrolment AS e ON e.tournament_id = u.tournament_id AND e.ranking_id = u.ranking_id
JOIN competitor AS c ON c.tournament_id = u.tournament_id AND c.competitor_id = e.competitor_id
LEFT JOIN total AS s
    ON s.tournament_id = u.tournament_id AND s.unity_id = u.unity_id AND s.competitor_id = e.competitor_id;

GRANT SELECT, INSERT, UPDATE, DELETE
    ON checkpoint, stopped, competitor, competition, participant, ranking, enrolment, unity, total
    TO tallybook_service;
GRANT SELECT ON standing TO tallybook_service;
