-- A judgement belongs to a history: what was judged by a log that has been replaced is not appended to this one.
--
-- Oldest code that runs on it: 0004
-- Processes of the version before go on: they find `head`, and an `append_block` of twelve arguments, as before,
-- without the new checks. Takes an exclusive lock on `head` for as long as it takes to copy one row for each tournament.
--
-- The head of a tournament is its last block, found by the index. What is locked is a row that is never changed by an
-- append. A row that every append updates leaves a dead version each time, which cannot be removed while anybody (a
-- backup, an audit) holds a snapshot that is older; whoever locks the row, or reads it, has to walk over all of them.

SET LOCAL lock_timeout = '5s';
LOCK TABLE head IN ACCESS EXCLUSIVE MODE;

ALTER TABLE block ADD COLUMN structure_sequence bigint;
ALTER TABLE block ADD COLUMN created bigint[];
COMMENT ON COLUMN block.structure_sequence IS 'Sequence of the last block up to this one that held a structural event; NULL: written before this was kept, take the block for structural.';
COMMENT ON COLUMN block.created IS 'Ids of what its events created; NULL: nothing, or written before this was kept.';

CREATE TABLE append_lock (
    tournament_id bigint PRIMARY KEY,
    refusals      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE append_lock IS 'One row for each tournament. Its row lock is what orders the log.';
COMMENT ON COLUMN append_lock.refusals IS 'How many requests with an idempotency key have been refused for good, see refuse_keys.';

INSERT INTO append_lock (tournament_id) SELECT tournament_id FROM head;
DROP TABLE head;

CREATE VIEW head AS
SELECT
    l.tournament_id,
    b.last_sequence AS sequence,
    coalesce(b.structure_sequence, b.last_sequence) AS structure_sequence,
    b.recorded_at,
    b.digest
FROM append_lock AS l
CROSS JOIN LATERAL (
    SELECT last_sequence, structure_sequence, recorded_at, digest
    FROM block
    WHERE tournament_id = l.tournament_id
    ORDER BY last_sequence DESC
    LIMIT 1
) AS b;
COMMENT ON VIEW head IS 'The last sequence and digest of each tournament: those of its last block.';

CREATE TABLE refusal (
    tournament_id   bigint NOT NULL,
    idempotency_key text NOT NULL,
    number          bigint NOT NULL,
    PRIMARY KEY (tournament_id, idempotency_key)
);
COMMENT ON TABLE refusal IS 'Idempotency keys of requests that were refused. What was sent with the key before must not be appended any more.';
COMMENT ON COLUMN refusal.number IS 'Which of the tournament''s refusals it was, the last one of the key.';

CREATE TRIGGER lock_stays BEFORE DELETE OR TRUNCATE ON append_lock
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refusal_stays BEFORE DELETE OR TRUNCATE ON refusal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ── The one door ────────────────────────────────────────────────────────────────────────────────────────
-- Appends one block of requests to one tournament, and says what became of each:
--
--   status    appended   answers holds, per request: n > 0, appended, its first event has sequence n;
--                        n < 0, a repeat of the request whose first event has sequence -n;
--                        0, its idempotency key belongs to another request;
--                        NULL, a request with its key was refused after it had been sent, so it must not be appended.
--                        NULL in place of the array: all were appended, one after the other. Where nothing was,
--                        there is no first_sequence.
--             overtaken  nothing was appended: p_judged_at and p_judged_digest are not of this log; or a structural
--                        event landed after p_judged_at, or, for a block that is exact, any event; or one of
--                        p_created was created after p_judged_at; or, for a block that is sent for the first time, so
--                        much landed after p_judged_at that it is better judged anew. Judge again.
--             busy       nothing was appended: somebody holds the lock, and p_wait is false.
--             unknown    there is no such tournament.
--
-- THE LOCK. A reader that remembers "I have seen everything up to n" and asks for `sequence > n` is right only
-- if no smaller number can become visible later. With numbers from a database sequence it can: one transaction
-- takes 7, another takes 8 and commits first, the reader sees 8, remembers 8, and never sees 7. That is the
-- classic lost event of logs in PostgreSQL. Here the next number is the last block's plus one, and the row in
-- append_lock stays locked from before the number is drawn until the commit; so whoever draws the following number
-- does it after this commit is visible: numbers have no gaps, and their order is the order of commits. The lock is a
-- statement of its own because, under READ COMMITTED, a statement sees what had been committed when *it* began:
-- only those after the lock are sure to see all that the previous holder wrote (its block, its append ids, its keys).
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
    OUT answers         bigint[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
DECLARE
    c_between_max constant bigint := 2000;   -- events between p_judged_at and the head, of a block sent first
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

        -- 3. Judged on a structure that is no longer, or ids that were free then.
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

    -- 4. Known keys, this block's own included, because each is written before the next is looked up.
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

    -- 5. The next sequences, and a time that never runs backwards.
    first_sequence := v_head + 1;
    last_sequence := v_head + cardinality(p_bodies);
    recorded_at := greatest(clock_timestamp(), v_time);

    -- 6. Events, and the chain over what is stored.
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
    p_judged_at     bigint,
    p_structural    boolean,
    p_exact         boolean,
    p_wait          boolean,
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
    SELECT *
    FROM append_block(p_tournament_id, p_append_id, true, p_judged_at, NULL, p_structural, p_exact, p_wait, NULL,
                      9223372036854775807, p_event_counts, p_keys, p_fingerprints, p_actors, p_kinds, p_bodies)
$$;

-- Refuses requests with idempotency keys, for good: nothing that was sent with one of these keys before is appended any
-- more, by whichever process; what is sent with it later may be. Says, in the order of the keys, which request used each,
-- NULL where none did, and how many refusals there are now. Waits for whoever appends at the moment. Its commit is not
-- confirmed before that of the request which used the key is.
CREATE FUNCTION refuse_keys(p_tournament_id bigint, p_keys text[])
RETURNS TABLE (idempotency_key text, fingerprint bytea, sequence bigint, refusals bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_refusals bigint;
BEGIN
    SELECT l.refusals INTO v_refusals FROM append_lock AS l WHERE l.tournament_id = p_tournament_id FOR UPDATE;
    IF EXISTS (
        SELECT FROM unnest(p_keys) AS k (key)
        WHERE NOT EXISTS (
            SELECT FROM idempotency AS i WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = k.key
        )
    ) THEN
        v_refusals := v_refusals + 1;
        UPDATE append_lock AS l SET refusals = v_refusals WHERE l.tournament_id = p_tournament_id;
        INSERT INTO refusal AS f (tournament_id, idempotency_key, number)
            SELECT DISTINCT p_tournament_id, k.key, v_refusals
            FROM unnest(p_keys) AS k (key)
            WHERE NOT EXISTS (
                SELECT FROM idempotency AS i WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = k.key
            )
            ON CONFLICT ON CONSTRAINT refusal_pkey DO UPDATE SET number = excluded.number;
    END IF;
    RETURN QUERY
        SELECT k.key, i.fingerprint, i.sequence, v_refusals
        FROM unnest(p_keys) WITH ORDINALITY AS k (key, n)
        LEFT JOIN idempotency AS i ON i.tournament_id = p_tournament_id AND i.idempotency_key = k.key
        ORDER BY k.n;
END
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
    PERFORM append_block(p_tournament_id, p_append_id, false, 0, NULL, true, false, true, NULL, 0, NULL, NULL, NULL,
                         ARRAY[p_actor], ARRAY[p_kind], ARRAY[p_body]);
    RETURN true;
END
$$;

GRANT SELECT ON append_lock, refusal, head TO tallybook_service;
REVOKE EXECUTE ON FUNCTION append_block(
    bigint, uuid, boolean, bigint, bytea, boolean, boolean, boolean, bigint[], bigint, int[], text[], bytea[], bigint[],
    text[], text[]
), refuse_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_block(
    bigint, uuid, boolean, bigint, bytea, boolean, boolean, boolean, bigint[], bigint, int[], text[], bytea[], bigint[],
    text[], text[]
), refuse_keys TO tallybook_service;
