-- The log: what has happened in each tournament, in one order, for ever. The baseline has one file for each subject.
--
-- Every key begins with tournament_id, so that the schema can be distributed by it. The exceptions are the registry of
-- tournaments, and tables that belong to the whole service.

CREATE SEQUENCE resource_id AS bigint;
COMMENT ON SEQUENCE resource_id IS 'Ids of everything in tournaments: unique within each, in no promised order.';

CREATE TABLE tournament (
    tournament_id bigint PRIMARY KEY CHECK (tournament_id > 0),
    slug          text NOT NULL UNIQUE,
    name          text NOT NULL
);
COMMENT ON TABLE tournament IS 'Registry: which tournament a slug of the path means. Rows never change.';
COMMENT ON COLUMN tournament.name IS 'The name that it was opened with; events of the kind TournamentRenamed give others.';

-- The head of a tournament is its last block, found by the index. The lock is a row that appends never change: a row that
-- every append updated would leave a dead version each time. Those cannot be removed while any session (a backup, an
-- audit) holds an older snapshot, and every lock and read of the row would have to scan them.
CREATE TABLE append_lock (
    tournament_id bigint PRIMARY KEY,
    refusals      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE append_lock IS 'One row for each tournament. Its row lock is what orders the log.';
COMMENT ON COLUMN append_lock.refusals IS 'How many requests with an idempotency key have been refused for good, see refuse_keys.';

CREATE TABLE block (
    tournament_id      bigint NOT NULL,
    last_sequence      bigint NOT NULL,
    first_sequence     bigint NOT NULL,
    recorded_at        timestamptz NOT NULL,
    structure_sequence bigint NOT NULL,
    log_bytes          bigint NOT NULL,
    append_id          uuid NOT NULL,
    rules              smallint NOT NULL DEFAULT 1,
    personal           boolean NOT NULL DEFAULT false,
    digest             bytea NOT NULL,
    text               text NOT NULL,
    answers            bigint[],
    created            bigint[],
    PRIMARY KEY (tournament_id, last_sequence)
) WITH (autovacuum_freeze_min_age = 0);  -- rows stay: frozen at their first vacuum, not all at once later
COMMENT ON TABLE block IS 'The events that one commit appended to one tournament, with the digest that chains them to the past.';
COMMENT ON COLUMN block.structure_sequence IS 'Sequence of the last block up to this one that held a structural event.';
COMMENT ON COLUMN block.log_bytes IS 'Length of the texts and personal fields of all blocks up to this one, as they were appended.';
COMMENT ON COLUMN block.append_id IS 'Identifies the sender''s block, so that after an unknown outcome it can ask again.';
COMMENT ON COLUMN block.rules IS 'Version of the rules that its events were judged by: stricter ones hold for later blocks.';
COMMENT ON COLUMN block.personal IS 'Whether any of its events had personal fields when it was appended: see the table personal.';
COMMENT ON COLUMN block.text IS
    'A line for each event, with line feeds between them: the JSON array of its kind (never reused, see engine/log/codec.py), its actor (the id of the token of the request; 0 is the operator on the command line), its idempotency key or null, and its body. Kept byte for byte because the digest is over the bytes.';
COMMENT ON COLUMN block.answers IS 'What append_block answered for each request; NULL: all were appended, one after the other.';
COMMENT ON COLUMN block.created IS 'Ids of what its events created; NULL: nothing.';
-- Not compressed: compressing a thousand deltas (some 15 KB) would take a third of the time that PostgreSQL needs for them.
ALTER TABLE block ALTER COLUMN text SET STORAGE EXTERNAL;

-- What tells of a person, apart from the block: the one thing that is ever erased.
CREATE TABLE personal (
    tournament_id bigint NOT NULL,
    sequence      bigint NOT NULL,
    competitor_id bigint NOT NULL,
    text          text NOT NULL,
    PRIMARY KEY (tournament_id, sequence)
);
COMMENT ON TABLE personal IS
    'Fields of events that tell of a person, after a random salt. The body of the event has the SHA-256 of the text, so the digest does not cover the text itself. No row: the event has none, or they were erased.';
CREATE INDEX personal_competitor ON personal (tournament_id, competitor_id);

CREATE TABLE topic (
    tournament_id bigint NOT NULL,
    topic         bigint NOT NULL,
    sequence      bigint NOT NULL,
    PRIMARY KEY (tournament_id, topic, sequence)
) WITH (autovacuum_freeze_min_age = 0);
COMMENT ON TABLE topic IS 'Events that can be found by what they are about without reading all, see engine/log/codec.py.';
COMMENT ON COLUMN topic.topic IS
    'The competition that the event changes, or whose points it adds or reverses; or -1: it sets an event aside, -2: it renames the tournament, -3: it erases a competitor, -4: a scoring gives points, -5: it deletes the tournament, -6: it restores it, -4611686018427387904 + n: it takes back, restores or corrects points that have the place of event n.';

CREATE VIEW event AS
SELECT
    b.tournament_id,
    b.first_sequence + e.n - 1 AS sequence,
    b.recorded_at,
    (e.line::json ->> 1)::bigint AS actor,
    e.line::json ->> 0 AS kind,
    e.line::json ->> 2 AS idempotency_key,
    e.line::json ->> 3 AS body,
    CASE WHEN b.personal THEN (
        SELECT p.text FROM personal AS p
        WHERE p.tournament_id = b.tournament_id AND p.sequence = b.first_sequence + e.n - 1
    ) END AS personal
FROM block AS b
CROSS JOIN LATERAL string_to_table(b.text, chr(10)) WITH ORDINALITY AS e (line, n);
COMMENT ON VIEW event IS
    'Each event of the log. It takes all blocks of a tournament apart: for one event, ask the block that holds it.';

CREATE VIEW head AS
SELECT
    l.tournament_id,
    b.last_sequence AS sequence,
    b.structure_sequence,
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

CREATE TABLE idempotency (
    tournament_id   bigint NOT NULL,
    idempotency_key text NOT NULL,
    fingerprint     bytea NOT NULL,
    sequence        bigint NOT NULL,
    PRIMARY KEY (tournament_id, idempotency_key)
) WITH (autovacuum_freeze_min_age = 0);
COMMENT ON TABLE idempotency IS 'Which request a key was used for, and the sequence of its first event. Kept as long as the log.';
COMMENT ON COLUMN idempotency.fingerprint IS '32 bytes, of which the first 8 tell the operation and its path; behind them the name of the import that made the request, see engine/log/import_runs.py. Only the first 8: the request named somebody who was erased.';
CREATE INDEX idempotency_import ON idempotency (tournament_id, substring(fingerprint FROM 33), sequence)
    WHERE octet_length(fingerprint) > 32;

CREATE TABLE refusal (
    tournament_id   bigint NOT NULL,
    idempotency_key text NOT NULL,
    number          bigint NOT NULL,
    PRIMARY KEY (tournament_id, idempotency_key)
);
COMMENT ON TABLE refusal IS 'Idempotency keys of refused requests. Earlier sendings with the key must not be appended any more.';
COMMENT ON COLUMN refusal.number IS 'Which of the tournament''s refusals it was, the last one of the key.';

-- ── Append only ─────────────────────────────────────────────────────────────────────────────────────────
-- Grants stop the service; the trigger stops mistakes of the owner. (Neither stops an owner with intent: the digest chain,
-- compared with a head kept elsewhere, is for that.) Only the owner can delete a tournament, in a transaction that sets
-- tallybook.deleting. The service's role has no right to delete a row of the log. The record of a deletion cannot be
-- deleted.

CREATE TABLE deleted_tournament (
    tournament_id bigint NOT NULL,
    deleted_at    timestamptz NOT NULL,
    slug          text NOT NULL,
    name          text NOT NULL,
    sequence      bigint NOT NULL,
    digest        bytea NOT NULL,
    exported      boolean NOT NULL,
    PRIMARY KEY (tournament_id, deleted_at)
);
CREATE INDEX deleted_slug ON deleted_tournament (slug);
COMMENT ON TABLE deleted_tournament IS
    'Tournaments that the owner has deleted. Rows never change; one that was imported again, and deleted again, has two.';
COMMENT ON COLUMN deleted_tournament.sequence IS 'The last event of its log; 0: there was none.';
COMMENT ON COLUMN deleted_tournament.digest IS 'The digest of the block of that event.';
COMMENT ON COLUMN deleted_tournament.exported IS 'Whether an archive of just this log was shown.';

CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND (
        (current_setting('tallybook.deleting', true) = 'on' AND TG_TABLE_NAME NOT LIKE 'deleted\_tournament%')
        OR (current_setting('tallybook.erasing', true) = 'on' AND TG_TABLE_NAME LIKE 'personal%')   -- see append_block
    ) THEN
        RETURN NULL;
    END IF;
    IF TG_LEVEL = 'ROW' THEN   -- the fingerprint of a key may be emptied
        IF NEW.fingerprint = substring(OLD.fingerprint FOR 8)
            AND to_jsonb(NEW) - 'fingerprint' = to_jsonb(OLD) - 'fingerprint' THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON tournament
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON block
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON topic
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON personal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON idempotency
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER only_emptied BEFORE UPDATE ON idempotency
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON deleted_tournament
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lock_stays BEFORE DELETE OR TRUNCATE ON append_lock
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refusal_stays BEFORE DELETE OR TRUNCATE ON refusal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ── The hash chain ──────────────────────────────────────────────────────────────────────────────────────
-- digest(block) = SHA-256(digest(previous block) ‖ SHA-256(first sequence, a blank, the time in µs since 1970, a line feed,
-- and the text of the block; in UTF-8)). engine/log/digest.py does the same in Python; a test compares both.

CREATE FUNCTION genesis_digest(p_tournament_id bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256('tallybook log 1'::bytea || int8send(p_tournament_id))
$$;

-- What stands before the text of a block where it is hashed, and in `unseen`.
CREATE FUNCTION block_place(p_first_sequence bigint, p_recorded_at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT p_first_sequence || ' ' || (extract(epoch FROM p_recorded_at) * 1000000)::bigint || chr(10)
$$;

-- ── The one door ────────────────────────────────────────────────────────────────────────────────────────
-- Appends one block of requests to one tournament, and returns the outcome:
--
--   status    appended   answers has for each request: n > 0, appended, its first event has sequence n;
--                        n < 0, a repeat of the request whose first event has sequence -n;
--                        0, its idempotency key belongs to another request;
--                        NULL, a request with its key was refused after this one was sent, so it must not be appended.
--                        NULL instead of the array: all were appended, one after the other. If nothing was appended,
--                        first_sequence is NULL.
--             overtaken  nothing was appended: p_judged_at and p_judged_digest are not of this log; or a structural
--                        event landed after p_judged_at, or, for an exact block, any event; or one of p_created was
--                        created after p_judged_at; or, at the first sending of a block, more than c_between_max
--                        events landed after p_judged_at. Judge again.
--             passed     nothing was appended: recorded_at, the time, is not p_within. Judge again by what expires by then.
--             busy       nothing was appended: another transaction holds the lock, and p_wait is false.
--             unknown    there is no such tournament.
--
--   unseen    what was hashed of the blocks after p_judged_at, up to the head before this block, with chr(30) between
--             them; no text contains that. If events have personal fields, chr(29) and a JSON object of these by sequence
--             follow. The chain leads from p_judged_digest to previous_digest; also if the status is overtaken. NULL:
--             nothing landed, or more than p_unseen_bytes or c_unseen_max blocks, or the block at p_judged_at is not the
--             sender's, or the block is exact, or the answer is that of an earlier sending. They are read while the lock
--             is held, so they have no gap to the block, and no repeats.
--
-- THE LOCK. A reader that remembers "I have seen everything up to n" and asks for `sequence > n` is right only if no
-- smaller number can become visible later. With numbers from a database sequence it can: one transaction takes 7, another
-- takes 8 and commits first, the reader sees 8, remembers 8, and never sees 7. That is the classic lost event of logs in
-- PostgreSQL. Here the next number is the last block's plus one, and the row in append_lock stays locked from before the
-- number is drawn until the commit. So the next number is drawn after this commit is visible: numbers have no gaps, and
-- their order is the order of commits. The lock is a statement of its own because, under READ COMMITTED, a statement sees
-- what had been committed when *it* began: only statements after the lock are sure to see everything that the previous
-- holder wrote (its block, its append ids, its keys).
--
-- Citus moves a shard to another node under row locks, but not under writes. The holder of a lock on the old node would
-- then write on the new one, where another has locked the copy of that row. So on Citus a statement that changes nothing
-- stands before the lock: Citus takes it for a write, and the shard stays until the commit.
CREATE FUNCTION append_block(
    p_tournament_id bigint,
    p_append_id     uuid,
    p_again         boolean,   -- it may have been sent before
    p_judged_at     bigint,    -- the sender knew every structural event up to this sequence
    p_judged_digest bytea,     -- of the block that ends there, as the sender knew it; NULL: any
    p_structural    boolean,   -- the last request has a structural event
    p_exact         boolean,   -- the sender knew every event up to p_judged_at, and none may follow it
    p_wait          boolean,   -- wait for the lock (up to lock_timeout) instead of answering busy
    p_created       bigint[],  -- ids that the events create; NULL: none
    p_refusals      bigint,    -- the number of refusals when the requests came in
    p_unseen_bytes  bigint,    -- the most bytes of `unseen`; 0: none
    p_event_counts  int[],     -- per request; NULL, like the next two, if no request has a key
    p_keys          text[],
    p_fingerprints  bytea[],
    p_text          text,      -- of the block
    p_topics        text[],    -- per event: its topics with blanks between them, or NULL; NULL: no event has one
    p_personals     text[],    -- per event: its personal fields, or NULL; NULL: no event has any
    p_within        tstzrange, -- from the last boundary up to the next, as of the judging; NULL: nothing expires
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
    c_between_max constant bigint := 2000;   -- events between p_judged_at and the head, at the first sending
    c_unseen_max  constant bigint := 100;    -- blocks of `unseen`
    v_refusals  bigint;
    v_head      bigint;
    v_structure bigint;
    v_log_bytes bigint;
    v_time      timestamptz;
    v_now       timestamptz;
    v_digest    bytea;
    v_digest_then bytea;     -- at p_judged_at; NULL: no block ends there
    v_seen      idempotency%ROWTYPE;
    v_next      bigint;
    v_new       boolean[];   -- per event: it is appended
    v_erased    bigint[];    -- competitors
BEGIN
    IF current_setting('citus.shard_count', true) IS NOT NULL THEN
        UPDATE append_lock AS l SET refusals = 0 WHERE l.tournament_id = p_tournament_id AND l.refusals < 0;
    END IF;
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
    SELECT b.last_sequence, b.structure_sequence, b.log_bytes, b.recorded_at, b.digest
        INTO v_head, v_structure, v_log_bytes, v_time, v_digest
        FROM block AS b
        WHERE b.tournament_id = p_tournament_id
        ORDER BY b.last_sequence DESC
        LIMIT 1;
    IF NOT FOUND THEN   -- the tournament is being opened
        v_head := 0;
        v_structure := 0;
        v_log_bytes := 0;
        v_digest := genesis_digest(p_tournament_id);
    END IF;

    v_digest_then := v_digest;
    IF v_head <> p_judged_at THEN
        -- 1. Judged against another log, or too long ago to look for events since. (A block that may have been sent
        --    before is still looked for.)
        IF v_head < p_judged_at OR (NOT p_again AND v_head - p_judged_at > c_between_max) THEN
            status := 'overtaken';
            RETURN;
        END IF;

        -- 2. Sent again after a lost answer: give the same answer. It was appended after it was judged. First sendings
        --    are checked, too: the sender may have timed out and resent.
        SELECT 'appended', b.first_sequence, b.last_sequence, b.recorded_at, b.digest, b.answers
            INTO status, first_sequence, last_sequence, recorded_at, digest, answers
            FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence > p_judged_at AND b.append_id = p_append_id;
        IF FOUND THEN
            RETURN;
        END IF;

        SELECT b.digest INTO v_digest_then FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence = p_judged_at;

        -- 3. The blocks that the sender has not seen, if they are not too large, and if the sender knows this log. (An
        --    exact block will be judged again under the lock, against the log itself.)
        IF p_unseen_bytes > 0 AND NOT p_exact AND v_digest_then = p_judged_digest THEN
            SELECT string_agg(
                    block_place(b.first_sequence, b.recorded_at) || b.text || CASE WHEN b.personal THEN coalesce((
                        SELECT chr(29) || json_object_agg(p.sequence, p.text)
                        FROM personal AS p
                        WHERE p.tournament_id = p_tournament_id AND p.sequence BETWEEN b.first_sequence AND b.last_sequence
                    ), '') ELSE '' END,
                    chr(30) ORDER BY b.last_sequence
                )
                INTO unseen
                FROM (
                    SELECT l.*, sum(octet_length(l.text)) OVER () AS size, count(*) OVER () AS blocks
                    FROM (
                        SELECT *
                        FROM block AS b
                        WHERE b.tournament_id = p_tournament_id AND b.last_sequence > p_judged_at
                        ORDER BY b.last_sequence
                        LIMIT c_unseen_max + 1
                    ) AS l
                ) AS b
                WHERE b.size <= p_unseen_bytes AND b.blocks <= c_unseen_max;
            previous_digest := v_digest;
        END IF;

        -- 4. Judged against an outdated structure, or with ids that are no longer free.
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
    v_now := greatest(clock_timestamp(), v_time);   -- a time that never runs backwards

    -- 5. What expires at a boundary stands before everything else that is recorded after it. So a block is recorded
    --    between the two boundaries that it was judged between, and the first one there by who knew all that came before.
    IF p_within IS NOT NULL THEN
        IF NOT v_now <@ p_within THEN
            status := 'passed';
            recorded_at := v_now;
            unseen := NULL;
            RETURN;
        END IF;
        IF v_head <> p_judged_at AND v_time < lower(p_within) THEN
            status := 'overtaken';
            RETURN;
        END IF;
    END IF;

    -- 6. Known keys, including this block's own, because each is written before the next one is looked up.
    IF p_keys IS NOT NULL THEN
        v_next := v_head + 1;
        FOR r IN 1 .. cardinality(p_keys) LOOP
            v_seen := NULL;
            IF p_keys[r] IS NOT NULL THEN
                SELECT * INTO v_seen FROM idempotency AS i
                    WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = p_keys[r];
            END IF;
            IF v_seen IS NOT NULL THEN
                answers[r] := CASE WHEN v_seen.fingerprint IN (p_fingerprints[r], substring(p_fingerprints[r] FOR 8))
                                   THEN -v_seen.sequence ELSE 0 END;
            ELSIF p_keys[r] IS NOT NULL AND v_refusals > p_refusals AND EXISTS (
                SELECT FROM refusal AS f
                WHERE f.tournament_id = p_tournament_id AND f.idempotency_key = p_keys[r] AND f.number > p_refusals
            ) THEN
                answers[r] := NULL;
            ELSE
                answers[r] := v_next;
                v_next := v_next + p_event_counts[r];
                IF p_keys[r] IS NOT NULL THEN
                    INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
                        VALUES (p_tournament_id, p_keys[r], p_fingerprints[r], answers[r]);
                END IF;
            END IF;
            v_new := v_new || array_fill(coalesce(answers[r] > 0, false), ARRAY[p_event_counts[r]]);
        END LOOP;
        IF true = ALL (v_new) THEN
            answers := NULL;
        ELSE
            SELECT string_agg(e.line, chr(10) ORDER BY e.n), array_agg(e.topics ORDER BY e.n),
                    array_agg(e.personal ORDER BY e.n)
                INTO p_text, p_topics, p_personals
                FROM unnest(string_to_array(p_text, chr(10)), p_topics, p_personals, v_new) WITH ORDINALITY
                    AS e (line, topics, personal, is_new, n)
                WHERE e.is_new;
        END IF;
    END IF;

    status := 'appended';
    previous_digest := v_digest;
    IF p_text IS NULL THEN
        RETURN;   -- nothing is new
    END IF;

    -- 7. The next sequences, and the chain over the stored bytes.
    first_sequence := v_head + 1;
    last_sequence := v_head + cardinality(string_to_array(p_text, chr(10)));
    recorded_at := v_now;
    digest := sha256(v_digest || sha256(convert_to(block_place(first_sequence, recorded_at) || p_text, 'UTF8')));
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, log_bytes,
                       append_id, personal, digest, text, answers, created)
        VALUES (p_tournament_id, last_sequence, first_sequence, recorded_at,
                CASE WHEN p_structural AND (answers IS NULL OR answers[cardinality(answers)] > 0)
                     THEN last_sequence ELSE v_structure END,
                v_log_bytes + octet_length(p_text) + coalesce(octet_length(array_to_string(p_personals, '')), 0),
                p_append_id, coalesce(array_remove(p_personals, NULL) <> '{}', false), digest, p_text, answers, p_created);
    IF p_topics IS NOT NULL THEN
        INSERT INTO topic (tournament_id, topic, sequence)
            SELECT p_tournament_id, t.topic::bigint, append_block.first_sequence + e.n - 1
            FROM unnest(p_topics) WITH ORDINALITY AS e (topics, n)
            CROSS JOIN LATERAL string_to_table(e.topics, ' ') AS t (topic);
    END IF;
    IF p_personals IS NOT NULL THEN
        INSERT INTO personal (tournament_id, sequence, competitor_id, text)
            SELECT p_tournament_id, append_block.first_sequence + e.n - 1,
                (e.line::json -> 3 ->> 'competitor_id')::bigint, e.personal
            FROM unnest(string_to_array(p_text, chr(10)), p_personals) WITH ORDINALITY AS e (line, personal, n)
            WHERE e.personal IS NOT NULL;
    END IF;

    -- 8. What the log tells of erased competitors, and the fingerprints that were made of it.
    IF '-3' = ANY (p_topics) THEN
        v_erased := ARRAY(
            SELECT (e.line::json -> 3 ->> 'competitor_id')::bigint
            FROM unnest(string_to_array(p_text, chr(10)), p_topics) AS e (line, topics)
            WHERE e.topics = '-3'
        );
        UPDATE idempotency AS i
            SET fingerprint = substring(i.fingerprint FOR 8)
            WHERE i.tournament_id = p_tournament_id AND i.idempotency_key IN (
                SELECT split_part(b.text, chr(10), (p.sequence - b.first_sequence + 1)::int)::json ->> 2
                FROM personal AS p
                CROSS JOIN LATERAL (
                    SELECT k.text, k.first_sequence
                    FROM block AS k
                    WHERE k.tournament_id = p_tournament_id AND k.last_sequence >= p.sequence
                    ORDER BY k.last_sequence
                    LIMIT 1
                ) AS b
                WHERE p.tournament_id = p_tournament_id AND p.competitor_id = ANY (v_erased)
            );
        PERFORM set_config('tallybook.erasing', 'on', true);
        DELETE FROM personal AS p WHERE p.tournament_id = p_tournament_id AND p.competitor_id = ANY (v_erased);
        PERFORM set_config('tallybook.erasing', 'off', true);
    END IF;
END
$$;

-- Appends blocks to different tournaments, one to each, as append_block would one after the other without waiting for
-- locks; returns the outcome of each by its number. For a commit of many blocks, this costs half.
--
-- The first statement locks, the second, which therefore sees everything that came before, appends all blocks for which
-- append_block would have nothing to decide: the head is the one that they were judged against, their keys are new, and
-- nobody is erased. The others are left to append_block. All are recorded at one reading of the clock.
CREATE FUNCTION append_blocks(
    p_tournament_ids bigint[],   -- per block, like all that follow but p_unseen_bytes
    p_append_ids     uuid[],
    p_judged_at      bigint[],
    p_judged_digests bytea[],
    p_structural     boolean[],
    p_exact          boolean[],
    p_created        text[],     -- as lines, like p_event_counts, p_fingerprints, p_topics and p_personals
    p_refusals       bigint[],
    p_event_counts   text[],
    p_keys           text[],     -- as a JSON array
    p_fingerprints   text[],
    p_texts          text[],
    p_topics         text[],
    p_personals      text[],
    p_within         tstzrange[],
    p_unseen_bytes   bigint
) RETURNS TABLE (
    n               bigint,
    status          text,
    first_sequence  bigint,
    last_sequence   bigint,
    recorded_at     timestamptz,
    previous_digest bytea,
    digest          bytea,
    answers         bigint[],
    unseen          text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_locked   bigint[];
    v_refusals bigint[];
    v_now      timestamptz;
    v_done     bigint[] := '{}';
BEGIN
    IF (SELECT count(DISTINCT t) FROM unnest(p_tournament_ids) AS t) < cardinality(p_tournament_ids) THEN
        RAISE EXCEPTION 'a tournament has two blocks in one commit' USING ERRCODE = 'cardinality_violation';
    END IF;
    WITH locked AS (
        SELECT l.tournament_id, l.refusals
        FROM append_lock AS l
        WHERE l.tournament_id = ANY (p_tournament_ids)
        ORDER BY l.tournament_id
        FOR UPDATE SKIP LOCKED
    )
    SELECT array_agg(l.tournament_id), array_agg(l.refusals) INTO v_locked, v_refusals FROM locked AS l;
    v_now := clock_timestamp();
    FOR n, status, first_sequence, last_sequence, recorded_at, previous_digest, digest IN
        WITH sent AS MATERIALIZED (
            SELECT
                s.*, h.*, h.last_sequence + 1 AS first_sequence,
                h.last_sequence + cardinality(string_to_array(s.text, chr(10))) AS end_sequence,
                greatest(v_now, h.recorded_at) AS recorded_now,
                CASE WHEN s.keys IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(s.keys::json)) END AS each_key
            FROM unnest(
                p_tournament_ids, p_append_ids, p_judged_at, p_judged_digests, p_structural, p_created, p_refusals,
                p_event_counts, p_keys, p_fingerprints, p_texts, p_topics, p_personals, p_within
            ) WITH ORDINALITY AS s (
                tournament_id, append_id, judged_at, judged_digest, structural, created, refusals, event_counts, keys,
                fingerprints, text, topics, personals, within, n
            )
            JOIN unnest(v_locked, v_refusals) AS l (locked_id, newest_refusal) ON l.locked_id = s.tournament_id
            CROSS JOIN LATERAL (
                SELECT b.last_sequence, b.structure_sequence, b.log_bytes, b.recorded_at, b.digest
                FROM block AS b
                WHERE b.tournament_id = s.tournament_id
                ORDER BY b.last_sequence DESC
                LIMIT 1
            ) AS h
            WHERE h.last_sequence = s.judged_at AND coalesce(s.judged_digest = h.digest, true)
                AND coalesce(greatest(v_now, h.recorded_at) <@ s.within, true)
                AND coalesce(strpos(s.topics, '-3') = 0, true)
                AND (s.keys IS NULL OR l.newest_refusal <= s.refusals)
        ), made AS MATERIALIZED (
            SELECT
                *,
                sha256(s.digest || sha256(convert_to(block_place(s.first_sequence, s.recorded_now) || s.text, 'UTF8')))
                    AS new_digest
            FROM sent AS s
            WHERE s.each_key IS NULL OR (
                NOT EXISTS (
                    SELECT
                    FROM idempotency AS i
                    WHERE i.tournament_id = s.tournament_id AND i.idempotency_key = ANY (s.each_key)
                )
                AND (SELECT count(k) = count(DISTINCT k) FROM unnest(s.each_key) AS k)
            )
        ), entered AS (
            INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, log_bytes,
                               append_id, personal, digest, text, created)
                SELECT
                    m.tournament_id, m.end_sequence, m.first_sequence, m.recorded_now,
                    CASE WHEN m.structural THEN m.end_sequence ELSE m.structure_sequence END,
                    m.log_bytes + octet_length(m.text)
                        + coalesce(octet_length(replace(m.personals, chr(10), '')), 0),
                    m.append_id, m.personals IS NOT NULL, m.new_digest, m.text,
                    string_to_array(m.created, chr(10))::bigint[]
                FROM made AS m
        ), with_topics AS (
            INSERT INTO topic (tournament_id, topic, sequence)
                SELECT m.tournament_id, t.topic::bigint, m.last_sequence + e.n
                FROM made AS m
                CROSS JOIN LATERAL string_to_table(m.topics, chr(10)) WITH ORDINALITY AS e (topics, n)
                CROSS JOIN LATERAL string_to_table(nullif(e.topics, ''), ' ') AS t (topic)
                WHERE m.topics IS NOT NULL
        ), with_personals AS (
            INSERT INTO personal (tournament_id, sequence, competitor_id, text)
                SELECT
                    m.tournament_id, m.last_sequence + e.n, (e.line::json -> 3 ->> 'competitor_id')::bigint, e.personal
                FROM made AS m
                CROSS JOIN LATERAL unnest(
                    string_to_array(m.text, chr(10)), string_to_array(m.personals, chr(10))
                ) WITH ORDINALITY AS e (line, personal, n)
                WHERE m.personals IS NOT NULL AND e.personal <> ''
        ), with_keys AS (
            INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
                SELECT r.tournament_id, r.key, r.fingerprint, r.sequence
                FROM (
                    SELECT
                        m.tournament_id, e.key, e.fingerprint::bytea AS fingerprint,
                        m.first_sequence + sum(e.count) OVER (PARTITION BY m.n ORDER BY e.n) - e.count AS sequence
                    FROM made AS m
                    CROSS JOIN LATERAL unnest(
                        m.each_key, string_to_array(m.fingerprints, chr(10), ''),
                        string_to_array(m.event_counts, chr(10))::int[]
                    ) WITH ORDINALITY AS e (key, fingerprint, count, n)
                    WHERE m.each_key IS NOT NULL
                ) AS r
                WHERE r.key IS NOT NULL
        )
        SELECT m.n, 'appended', m.first_sequence, m.end_sequence, m.recorded_now, m.digest, m.new_digest FROM made AS m
    LOOP
        RETURN NEXT;
        v_done := v_done || n;
    END LOOP;
    FOR i IN 1 .. cardinality(p_tournament_ids) LOOP
        IF i <> ALL (v_done) THEN
            RETURN QUERY SELECT i::bigint, r.* FROM append_block(
                p_tournament_ids[i], p_append_ids[i], false, p_judged_at[i], p_judged_digests[i], p_structural[i],
                p_exact[i], false, string_to_array(p_created[i], chr(10))::bigint[], p_refusals[i], p_unseen_bytes,
                string_to_array(p_event_counts[i], chr(10))::int[],
                CASE WHEN p_keys[i] IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(p_keys[i]::json)) END,
                string_to_array(p_fingerprints[i], chr(10), '')::bytea[], p_texts[i],
                string_to_array(p_topics[i], chr(10), ''), string_to_array(p_personals[i], chr(10), ''), p_within[i]
            ) AS r;
        END IF;
    END LOOP;
END
$$;

-- Refuses requests with idempotency keys for good: no process appends anything more that was sent with one of these keys
-- before; requests sent with it later may be appended. Returns, in the order of the keys, which request used each, NULL if
-- none did, and the number of refusals. Waits for a running append. Its commit is not confirmed before that of the request
-- that used the key.
CREATE FUNCTION refuse_keys(p_tournament_id bigint, p_keys text[])
RETURNS TABLE (idempotency_key text, fingerprint bytea, sequence bigint, refusals bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_refusals bigint;
BEGIN
    UPDATE append_lock AS l SET refusals = 0 WHERE l.tournament_id = p_tournament_id AND l.refusals < 0;   -- see append_block
    SELECT l.refusals INTO v_refusals FROM append_lock AS l WHERE l.tournament_id = p_tournament_id FOR UPDATE;
    INSERT INTO refusal AS f (tournament_id, idempotency_key, number)
        SELECT DISTINCT p_tournament_id, k.key, v_refusals + 1
        FROM unnest(p_keys) AS k (key)
        WHERE NOT EXISTS (
            SELECT FROM idempotency AS i WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = k.key
        )
        ON CONFLICT ON CONSTRAINT refusal_pkey DO UPDATE SET number = excluded.number;
    IF FOUND THEN
        v_refusals := v_refusals + 1;
        UPDATE append_lock AS l SET refusals = v_refusals WHERE l.tournament_id = p_tournament_id;
    END IF;
    RETURN QUERY
        SELECT k.key, i.fingerprint, i.sequence, v_refusals
        FROM unnest(p_keys) WITH ORDINALITY AS k (key, n)
        LEFT JOIN idempotency AS i ON i.tournament_id = p_tournament_id AND i.idempotency_key = k.key
        ORDER BY k.n;
END
$$;

-- Enters a tournament in the registry and appends its first event. False if the slug is taken.
CREATE FUNCTION open_tournament(
    p_tournament_id bigint, p_slug text, p_name text, p_append_id uuid, p_text text
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
                         p_text, NULL, NULL, NULL);
    RETURN true;
END
$$;

-- Inserts one block of a tournament from another database: every stored field of the block and of its idempotency keys.
-- Raises an exception if the block does not follow the one before it, or if its text and the digest before it do not make
-- p_digest.
--
-- It has the rights of the caller, because only the owner may insert. Nobody sees the tournament before the transaction
-- enters it in the registry and commits (projections/verification/archives.py); nothing is appended meanwhile, because it
-- has no lock yet.
CREATE FUNCTION import_block(
    p_tournament_id      bigint,
    p_first_sequence     bigint,
    p_recorded_at        timestamptz,
    p_digest             bytea,
    p_append_id          uuid,
    p_answers            bigint[],
    p_structure_sequence bigint,
    p_created            bigint[],
    p_text               text,
    p_topics             text[],    -- per event, as append_block has them, like the next one
    p_personals          text[],
    p_competitor_ids     bigint[],  -- per event: whose personal fields they are
    p_used_keys          text[],    -- per key that a request of the block used, like the next two
    p_fingerprints       bytea[],
    p_key_sequences      bigint[],
    p_rules              smallint
) RETURNS void
LANGUAGE plpgsql SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_last   bigint := p_first_sequence + cardinality(string_to_array(p_text, chr(10))) - 1;
    v_before bytea;
    v_bytes  bigint := 0;
    v_digest bytea;
BEGIN
    IF p_first_sequence = 1 THEN
        v_before := genesis_digest(p_tournament_id);
    ELSE
        SELECT b.digest, b.log_bytes INTO v_before, v_bytes FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence = p_first_sequence - 1;
    END IF;
    v_digest := sha256(v_before || sha256(convert_to(block_place(p_first_sequence, p_recorded_at) || p_text, 'UTF8')));
    IF v_digest IS DISTINCT FROM p_digest THEN
        RAISE EXCEPTION 'the events from % to % do not make the digest %', p_first_sequence, v_last,
            encode(p_digest, 'hex') USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
        SELECT p_tournament_id, used.key, used.fingerprint, used.sequence
        FROM unnest(p_used_keys, p_fingerprints, p_key_sequences) AS used (key, fingerprint, sequence);
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, log_bytes,
                       append_id, rules, personal, digest, text, answers, created)
        VALUES (p_tournament_id, v_last, p_first_sequence, p_recorded_at, p_structure_sequence,
                v_bytes + octet_length(p_text) + coalesce(octet_length(array_to_string(p_personals, '')), 0),
                p_append_id, p_rules, p_personals IS NOT NULL, v_digest, p_text, p_answers, p_created);
    INSERT INTO topic (tournament_id, topic, sequence)
        SELECT p_tournament_id, t.topic::bigint, p_first_sequence + e.n - 1
        FROM unnest(p_topics) WITH ORDINALITY AS e (topics, n)
        CROSS JOIN LATERAL string_to_table(e.topics, ' ') AS t (topic);
    INSERT INTO personal (tournament_id, sequence, competitor_id, text)
        SELECT p_tournament_id, p_first_sequence + e.n - 1, e.competitor_id, e.personal
        FROM unnest(p_personals, p_competitor_ids) WITH ORDINALITY AS e (personal, competitor_id, n)
        WHERE e.personal IS NOT NULL;
END
$$;

-- ── The role the service works as: the migrator makes it ─────────────────────────────────────────────────

GRANT USAGE ON SCHEMA tallybook TO tallybook_service;
GRANT USAGE ON SEQUENCE resource_id TO tallybook_service;
GRANT SELECT ON tournament, append_lock, block, personal, topic, event, head, idempotency, refusal,
    deleted_tournament TO tallybook_service;
REVOKE EXECUTE ON FUNCTION append_block, append_blocks, refuse_keys, open_tournament, import_block FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_block, append_blocks, refuse_keys, open_tournament TO tallybook_service;
