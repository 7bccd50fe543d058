-- The tables: the relational projection that workers keep for readers of SQL, cold starts and audits.
--
-- Everything here can be dropped and folded again from the log. So there are no foreign keys to the log: the fold
-- guarantees what they would check.

CREATE TABLE checkpoint (
    tournament_id     bigint PRIMARY KEY,
    sequence          bigint NOT NULL,
    digest            bytea NOT NULL,
    recorded_at       timestamptz NOT NULL,
    fold_version      int NOT NULL,
    snapshot_sequence bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE checkpoint IS 'The sequence that a tournament''s tables have reached, committed together with them.';
COMMENT ON COLUMN checkpoint.fold_version IS 'Version of the fold that made the rows; tables of another version are not read.';
COMMENT ON COLUMN checkpoint.snapshot_sequence IS 'Sequence of the last snapshot; 0: none.';

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
    revised       bigint NOT NULL DEFAULT 0,
    erased        bigint,
    key           text,
    former        text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tournament_id, competitor_id)
);
COMMENT ON COLUMN competitor.former IS 'The last names that it had before, the newest last.';
COMMENT ON COLUMN competitor.key IS 'The organiser''s own id of it; NULL: it has none. No two have the same one.';
COMMENT ON COLUMN competitor.erased IS
    'The event that erased it; 0: one erases it later, and the log has forgotten it already. NULL: neither.';
COMMENT ON COLUMN competitor.revised IS 'Sequence of the last event that changed it; likewise in the other tables.';

CREATE TABLE competition (
    tournament_id  bigint NOT NULL,
    competition_id bigint NOT NULL,
    number         int NOT NULL,
    group_id       bigint NOT NULL,
    date           timestamptz,
    location       text NOT NULL,
    result         text,
    winner_id      bigint,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    voided_at      timestamptz,
    revised        bigint NOT NULL DEFAULT 0,
    struck         bigint[] NOT NULL DEFAULT '{}',
    scale          text NOT NULL DEFAULT '',
    round          bigint,
    round_name     text NOT NULL DEFAULT '',
    key            text,
    PRIMARY KEY (tournament_id, competition_id)
);
COMMENT ON COLUMN competition.number IS 'Order of creation in the tournament: 1, 2, 3 …; likewise in the other tables.';
COMMENT ON COLUMN competition.date IS 'Its declared date; NULL: none was declared.';
COMMENT ON COLUMN competition.result IS 'The score; with more than two participants the results are theirs.';
COMMENT ON COLUMN competition.voided_at IS 'Since when it does not count; NULL: it does.';
COMMENT ON COLUMN competition.struck IS 'The competitors for whom it does not count.';
COMMENT ON COLUMN competition.scale IS 'The name of the scoring that it uses; empty: none is named.';
COMMENT ON COLUMN competition.round IS 'NULL: all competitions of its date are a round.';

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
    place         int NOT NULL,
    name          text NOT NULL,
    description   text,
    closed_at     timestamptz,
    revised       bigint NOT NULL DEFAULT 0,
    updated_at    timestamptz NOT NULL DEFAULT 'epoch',
    criteria      json NOT NULL DEFAULT '[]',
    undone        jsonb NOT NULL DEFAULT '{}',
    scorings      json NOT NULL DEFAULT '[]',
    replaced      jsonb NOT NULL DEFAULT '{}',
    zones         text,
    PRIMARY KEY (tournament_id, ranking_id)
);
COMMENT ON COLUMN ranking.place IS 'Its place in lists of rankings, from 1.';
COMMENT ON COLUMN ranking.revised IS 'Of its fields, its list or its unities; points do not count.';
COMMENT ON COLUMN ranking.criteria IS
    'The chain of criteria of its classification: objects with unity_id, best, drop, among and first. Empty: the main unity.';
COMMENT ON COLUMN ranking.scorings IS 'What the results of competitions give in it. Empty: nothing.';
COMMENT ON COLUMN ranking.replaced IS
    'Lines that corrections of results have replaced, by the place of their points in the log: competitor, unity, and the last event that did.';
COMMENT ON COLUMN ranking.zones IS 'What places of its table lead to, one zone a line.';
COMMENT ON COLUMN ranking.undone IS 'The events whose points are undone, each with the event that undid it.';

CREATE TABLE enrolment (
    tournament_id bigint NOT NULL,
    ranking_id    bigint NOT NULL,
    number        int NOT NULL,
    competitor_id bigint NOT NULL,
    has_left      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tournament_id, ranking_id, competitor_id)
);
COMMENT ON TABLE enrolment IS 'All competitors that were ever in the list of a ranking.';
COMMENT ON COLUMN enrolment.number IS 'Grows in the order of the list; a competitor that returns gets a new one.';
COMMENT ON COLUMN enrolment.has_left IS 'Not in the list any more.';

CREATE TABLE unity (
    tournament_id bigint NOT NULL,
    unity_id      bigint NOT NULL,
    ranking_id    bigint NOT NULL,
    number        int NOT NULL,
    name          text NOT NULL,
    sort          text NOT NULL CHECK (sort IN ('ASC', 'DESC')),
    decimals      bigint NOT NULL DEFAULT 0,
    time          text CHECK (time IN ('s', 'ms')),
    counts        text NOT NULL DEFAULT 'sum' CHECK (counts IN ('sum', 'best', 'last')),
    lasts         text CHECK (lasts::interval > '0'), -- what views read as an interval must be one in every row
    expires_on    text CHECK (expires_on IN ('minute', 'day', 'week')),
    absent        text CHECK (absent IN ('none')),
    version       bigint NOT NULL,
    PRIMARY KEY (tournament_id, unity_id)
);
CREATE INDEX unity_expiring ON unity (tournament_id) WHERE lasts IS NOT NULL;
COMMENT ON COLUMN unity.decimals IS 'Totals are whole numbers of the smallest unit; people see them with this number of decimals.';
COMMENT ON COLUMN unity.time IS 'People see totals as times; the unit is seconds (s) or milliseconds (ms). NULL: they see numbers.';
COMMENT ON COLUMN unity.counts IS 'What a total is: the sum of deltas, the best result or the last.';
COMMENT ON COLUMN unity.lasts IS 'The age at which its points expire, as a duration of ISO 8601; NULL: they do not.';
COMMENT ON COLUMN unity.expires_on IS 'They expire at the next boundary of this, in UTC. Those of a week are on Monday.';
COMMENT ON COLUMN unity.absent IS 'The total of a competitor without points that count: none. NULL: 0.';
COMMENT ON COLUMN unity.version IS 'How many events have shaped its standing, counted from its creation as 1.';

CREATE TABLE total (
    tournament_id bigint NOT NULL,
    unity_id      bigint NOT NULL,
    competitor_id bigint NOT NULL,
    total         bigint NOT NULL,
    PRIMARY KEY (tournament_id, unity_id, competitor_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE total IS 'Sum of the deltas of one competitor in one unity, including competitors that left the ranking.';
COMMENT ON COLUMN total.total IS
    'In a unity with an absent total, the total + 2^53 where higher is better, and - 2^53 where lower is; 0: none.';

CREATE TABLE publication (
    tournament_id bigint PRIMARY KEY,
    published     boolean NOT NULL,
    frozen_at     bigint,
    seen_before   bigint NOT NULL,
    hidden        bigint[] NOT NULL DEFAULT '{}',
    zone          text NOT NULL DEFAULT 'UTC',
    language      text,
    accent        text,
    logo          bigint,
    listed        boolean NOT NULL DEFAULT false,
    stage         text
) WITH (fillfactor = 70);
CREATE INDEX publication_listed ON publication (tournament_id) WHERE listed AND published;
COMMENT ON TABLE publication IS
    'The publication of a tournament. No row: it was never published or frozen, and has no presentation of its own.';
COMMENT ON COLUMN publication.frozen_at IS 'The event at which the public end is held, published or not. NULL: it is not held.';
COMMENT ON COLUMN publication.seen_before IS
    'The last event that the public had seen when the tournament was last unpublished. 0: never.';
COMMENT ON COLUMN publication.hidden IS 'Rankings that the public does not see.';
COMMENT ON COLUMN publication.zone IS 'The IANA time zone whose days are those of the tournament.';
COMMENT ON COLUMN publication.logo IS 'The event that has the logo. NULL: there is none.';
COMMENT ON COLUMN publication.listed IS 'Whether the first page of the service leads to the board.';
COMMENT ON COLUMN publication.stage IS 'archived or deleted. NULL: the tournament can change.';

-- An answer about the past starts to fold from a snapshot, so its cost depends on the distance to the last one, not on the
-- length of the log. Each is the fold of the log up to its sequence, and safe to drop. A large board is stored in parts,
-- so that no process holds all of its bytes.
CREATE TABLE snapshot (
    tournament_id bigint NOT NULL,
    fold_version  int NOT NULL,
    sequence      bigint NOT NULL,
    digest        bytea NOT NULL,
    board         bytea NOT NULL,
    parts         int NOT NULL DEFAULT 0,
    PRIMARY KEY (tournament_id, fold_version, sequence)
);
COMMENT ON COLUMN snapshot.digest IS 'Of the block that ends at the sequence.';
COMMENT ON COLUMN snapshot.board IS 'The first part of the board in MessagePack, see projections/board/parts.py.';
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

-- ── For people with SQL ─────────────────────────────────────────────────────────────────────────────────
CREATE FUNCTION shown_total(p_total bigint, p_counts text, p_absent text, p_sort text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_counts = 'sum' AND p_absent IS NULL THEN p_total
        ELSE nullif(p_total, 0) - CASE p_sort WHEN 'DESC' THEN 9007199254740992 ELSE -9007199254740992 END
    END
$$;
COMMENT ON FUNCTION shown_total IS
    'What people see of a total as the table has it, in a unity with these options. NULL: there is none.';

-- A line per competitor of a ranking and unity. Position is 1 + the number of strictly better totals; rank() counts
-- exactly that, once "better" is turned into "smaller".
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
    shown_total(coalesce(s.total, 0), u.counts, u.absent, u.sort) AS total,
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

GRANT SELECT, INSERT, UPDATE, DELETE
    ON checkpoint, stopped, competitor, competition, participant, ranking, enrolment, unity, total, publication, snapshot,
    snapshot_part
    TO tallybook_service;
GRANT SELECT ON standing TO tallybook_service;
