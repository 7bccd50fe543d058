-- The log: what has happened in each tournament, in one order, for ever.
--
-- First migration; nothing runs before it. Every key begins with tournament_id, so that the schema can be
-- distributed by it; the registry of tournaments is the one exception.

CREATE SEQUENCE resource_id AS bigint;
COMMENT ON SEQUENCE resource_id IS 'Ids of everything in tournaments: promised to be unique within each, never meant to be ordered.';

CREATE TABLE tournament (
    tournament_id bigint PRIMARY KEY CHECK (tournament_id > 0),
    slug          text NOT NULL UNIQUE,
    name          text NOT NULL
);
COMMENT ON TABLE tournament IS 'Registry: which tournament a slug of the path means. Rows never change.';

CREATE TABLE head (
    tournament_id      bigint PRIMARY KEY,
    sequence           bigint NOT NULL,
    structure_sequence bigint NOT NULL,
    recorded_at        timestamptz NOT NULL,
    digest             bytea NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE head IS 'The last sequence and digest of each tournament. Its row lock is what orders the log.';
COMMENT ON COLUMN head.structure_sequence IS 'Sequence of the last block that held a structural event.';

CREATE TABLE event (
    tournament_id   bigint NOT NULL,
    sequence        bigint NOT NULL,
    recorded_at     timestamptz NOT NULL,
    actor           bigint NOT NULL,
    kind            text NOT NULL,
    idempotency_key text,
    body            text NOT NULL,
    PRIMARY KEY (tournament_id, sequence)
);
COMMENT ON COLUMN event.actor IS 'Id of the token that asked for it; 0 is the operator on the command line.';
COMMENT ON COLUMN event.kind IS 'The written tag: never reused, see engine/codec.py.';
COMMENT ON COLUMN event.body IS 'JSON text, kept byte for byte because the digest is over the bytes.';
-- Not compressed: of a thousand deltas (some 15 KB) that would take a third of the time that PostgreSQL needs for them.
ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE block (
    tournament_id  bigint NOT NULL,
    last_sequence  bigint NOT NULL,
    first_sequence bigint NOT NULL,
    recorded_at    timestamptz NOT NULL,
    digest         bytea NOT NULL,
    bytes          bigint NOT NULL,
    append_id      uuid NOT NULL,
    answers        bigint[],
    PRIMARY KEY (tournament_id, last_sequence)
);
COMMENT ON TABLE block IS 'The events that one commit appended to one tournament, with the digest that chains them to the past.';
COMMENT ON COLUMN block.bytes IS 'Length of its text, see block_text: who reads bounds what he reads by it.';
COMMENT ON COLUMN block.append_id IS 'Whose block this is, so that a commit of unknown outcome can ask again.';
COMMENT ON COLUMN block.answers IS 'What append_block answered for each request; NULL: all were appended, one after the other.';

CREATE TABLE idempotency (
    tournament_id   bigint NOT NULL,
    idempotency_key text NOT NULL,
    fingerprint     bytea NOT NULL,
    sequence        bigint NOT NULL,
    PRIMARY KEY (tournament_id, idempotency_key)
);
COMMENT ON TABLE idempotency IS 'Which request a key was used for, and the sequence of its first event. Kept as long as the log.';

-- ── Append only ─────────────────────────────────────────────────────────────────────────────────────────
-- Grants stop the service; the trigger stops the owner's slips. (Neither stops an owner who means it: that
-- is what the digest chain, compared with a head kept elsewhere, is for.)

CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON tournament
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON block
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON idempotency
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER head_stays BEFORE DELETE OR TRUNCATE ON head
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ── The hash chain ──────────────────────────────────────────────────────────────────────────────────────
-- digest(block) = SHA-256(digest(previous block) ‖ SHA-256(text of the block in UTF-8)).
-- engine/digest.py is the same in Python; a test holds the two against each other.

CREATE FUNCTION genesis_digest(p_tournament_id bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256('tallybook log 1'::bytea || int8send(p_tournament_id))
$$;

-- Every stored field of a block's events as one JSON text without blanks: the first sequence, the time in µs since
-- 1970, then the column of each field in the order of the events; null for the keys where no event has one.
CREATE FUNCTION block_text(
    p_first_sequence bigint, p_recorded_us bigint, p_actors bigint[], p_kinds text[], p_keys text[], p_bodies text[]
) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT format('[%s,%s,%s,%s,%s,%s]', p_first_sequence, p_recorded_us, array_to_json(p_actors),
                  array_to_json(p_kinds), coalesce(array_to_json(p_keys)::text, 'null'), array_to_json(p_bodies))
$$;

-- ── The one door ────────────────────────────────────────────────────────────────────────────────────────
-- Appends one block of requests to one tournament, and says what became of each:
--
--   status    appended   answers holds, per request: n > 0, appended, its first event has sequence n;
--                        n < 0, a repeat of the request whose first event has sequence -n;
--                        0, its idempotency key belongs to another request. NULL: all were appended, one after
--                        the other. Where nothing was, there is no first_sequence.
--             overtaken  nothing was appended: a structural event landed after p_judged_at, or, for a block that is
--                        exact, any event; or p_judged_at is not of this log. Judge again.
--             busy       nothing was appended: somebody holds the head, and p_wait is false.
--             unknown    there is no such tournament.
--
-- THE LOCK. A reader that remembers "I have seen everything up to n" and asks for `sequence > n` is right only
-- if no smaller number can become visible later. With numbers from a database sequence it can: one transaction
-- takes 7, another takes 8 and commits first, the reader sees 8, remembers 8, and never sees 7. That is the
-- classic lost event of logs in PostgreSQL. Here the next number is the head row's plus one, and the head row
-- stays locked from before the number is drawn until the commit; so whoever draws the following number does it
-- after this commit is visible: numbers have no gaps, and their order is the order of commits. The lock is a
-- statement of its own because, under READ COMMITTED, a statement sees what had been committed when *it* began:
-- only those after the lock are sure to see all that the previous holder wrote (its append ids, its keys).
CREATE FUNCTION append_block(
    p_tournament_id bigint,
    p_append_id     uuid,
    p_judged_at     bigint,    -- every structural event up to this sequence was known to whoever judged
    p_structural    boolean,   -- the last request holds a structural event
    p_exact         boolean,   -- every event up to p_judged_at was known, and none may lie in between
    p_wait          boolean,   -- wait for the head (up to lock_timeout) instead of answering busy
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
    v_head head%ROWTYPE;
    v_seen idempotency%ROWTYPE;
    v_next bigint;
    v_new  boolean[];   -- per event: it is appended
    v_keys text[];      -- per event; NULL where none has a key
    v_text bytea;
BEGIN
    IF p_wait THEN
        SELECT * INTO v_head FROM head AS h WHERE h.tournament_id = p_tournament_id FOR UPDATE;
    ELSE
        SELECT * INTO v_head FROM head AS h WHERE h.tournament_id = p_tournament_id FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        status := CASE WHEN EXISTS (SELECT FROM head AS h WHERE h.tournament_id = p_tournament_id)
                       THEN 'busy' ELSE 'unknown' END;
        RETURN;
    END IF;

    -- 1. Sent again after a lost answer: say what was said then. It was appended after it was judged, so where nothing
    --    was, there is nothing to look for.
    IF v_head.sequence > p_judged_at THEN
        SELECT 'appended', b.first_sequence, b.last_sequence, b.recorded_at, b.digest, b.answers
            INTO status, first_sequence, last_sequence, recorded_at, digest, answers
            FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence > p_judged_at AND b.append_id = p_append_id;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;

    -- 2. Judged on a structure that is no longer, or never was.
    IF v_head.structure_sequence > p_judged_at OR v_head.sequence < p_judged_at
        OR (p_exact AND v_head.sequence > p_judged_at) THEN
        status := 'overtaken';
        RETURN;
    END IF;

    -- 3. Known keys, this block's own included, because each is written before the next is looked up.
    IF p_keys IS NOT NULL THEN
        v_next := v_head.sequence + 1;
        FOR r IN 1 .. cardinality(p_keys) LOOP
            v_seen := NULL;
            IF p_keys[r] IS NOT NULL THEN
                SELECT * INTO v_seen FROM idempotency AS i
                    WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = p_keys[r];
            END IF;
            IF v_seen IS NULL THEN
                answers[r] := v_next;
                v_next := v_next + p_event_counts[r];
            ELSE
                answers[r] := CASE WHEN v_seen.fingerprint = p_fingerprints[r] THEN -v_seen.sequence ELSE 0 END;
            END IF;
            IF v_seen IS NULL AND p_keys[r] IS NOT NULL THEN
                INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
                    VALUES (p_tournament_id, p_keys[r], p_fingerprints[r], answers[r]);
            END IF;
            v_new := v_new || array_fill(v_seen IS NULL, ARRAY[p_event_counts[r]]);
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
    previous_digest := v_head.digest;
    IF p_bodies IS NULL THEN
        RETURN;   -- nothing but repeats
    END IF;

    -- 4. The next sequences, and a time that never runs backwards.
    first_sequence := v_head.sequence + 1;
    last_sequence := v_head.sequence + cardinality(p_bodies);
    recorded_at := greatest(clock_timestamp(), v_head.recorded_at);

    -- 5. Events, and the chain over what is stored.
    IF cardinality(p_bodies) = 1 THEN   -- most blocks where there are many tournaments; it saves a tenth of the call
        INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body)
            VALUES (p_tournament_id, first_sequence, recorded_at, p_actors[1], p_kinds[1], v_keys[1], p_bodies[1]);
    ELSE
        INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body)
            SELECT p_tournament_id, v_head.sequence + new.n, append_block.recorded_at, new.actor, new.kind, new.key,
                new.body
            FROM unnest(p_actors, p_kinds, v_keys, p_bodies) WITH ORDINALITY AS new (actor, kind, key, body, n);
    END IF;
    v_text := convert_to(block_text(first_sequence, (extract(epoch FROM recorded_at) * 1000000)::bigint,
                                    p_actors, p_kinds, v_keys, p_bodies), 'UTF8');
    digest := sha256(v_head.digest || sha256(v_text));
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, digest, bytes, append_id, answers)
        VALUES (p_tournament_id, last_sequence, first_sequence, recorded_at, digest, length(v_text), p_append_id,
                answers);
    UPDATE head AS h
        SET sequence = append_block.last_sequence,
            structure_sequence = CASE WHEN p_structural AND (answers IS NULL OR answers[cardinality(answers)] > 0)
                                      THEN append_block.last_sequence ELSE h.structure_sequence END,
            recorded_at = append_block.recorded_at,
            digest = append_block.digest
        WHERE h.tournament_id = p_tournament_id;
END
$$;

-- Enters a tournament in the registry and appends its first event. False where the slug is taken.
CREATE FUNCTION open_tournament(
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
    INSERT INTO head (tournament_id, sequence, structure_sequence, recorded_at, digest)
        VALUES (p_tournament_id, 0, 0, clock_timestamp(), genesis_digest(p_tournament_id));
    PERFORM append_block(p_tournament_id, p_append_id, 0, true, false, true, NULL, NULL, NULL,
                         ARRAY[p_actor], ARRAY[p_kind], ARRAY[p_body]);
    RETURN true;
END
$$;

-- ── The role the service works as ───────────────────────────────────────────────────────────────────────
-- Roles belong to the cluster: another database's migration may have made it already, or be making it now.

DO $$
BEGIN
    CREATE ROLE tallybook_service NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;

-- From version 16 on, whoever creates a role may administer it, but not yet become it.
DO $$
BEGIN
    IF NOT pg_has_role(
        current_user,
        'tallybook_service',
        CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END
    ) THEN
        GRANT tallybook_service TO CURRENT_USER;
    END IF;
END
$$;

GRANT USAGE ON SCHEMA tallybook TO tallybook_service;
GRANT USAGE ON SEQUENCE resource_id TO tallybook_service;
GRANT SELECT ON tournament, head, event, block, idempotency TO tallybook_service;
REVOKE EXECUTE ON FUNCTION append_block, open_tournament FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_block, open_tournament TO tallybook_service;
