-- An append answers with what its sender has not seen, so that nothing is read again where several processes write.
--
-- Oldest code that runs on it: 0004
-- Adds a function and replaces what calls it. Processes of the versions before go on: they find their `append_block`, of
-- twelve or of sixteen arguments, which answers as before.
--
-- The function is that of 0005, which says what it answers and why it locks; new are p_unseen_bytes and `unseen`:
--
--   unseen    the texts (see block_text) of the blocks after p_judged_at, up to the head before this block, one a line; no
--             text has a line feed in it. The digest that they lead to from p_judged_digest is previous_digest; also where
--             the answer is overtaken. NULL: nothing landed, or more than p_unseen_bytes or c_unseen_max blocks, or the
--             block at p_judged_at is not the sender's, or the block is exact, or the answer is that of an earlier sending.
--
-- The texts are made while the lock is held, so nothing is missing between them and the block, and nothing is there twice.

CREATE FUNCTION append_block(
    p_tournament_id bigint,
    p_append_id     uuid,
    p_again         boolean,   -- it may have been sent before
    p_judged_at     bigint,    -- every structural event up to this sequence was known to whoever judged
    p_judged_digest bytea,     -- of the block that ends there, as it was known; NULL: whichever it is
    p_structural    boolean,   -- the last request holds a structural event
    p_exact         boolean,   -- every event up to p_judged_at was known, and none may lie in between
    p_wait          boolean,   -- wait for the lock (up to lock_timeout) instead of answering busy
    p_created       bigint[],  -- ids of what the events create; NULL: nothing
    p_refusals      bigint,    -- how many refusals were known when the requests were sent
    p_unseen_bytes  bigint,    -- how much of what landed after p_judged_at the sender takes; 0: nothing
    p_event_counts  int[],     -- per request; NULL, like the next two, where no request has a key
    p_keys          text[],
    p_fingerprints  bytea[],
    p_actors        bigint[],  -- per event, like the next two
    p_kinds         text[],
    p_bodies        text[],
    OUT status          text,
    OUT first_sequence  bigint,
    OUT last_sequence   bigint,
    OUT recorded_at     timestamptz,
    OUT previous_digest bytea,
    OUT digest          bytea,
    OUT answers         bigint[],
    OUT unseen          text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
DECLARE
    c_between_max constant bigint := 2000;   -- events between p_judged_at and the head, of a block sent first
    c_unseen_max  constant bigint := 100;    -- blocks of `unseen`
    v_refusals  bigint;
    v_head      bigint;
    v_structure bigint;
    v_time      timestamptz;
    v_digest    bytea;
    v_digest_then bytea;     -- at p_judged_at; NULL: no block ends there
    v_seen      idempotency%ROWTYPE;
    v_next      bigint;
    v_is_new    boolean;
    v_new       boolean[];   -- per event: it is appended
    v_keys      text[];      -- per event; NULL where none has a key
    v_text      bytea;
BEGIN
    IF p_wait THEN
        SELECT l.refusals INTO v_refusals FROM append_lock AS l
            WHERE l.tournament_id = p_tournament_id FOR UPDATE;
    ELSE
        SELECT l.refusals INTO v_refusals FROM append_lock AS l
            WHERE l.tournament_id = p_tournament_id FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        status := CASE WHEN EXISTS (SELECT FROM append_lock AS l WHERE l.tournament_id = p_tournament_id)
                       THEN 'busy' ELSE 'unknown' END;
        RETURN;
    END IF;
    SELECT b.last_sequence, coalesce(b.structure_sequence, b.last_sequence), b.recorded_at, b.digest
        INTO v_head, v_structure, v_time, v_digest
        FROM block AS b
        WHERE b.tournament_id = p_tournament_id
        ORDER BY b.last_sequence DESC
        LIMIT 1;
    IF NOT FOUND THEN   -- the tournament is being opened
        v_head := 0;
        v_structure := 0;
        v_digest := genesis_digest(p_tournament_id);
    END IF;

    v_digest_then := v_digest;
    IF v_head <> p_judged_at THEN
        -- 1. Judged by a log that is not this one, or so long ago that nobody should look for what landed since. (What
        --    may have been sent before is looked for nevertheless.)
        IF v_head < p_judged_at OR (NOT p_again AND v_head - p_judged_at > c_between_max) THEN
            status := 'overtaken';
            RETURN;
        END IF;

        -- 2. Sent again after a lost answer: say what was said then. It was appended after it was judged. Also what is
        --    sent first is looked for, because the answer to it may be waited for no longer, and it has been sent again.
        SELECT 'appended', b.first_sequence, b.last_sequence, b.recorded_at, b.digest, b.answers
            INTO status, first_sequence, last_sequence, recorded_at, digest, answers
            FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence > p_judged_at AND b.append_id = p_append_id;
        IF FOUND THEN
            RETURN;
        END IF;

        SELECT b.digest INTO v_digest_then FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence = p_judged_at;

        -- 3. What the sender has not seen, if it is not too much, and if the sender knows this log. (What is exact will be
        --    judged again under the lock, by the log as it is there.)
        IF p_unseen_bytes > 0 AND NOT p_exact AND v_digest_then = p_judged_digest THEN
            SELECT string_agg(
                    block_text(b.first_sequence, (extract(epoch FROM b.recorded_at) * 1000000)::bigint,
                               e.actors, e.kinds, e.keys, e.bodies),
                    chr(10) ORDER BY b.last_sequence
                )
                INTO unseen
                FROM (
                    SELECT l.first_sequence, l.last_sequence, l.recorded_at,
                        sum(l.bytes) OVER () AS size, count(*) OVER () AS blocks
                    FROM (
                        SELECT *
                        FROM block AS b
                        WHERE b.tournament_id = p_tournament_id AND b.last_sequence > p_judged_at
                        ORDER BY b.last_sequence
                        LIMIT c_unseen_max + 1
                    ) AS l
                ) AS b
                CROSS JOIN LATERAL (
                    SELECT array_agg(o.actor) AS actors, array_agg(o.kind) AS kinds,
                        CASE WHEN count(o.idempotency_key) > 0 THEN array_agg(o.idempotency_key) END AS keys,
                        array_agg(o.body) AS bodies
                    FROM (
                        SELECT e.actor, e.kind, e.idempotency_key, e.body
                        FROM event AS e
                        WHERE e.tournament_id = p_tournament_id
                            AND e.sequence BETWEEN b.first_sequence AND b.last_sequence
                        ORDER BY e.sequence
                        LIMIT b.last_sequence - b.first_sequence + 1
                    ) AS o
                ) AS e
                WHERE b.size <= p_unseen_bytes AND b.blocks <= c_unseen_max;
            previous_digest := v_digest;
        END IF;

        -- 4. Judged on a structure that is no longer, or ids that were free then.
        IF v_structure > p_judged_at OR p_exact OR (p_created IS NOT NULL AND EXISTS (
            SELECT FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence > p_judged_at AND b.created && p_created
        )) THEN
            status := 'overtaken';
            RETURN;
        END IF;
    END IF;
    IF v_digest_then IS DISTINCT FROM p_judged_digest AND p_judged_digest IS NOT NULL THEN
        status := 'overtaken';
        RETURN;
    END IF;

    -- 5. Known keys, this block's own included, because each is written before the next is looked up.
    IF p_keys IS NOT NULL THEN
        v_next := v_head + 1;
        FOR r IN 1 .. cardinality(p_keys) LOOP
            v_seen := NULL;
            v_is_new := true;
            IF p_keys[r] IS NOT NULL THEN
                SELECT * INTO v_seen FROM idempotency AS i
                    WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = p_keys[r];
            END IF;
            IF v_seen IS NOT NULL THEN
                v_is_new := false;
                answers[r] := CASE WHEN v_seen.fingerprint = p_fingerprints[r] THEN -v_seen.sequence ELSE 0 END;
            ELSIF p_keys[r] IS NOT NULL AND v_refusals > p_refusals AND EXISTS (
                SELECT FROM refusal AS f
                WHERE f.tournament_id = p_tournament_id AND f.idempotency_key = p_keys[r] AND f.number > p_refusals
            ) THEN
                v_is_new := false;
                answers[r] := NULL;
            ELSE
                answers[r] := v_next;
                v_next := v_next + p_event_counts[r];
                IF p_keys[r] IS NOT NULL THEN
                    INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
                        VALUES (p_tournament_id, p_keys[r], p_fingerprints[r], answers[r]);
                END IF;
            END IF;
            v_new := v_new || array_fill(v_is_new, ARRAY[p_event_counts[r]]);
            v_keys := v_keys || array_fill(p_keys[r], ARRAY[p_event_counts[r]]);
        END LOOP;
        IF true = ALL (v_new) THEN
            answers := NULL;
        ELSE
            SELECT array_agg(e.actor ORDER BY e.n), array_agg(e.kind ORDER BY e.n), array_agg(e.key ORDER BY e.n),
                    array_agg(e.body ORDER BY e.n)
                INTO p_actors, p_kinds, v_keys, p_bodies
                FROM unnest(p_actors, p_kinds, v_keys, p_bodies, v_new) WITH ORDINALITY
                    AS e (actor, kind, key, body, is_new, n)
                WHERE e.is_new;
        END IF;
        IF array_remove(v_keys, NULL) = '{}' THEN
            v_keys := NULL;
        END IF;
    END IF;

    status := 'appended';
    previous_digest := v_digest;
    IF p_bodies IS NULL THEN
        RETURN;   -- nothing is new
    END IF;

    -- 6. The next sequences, and a time that never runs backwards.
    first_sequence := v_head + 1;
    last_sequence := v_head + cardinality(p_bodies);
    recorded_at := greatest(clock_timestamp(), v_time);

    -- 7. Events, and the chain over what is stored.
    IF cardinality(p_bodies) = 1 THEN   -- most blocks where there are many tournaments; it saves a tenth of the call
        INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body)
            VALUES (p_tournament_id, first_sequence, recorded_at, p_actors[1], p_kinds[1], v_keys[1], p_bodies[1]);
    ELSE
        INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body)
            SELECT p_tournament_id, v_head + new.n, append_block.recorded_at, new.actor, new.kind, new.key, new.body
            FROM unnest(p_actors, p_kinds, v_keys, p_bodies) WITH ORDINALITY AS new (actor, kind, key, body, n);
    END IF;
    v_text := convert_to(block_text(first_sequence, (extract(epoch FROM recorded_at) * 1000000)::bigint,
                                    p_actors, p_kinds, v_keys, p_bodies), 'UTF8');
    digest := sha256(v_digest || sha256(v_text));
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, digest, bytes, append_id, answers,
                       structure_sequence, created)
        VALUES (p_tournament_id, last_sequence, first_sequence, recorded_at, digest, length(v_text), p_append_id, answers,
                CASE WHEN p_structural AND (answers IS NULL OR answers[cardinality(answers)] > 0)
                     THEN last_sequence ELSE v_structure END,
                p_created);
END
$$;

-- As processes of the version before call it.
CREATE OR REPLACE FUNCTION append_block(
    p_tournament_id bigint,
    p_append_id     uuid,
    p_again         boolean,
    p_judged_at     bigint,
    p_judged_digest bytea,
    p_structural    boolean,
    p_exact         boolean,
    p_wait          boolean,
    p_created       bigint[],
    p_refusals      bigint,
    p_event_counts  int[],
    p_keys          text[],
    p_fingerprints  bytea[],
    p_actors        bigint[],
    p_kinds         text[],
    p_bodies        text[],
    OUT status          text,
    OUT first_sequence  bigint,
    OUT last_sequence   bigint,
    OUT recorded_at     timestamptz,
    OUT previous_digest bytea,
    OUT digest          bytea,
    OUT answers         bigint[]
)
LANGUAGE sql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
    SELECT status, first_sequence, last_sequence, recorded_at, previous_digest, digest, answers
    FROM append_block(p_tournament_id, p_append_id, p_again, p_judged_at, p_judged_digest, p_structural, p_exact, p_wait,
                      p_created, p_refusals, 0, p_event_counts, p_keys, p_fingerprints, p_actors, p_kinds, p_bodies)
$$;

-- Enters a tournament in the registry and appends its first event. False where the slug is taken.
CREATE OR REPLACE FUNCTION open_tournament(
    p_tournament_id bigint, p_slug text, p_name text, p_append_id uuid, p_actor bigint, p_kind text, p_body text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
BEGIN
    INSERT INTO tournament (tournament_id, slug, name)
        VALUES (p_tournament_id, p_slug, p_name)
        ON CONFLICT (slug) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO append_lock (tournament_id) VALUES (p_tournament_id);
    PERFORM append_block(p_tournament_id, p_append_id, false, 0, NULL, true, false, true, NULL, 0, 0, NULL, NULL, NULL,
                         ARRAY[p_actor], ARRAY[p_kind], ARRAY[p_body]);
    RETURN true;
END
$$;

REVOKE EXECUTE ON FUNCTION append_block(
    bigint, uuid, boolean, bigint, bytea, boolean, boolean, boolean, bigint[], bigint, bigint, int[], text[], bytea[],
    bigint[], text[], text[]
) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_block(
    bigint, uuid, boolean, bigint, bytea, boolean, boolean, boolean, bigint[], bigint, bigint, int[], text[], bytea[],
    bigint[], text[], text[]
) TO tallybook_service;
