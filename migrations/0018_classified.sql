-- The function `classified` for a distributed database too: Citus passes no variable of a type of our own to a node.
--
-- Oldest code that runs on it: 0004
-- Running code goes on: the function answers as before.

CREATE OR REPLACE FUNCTION classified(p_tournament_id bigint, p_ranking_id bigint)
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
    v_unities  bigint[];     -- of the sums, and so are the next three
    v_of       bigint[];
    v_in       bigint[];
    v_amounts  numeric[];
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
        SELECT
            array_agg(cs.unity_id), array_agg(cs.competitor_id), array_agg(cs.competition_id), array_agg(cs.sum)
        INTO v_unities, v_of, v_in, v_amounts
        FROM competition_sum AS cs
        WHERE cs.tournament_id = p_tournament_id AND cs.ranking_id = p_ranking_id;
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
