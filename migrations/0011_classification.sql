-- The classification of a ranking by a chain of criteria.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on: it writes tables of its own version of the fold, with no criteria, and newer code makes
-- those anew.

ALTER TABLE ranking ADD COLUMN criteria json NOT NULL DEFAULT '[]';
COMMENT ON COLUMN ranking.criteria IS
    'The chain of criteria of its classification: objects with unity_id, best and among. Empty: the main unity alone.';

-- Read from the log each time: only some classifications need them.
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
    CROSS JOIN LATERAL json_array_elements(e.body::json -> 'deltas') AS d (delta)
    WHERE e.kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(e.body, 80), '"competition_id":') > 0
        AND (e.tournament_id, e.sequence) NOT IN (SELECT tournament_id, sequence FROM set_aside)
) AS given
GROUP BY tournament_id, ranking_id, unity_id, competitor_id, competition_id;
COMMENT ON VIEW competition_sum IS
    'Sum of the deltas that name a competition, of one competitor in one unity; of voided competitions too.';

-- The lines of a ranking's classification, in no order. The rule stands in projections/board/classification.py; a test
-- holds this against it.
--
-- `v_waiting` has the groups that are tied still: `ids` in the order of enrolment; `above`, how many lines stand above;
-- `reached`, the criteria that have been looked at; `decided_by`, of the first line; `among`, within a block the group
-- that was tied on reaching it, and `begin`, where the block begins; `found`, the values so far, the same for all.
CREATE FUNCTION classified(p_tournament_id bigint, p_ranking_id bigint)
RETURNS TABLE (competitor_id bigint, "position" bigint, "values" bigint[], decided_by int)
LANGUAGE plpgsql STABLE SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_criteria jsonb;
    v_count    int;
    v_waiting  jsonb;
    v_group    jsonb;
    v_reached  int;
    v_unity    bigint;
    v_best     bigint;
    v_sort     text;
    v_ids      bigint[];
    v_among    bigint[];
    v_sums     competition_sum[];
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
    IF v_criteria @? '$[*] ? (@.best != null || @.among != null)' THEN
        v_sums := ARRAY(
            SELECT cs
            FROM competition_sum AS cs
            WHERE cs.tournament_id = p_tournament_id AND cs.ranking_id = p_ranking_id
        );
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
                SELECT (v_group -> 'found' ->> k)::bigint FROM generate_series(0, v_count - 1) AS k ORDER BY k
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
        v_sort := (SELECT u.sort FROM unity AS u WHERE u.tournament_id = p_tournament_id AND u.unity_id = v_unity);
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
                    CASE WHEN v_among IS NULL THEN coalesce(t.total, 0) - coalesce(s.total, 0) ELSE 0 END
                        + coalesce(s.kept, 0) AS value
                FROM unnest(v_ids) WITH ORDINALITY AS g (id, n)
                LEFT JOIN total AS t
                    ON t.tournament_id = p_tournament_id AND t.unity_id = v_unity AND t.competitor_id = g.id
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
                            FROM unnest(v_sums) AS cs
                            WHERE cs.unity_id = v_unity AND cs.competitor_id = ANY (v_ids)
                        ) AS c
                    ) AS o
                    GROUP BY o.competitor_id
                ) AS s ON s.competitor_id = g.id AND (v_best IS NOT NULL OR v_among IS NOT NULL)
            ) AS v
            GROUP BY v.value
            WINDOW better AS (ORDER BY CASE v_sort WHEN 'DESC' THEN -v.value ELSE v.value END)
        LOOP
            IF v_part.size = 1 THEN   -- at once: a waiting list of thousands would be copied for each of them
                competitor_id := v_part.ids -> 0;
                "position" := (v_group ->> 'above')::bigint + v_part.above + 1;
                "values" := ARRAY(
                    SELECT CASE WHEN k = v_reached THEN v_part.value ELSE (v_group -> 'found' ->> k)::bigint END
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
                IF v_part.size < cardinality(v_among) THEN   -- parted: the block begins anew
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

-- For people with psql.
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

GRANT SELECT ON competition_sum, classification TO tallybook_service;
