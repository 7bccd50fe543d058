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
    PRIMARY KEY (tournament_id, competitor_id)
);
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
    PRIMARY KEY (tournament_id, competition_id)
);
COMMENT ON COLUMN competition.number IS 'Order of creation in the tournament: 1, 2, 3 …; likewise in the other tables.';
COMMENT ON COLUMN competition.date IS 'Its declared date; NULL: none was declared.';
COMMENT ON COLUMN competition.result IS 'The score; with more than two participants the results are theirs.';
COMMENT ON COLUMN competition.voided_at IS 'Since when it does not count; NULL: it does.';
COMMENT ON COLUMN competition.struck IS 'The competitors for whom it does not count.';

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
    PRIMARY KEY (tournament_id, ranking_id)
);
COMMENT ON COLUMN ranking.place IS 'Its place in lists of rankings, from 1.';
COMMENT ON COLUMN ranking.revised IS 'Of its fields, its list or its unities; points do not count.';
COMMENT ON COLUMN ranking.criteria IS
    'The chain of criteria of its classification: objects with unity_id, best and among. Empty: the main unity alone.';
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
    version       bigint NOT NULL,
    PRIMARY KEY (tournament_id, unity_id)
);
CREATE INDEX unity_expiring ON unity (tournament_id) WHERE lasts IS NOT NULL;
COMMENT ON COLUMN unity.decimals IS 'Totals are whole numbers of the smallest unit; people see them with this number of decimals.';
COMMENT ON COLUMN unity.time IS 'People see totals as times; the unit is seconds (s) or milliseconds (ms). NULL: they see numbers.';
COMMENT ON COLUMN unity.counts IS 'What a total is: the sum of deltas, the best result or the last.';
COMMENT ON COLUMN unity.lasts IS 'The age at which its points expire, as a duration of ISO 8601; NULL: they do not.';
COMMENT ON COLUMN unity.expires_on IS 'They expire at the next boundary of this, in UTC. Those of a week are on Monday.';
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
    'In a unity that counts results, the result + 2^53 where higher is better, and - 2^53 where lower is; 0: none.';

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
    listed        boolean NOT NULL DEFAULT false
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
CREATE FUNCTION shown_total(p_total bigint, p_counts text, p_sort text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_counts = 'sum' THEN p_total
        ELSE nullif(p_total, 0) - CASE p_sort WHEN 'DESC' THEN 9007199254740992 ELSE -9007199254740992 END
    END
$$;
COMMENT ON FUNCTION shown_total IS
    'What people see of a total as the table has it, in a unity that counts and sorts so. NULL: there is no result.';

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
    shown_total(coalesce(s.total, 0), u.counts, u.sort) AS total,
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

-- When points expire that took place then, in a unity that was declared so (engine/domain/expiry.py).
CREATE FUNCTION expires_at(p_took_place timestamptz, p_lasts text, p_expires_on text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT (b.last + CASE WHEN b.last < b.age THEN ('1 ' || p_expires_on)::interval ELSE '0' END) AT TIME ZONE 'UTC'
    FROM (
        SELECT a.age, date_trunc(p_expires_on, a.age) AS last
        FROM (SELECT (p_took_place AT TIME ZONE 'UTC') + p_lasts::interval AS age) AS a
    ) AS b
$$;
COMMENT ON FUNCTION expires_at IS
    'When points expire that took place at a time, in a unity with this lasts and expires_on. NULL: they do not.';

-- Points expire before an event is judged, not before one that operators append (`judged` in engine/domain/events.py).
CREATE VIEW expired_until AS
SELECT p.tournament_id, h.recorded_at AS moment
FROM checkpoint AS p
CROSS JOIN LATERAL (
    SELECT e.recorded_at
    FROM event AS e
    WHERE e.tournament_id = p.tournament_id AND e.sequence <= p.sequence
        AND e.kind NOT IN ('CompetitorErased', 'EventSetAside')
        AND (e.tournament_id, e.sequence) NOT IN (SELECT tournament_id, sequence FROM set_aside)
    ORDER BY e.sequence DESC
    LIMIT 1
) AS h;
COMMENT ON VIEW expired_until IS 'The time up to which all due points have expired in the tables.';

-- Read from the log each time, because only some classifications need it.
CREATE VIEW competition_sum AS
SELECT tournament_id, ranking_id, unity_id, competitor_id, competition_id, sum(amount) AS sum
FROM (
    SELECT
        e.tournament_id,
        (e.body::json ->> 'ranking_id')::bigint AS ranking_id,
        (d.delta ->> 1)::bigint AS unity_id,
        (d.delta ->> 0)::bigint AS competitor_id,
        (e.body::json ->> 'competition_id')::bigint AS competition_id,
        (d.delta ->> 2)::bigint AS amount
    FROM event AS e
    JOIN ranking AS r ON r.tournament_id = e.tournament_id AND r.ranking_id = (e.body::json ->> 'ranking_id')::bigint
    JOIN expired_until AS x ON x.tournament_id = e.tournament_id
    CROSS JOIN LATERAL json_array_elements(e.body::json -> 'deltas') AS d (delta)
    JOIN unity AS u ON u.tournament_id = e.tournament_id AND u.unity_id = (d.delta ->> 1)::bigint
    LEFT JOIN competition AS c
        ON c.tournament_id = e.tournament_id AND c.competition_id = (e.body::json ->> 'competition_id')::bigint
    WHERE e.kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(e.body, 80), '"competition_id":') > 0
        AND NOT r.undone ? coalesce(e.body::json ->> 'reverses', e.sequence::text)
        AND NOT coalesce((d.delta ->> 0)::bigint = ANY (c.struck), false)
        AND (u.lasts IS NULL OR (
            e.kind = 'PointsAdded' AND c.voided_at IS NULL
            AND expires_at(coalesce(c.date, e.recorded_at), u.lasts, u.expires_on)
                > least(x.moment, r.closed_at)
        ))
        AND (e.tournament_id, e.sequence) NOT IN (SELECT tournament_id, sequence FROM set_aside)
) AS given
GROUP BY tournament_id, ranking_id, unity_id, competitor_id, competition_id;
COMMENT ON VIEW competition_sum IS
    'Sum of the deltas that name a competition, of one competitor in one unity; where points do not expire, of voided competitions too. Without what is undone or struck, or has expired.';

-- Read from the log each time, as the sums of competitions. Of results that count, it is the first of the best, or the
-- first of the equal ones at the end. In PL/pgSQL, because Citus takes no parameters of functions in SQL.
CREATE FUNCTION reached(p_tournament_id bigint, p_unity_id bigint)
RETURNS TABLE (competitor_id bigint, sequence bigint)
LANGUAGE plpgsql STABLE SET search_path = tallybook, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT changed.competitor_id, max(changed.sequence)
    FROM (
        SELECT (d.delta ->> 0)::bigint AS competitor_id, e.sequence
        FROM event AS e
        CROSS JOIN LATERAL json_array_elements(e.body::json -> 'deltas') AS d (delta)
        WHERE e.tournament_id = p_tournament_id AND e.kind IN ('PointsAdded', 'PointsReversed', 'PointsExpired')
            AND (d.delta ->> 1)::bigint = p_unity_id
            AND e.sequence NOT IN (SELECT s.sequence FROM set_aside AS s WHERE s.tournament_id = p_tournament_id)
        GROUP BY 1, 2
        HAVING sum((d.delta ->> 2)::bigint) <> 0
    ) AS changed
    GROUP BY 1
    UNION ALL
    SELECT given.competitor_id, min(given.sequence)
    FROM (
        SELECT
            t.competitor_id,
            e.sequence,
            (d.result ->> 2)::bigint = shown_total(t.total, u.counts, u.sort) AS is_total,
            u.counts = 'last' AND bool_or((d.result ->> 2)::bigint <> shown_total(t.total, u.counts, u.sort)) OVER (
                PARTITION BY t.competitor_id ORDER BY e.sequence DESC, d.n DESC
            ) AS is_before_another
        FROM event AS e
        CROSS JOIN LATERAL json_array_elements(e.body::json -> 'results') WITH ORDINALITY AS d (result, n)
        JOIN unity AS u ON u.tournament_id = e.tournament_id AND u.unity_id = (d.result ->> 1)::bigint
        JOIN ranking AS r ON r.tournament_id = e.tournament_id AND r.ranking_id = u.ranking_id
        JOIN total AS t
            ON t.tournament_id = e.tournament_id AND t.unity_id = u.unity_id
                AND t.competitor_id = (d.result ->> 0)::bigint
        LEFT JOIN competition AS c
            ON c.tournament_id = e.tournament_id
                AND c.competition_id = (e.body::json ->> 'competition_id')::bigint
        WHERE e.tournament_id = p_tournament_id AND e.kind = 'PointsAdded' AND u.unity_id = p_unity_id
            AND NOT r.undone ? e.sequence::text AND c.voided_at IS NULL
            AND NOT coalesce(t.competitor_id = ANY (c.struck), false)
            AND (u.lasts IS NULL OR expires_at(
                coalesce(c.date, e.recorded_at), u.lasts, u.expires_on
            ) > least(r.closed_at, (SELECT x.moment FROM expired_until AS x WHERE x.tournament_id = p_tournament_id)))
            AND e.sequence NOT IN (SELECT s.sequence FROM set_aside AS s WHERE s.tournament_id = p_tournament_id)
    ) AS given
    WHERE given.is_total AND NOT given.is_before_another
    GROUP BY 1;
END
$$;
COMMENT ON FUNCTION reached IS
    'The event since which competitors have had their totals in a unity; no row: it has not changed.';

-- The lines of a ranking's classification, in no order. projections/board/classification.py has the rule; a test compares
-- both.
--
-- `v_waiting` has the groups that are still tied: `ids` in the order of enrolment; `above`, the number of lines above;
-- `reached`, the number of criteria applied; `decided_by`, of the first line; `among`, within a block the group that was
-- tied when it reached it, and `begin`, where the block begins; `found`, the values so far, the same for all.
--
-- The sums are four arrays because Citus passes no variable of a composite type to a node.
CREATE FUNCTION classified(p_tournament_id bigint, p_ranking_id bigint)
RETURNS TABLE (competitor_id bigint, "position" bigint, "values" bigint[], decided_by int)
LANGUAGE plpgsql STABLE SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_criteria jsonb;
    v_count    int;
    v_counts   text[];       -- of the unity of each criterion, like the next
    v_sorts    text[];
    v_waiting  jsonb;
    v_group    jsonb;
    v_reached  int;
    v_unity    bigint;
    v_best     bigint;
    v_sort     text;
    v_ids      bigint[];
    v_among    bigint[];
    v_unities  bigint[];     -- of the sums, like the next three
    v_of       bigint[];
    v_in       bigint[];
    v_amounts  numeric[];
    v_reached_in bigint[];   -- the unities of what is reached first, like the next two
    v_reached_by bigint[];
    v_reached_at bigint[];
    v_part     record;
    v_next     jsonb;
BEGIN
    SELECT CASE
        WHEN json_array_length(r.criteria) > 0 THEN r.criteria::jsonb
        ELSE (
            SELECT jsonb_build_array(jsonb_build_object('unity_id', u.unity_id))
            FROM unity AS u
            WHERE u.tournament_id = p_tournament_id AND u.ranking_id = p_ranking_id AND u.number = 1
        )
    END
    INTO v_criteria
    FROM ranking AS r
    WHERE r.tournament_id = p_tournament_id AND r.ranking_id = p_ranking_id;
    v_count := jsonb_array_length(v_criteria);
    SELECT  -- what is reached first is a sequence, and the lower is better
        array_agg(CASE WHEN c.criterion ? 'first' THEN 'sum' ELSE u.counts END ORDER BY c.n),
        array_agg(CASE WHEN c.criterion ? 'first' THEN 'ASC' ELSE u.sort END ORDER BY c.n)
    INTO v_counts, v_sorts
    FROM jsonb_array_elements(v_criteria) WITH ORDINALITY AS c (criterion, n)
    JOIN unity AS u ON u.tournament_id = p_tournament_id AND u.unity_id = (c.criterion ->> 'unity_id')::bigint;
    IF v_criteria @? '$[*] ? (@.best != null || @.among != null)' THEN
        SELECT
            array_agg(cs.unity_id), array_agg(cs.competitor_id), array_agg(cs.competition_id), array_agg(cs.sum)
        INTO v_unities, v_of, v_in, v_amounts
        FROM competition_sum AS cs
        WHERE cs.tournament_id = p_tournament_id AND cs.ranking_id = p_ranking_id;
    END IF;
    IF v_criteria @? '$[*].first' THEN
        SELECT array_agg(c.unity_id), array_agg(f.competitor_id), array_agg(f.sequence)
        INTO v_reached_in, v_reached_by, v_reached_at
        FROM (
            SELECT DISTINCT (one ->> 'unity_id')::bigint AS unity_id
            FROM jsonb_array_elements(v_criteria) AS one
            WHERE one ? 'first'
        ) AS c
        CROSS JOIN LATERAL reached(p_tournament_id, c.unity_id) AS f;
    END IF;
    SELECT jsonb_build_array(
        jsonb_build_object('ids', jsonb_agg(e.competitor_id ORDER BY e.number), 'above', 0, 'reached', 0,
                           'found', '[]'::jsonb)
    )
    INTO v_waiting
    FROM enrolment AS e
    WHERE e.tournament_id = p_tournament_id AND e.ranking_id = p_ranking_id AND NOT e.has_left
    HAVING count(*) > 0;

    WHILE jsonb_array_length(v_waiting) > 0 LOOP
        v_group := v_waiting -> -1;
        v_waiting := v_waiting - -1;
        v_ids := ARRAY(SELECT i::bigint FROM jsonb_array_elements_text(v_group -> 'ids') WITH ORDINALITY AS g (i, n)
                       ORDER BY n);
        v_reached := v_group ->> 'reached';
        IF v_reached = v_count OR cardinality(v_ids) = 1 THEN
            "position" := (v_group ->> 'above')::bigint + 1;
            "values" := ARRAY(
                SELECT shown_total((v_group -> 'found' ->> k)::bigint, v_counts[k + 1], v_sorts[k + 1])
                FROM generate_series(0, v_count - 1) AS k
                ORDER BY k
            );
            decided_by := v_group ->> 'decided_by';
            FOREACH competitor_id IN ARRAY v_ids LOOP
                RETURN NEXT;
                decided_by := NULL;
            END LOOP;
            CONTINUE;
        END IF;
        v_unity := v_criteria -> v_reached ->> 'unity_id';
        v_best := v_criteria -> v_reached ->> 'best';
        v_sort := v_sorts[v_reached + 1];
        IF v_criteria -> v_reached ->> 'among' IS NULL THEN
            v_among := NULL;
        ELSIF v_group ? 'among' THEN
            v_among := ARRAY(SELECT i::bigint FROM jsonb_array_elements_text(v_group -> 'among') AS g (i));
        ELSE
            v_among := v_ids;
            v_group := v_group || jsonb_build_object('among', v_group -> 'ids', 'begin', v_reached);
        END IF;

        FOR v_part IN
            SELECT
                jsonb_agg(v.id ORDER BY v.n) AS ids,
                v.value,
                row_number() OVER better AS place,
                sum(count(*)) OVER better - count(*) AS above,
                count(*) AS size
            FROM (
                SELECT
                    g.id,
                    g.n,
                    CASE
                        WHEN v_criteria -> v_reached ? 'first' THEN coalesce(f.sequence, 0)
                        WHEN v_among IS NULL THEN coalesce(t.total, 0) - coalesce(s.total, 0)
                        ELSE 0
                    END + coalesce(s.kept, 0) AS value
                FROM unnest(v_ids) WITH ORDINALITY AS g (id, n)
                LEFT JOIN total AS t
                    ON t.tournament_id = p_tournament_id AND t.unity_id = v_unity AND t.competitor_id = g.id
                LEFT JOIN unnest(v_reached_in, v_reached_by, v_reached_at) AS f (unity_id, competitor_id, sequence)
                    ON f.unity_id = v_unity AND f.competitor_id = g.id AND v_criteria -> v_reached ? 'first'
                LEFT JOIN (
                    SELECT
                        o.competitor_id,
                        sum(o.sum) AS total,
                        sum(o.sum) FILTER (WHERE o.counts AND o.place <= coalesce(v_best, o.place)) AS kept
                    FROM (
                        SELECT
                            c.competitor_id,
                            c.sum,
                            c.counts,
                            row_number() OVER (
                                PARTITION BY c.competitor_id, c.counts
                                ORDER BY CASE v_sort WHEN 'DESC' THEN -c.sum ELSE c.sum END
                            ) AS place
                        FROM (
                            SELECT
                                cs.competitor_id,
                                cs.sum,
                                NOT EXISTS (
                                    SELECT FROM competition AS voided
                                    WHERE voided.tournament_id = p_tournament_id
                                        AND voided.competition_id = cs.competition_id
                                        AND voided.voided_at IS NOT NULL
                                ) AND (v_among IS NULL OR (
                                    SELECT count(*)
                                    FROM participant AS p
                                    WHERE p.tournament_id = p_tournament_id
                                        AND p.competition_id = cs.competition_id
                                        AND p.competitor_id = ANY (v_among)
                                ) > 1) AS counts
                            FROM unnest(v_unities, v_of, v_in, v_amounts)
                                AS cs (unity_id, competitor_id, competition_id, sum)
                            WHERE cs.unity_id = v_unity AND cs.competitor_id = ANY (v_ids)
                        ) AS c
                    ) AS o
                    GROUP BY o.competitor_id
                ) AS s ON s.competitor_id = g.id AND (v_best IS NOT NULL OR v_among IS NOT NULL)
            ) AS v
            GROUP BY v.value
            WINDOW better AS (ORDER BY CASE v_sort WHEN 'DESC' THEN -v.value ELSE v.value END)
        LOOP
            IF v_part.size = 1 THEN   -- returned at once, because each push copies the waiting list
                competitor_id := v_part.ids -> 0;
                "position" := (v_group ->> 'above')::bigint + v_part.above + 1;
                "values" := ARRAY(
                    SELECT shown_total(
                        CASE WHEN k = v_reached THEN v_part.value::bigint ELSE (v_group -> 'found' ->> k)::bigint END,
                        v_counts[k + 1],
                        v_sorts[k + 1]
                    )
                    FROM generate_series(0, v_count - 1) AS k
                    ORDER BY k
                );
                decided_by := CASE WHEN v_part.place = 1 THEN (v_group ->> 'decided_by')::int ELSE v_reached END;
                RETURN NEXT;
                CONTINUE;
            END IF;
            v_next := v_group || jsonb_build_object(
                'ids', v_part.ids,
                'above', (v_group ->> 'above')::bigint + v_part.above,
                'reached', v_reached + 1,
                'found', (v_group -> 'found') || to_jsonb(v_part.value),
                'decided_by', CASE WHEN v_part.place = 1 THEN v_group -> 'decided_by' ELSE to_jsonb(v_reached) END
            );
            IF v_part.size > 1 AND v_among IS NOT NULL AND v_criteria -> (v_reached + 1) ->> 'among' IS NULL THEN
                IF v_part.size < cardinality(v_among) THEN   -- split: the block starts again
                    v_next := v_next || jsonb_build_object(
                        'reached', v_next -> 'begin',
                        'found', jsonb_path_query_array(v_next -> 'found', '$[0 to $n]',
                                                        jsonb_build_object('n', (v_next ->> 'begin')::int - 1))
                    );
                END IF;
                v_next := v_next - 'among' - 'begin';
            END IF;
            v_waiting := v_waiting || v_next;
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION classified IS
    'The lines of a classification: values as the criteria, NULL where not needed; decided_by counts criteria from 0.';

CREATE VIEW classification AS
SELECT
    t.slug AS tournament,
    r.name AS ranking,
    l.position,
    c.name AS competitor,
    l.values,
    l.decided_by,
    r.tournament_id,
    r.ranking_id,
    l.competitor_id
FROM ranking AS r
JOIN tournament AS t ON t.tournament_id = r.tournament_id
CROSS JOIN LATERAL classified(r.tournament_id, r.ranking_id) AS l
JOIN competitor AS c ON c.tournament_id = r.tournament_id AND c.competitor_id = l.competitor_id;

GRANT SELECT, INSERT, UPDATE, DELETE
    ON checkpoint, stopped, competitor, competition, participant, ranking, enrolment, unity, total, publication, snapshot,
    snapshot_part
    TO tallybook_service;
GRANT SELECT ON standing, expired_until, competition_sum, classification TO tallybook_service;
