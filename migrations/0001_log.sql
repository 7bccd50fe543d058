-- The log: what has happened in each tournament, in one order, for ever.
--
-- The baseline, that of 0.1.0, has one file for each subject.
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

CREATE TABLE event (
    tournament_id   bigint NOT NULL,
    sequence        bigint NOT NULL,
    recorded_at     timestamptz NOT NULL,
    actor           bigint NOT NULL,
    kind            text NOT NULL,
    idempotency_key text,
    body            text NOT NULL,
    personal        text,
    PRIMARY KEY (tournament_id, sequence)
) WITH (autovacuum_freeze_min_age = 0);  -- rows stay: frozen at their first vacuum, not all at once later
COMMENT ON COLUMN event.actor IS 'Id of the token of the request; 0 is the operator on the command line.';
COMMENT ON COLUMN event.kind IS 'The written tag: never reused, see engine/log/codec.py.';
COMMENT ON COLUMN event.body IS 'JSON text, kept byte for byte because the digest is over the bytes.';
COMMENT ON COLUMN event.personal IS
    'Fields that tell of a person, after a random salt. The body has the SHA-256 of this text, so the digest does not cover the text itself. NULL: there are none, or they were erased.';
-- Not compressed: compressing a thousand deltas (some 15 KB) would take a third of the time that PostgreSQL needs for them.
ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE block (
    tournament_id      bigint NOT NULL,
    last_sequence      bigint NOT NULL,
    first_sequence     bigint NOT NULL,
    recorded_at        timestamptz NOT NULL,
    digest             bytea NOT NULL,
    bytes              bigint NOT NULL,
    log_bytes          bigint NOT NULL,
    append_id          uuid NOT NULL,
    answers            bigint[],
    structure_sequence bigint,
    created            bigint[],
    rules              smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (tournament_id, last_sequence)
) WITH (autovacuum_freeze_min_age = 0);
COMMENT ON TABLE block IS 'The events that one commit appended to one tournament, with the digest that chains them to the past.';
COMMENT ON COLUMN block.bytes IS 'Length of its text, see block_text, and of what its events had in personal: readers limit their reads by it.';
COMMENT ON COLUMN block.log_bytes IS 'The sum of bytes of the log up to this block.';
COMMENT ON COLUMN block.append_id IS 'Identifies the sender''s block, so that after an unknown outcome it can ask again.';
COMMENT ON COLUMN block.answers IS 'What append_block answered for each request; NULL: all were appended, one after the other.';
COMMENT ON COLUMN block.structure_sequence IS 'Sequence of the last block up to this one that held a structural event; NULL: written before this was kept, take the block for structural.';
COMMENT ON COLUMN block.created IS 'Ids of what its events created; NULL: nothing, or written before this was kept.';
-- Rules that become stricter hold for later blocks only (engine/domain/rejudging.py).
COMMENT ON COLUMN block.rules IS 'Version of the rules that its events were judged by.';

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

-- ── Events that are found by their text ─────────────────────────────────────────────────────────────────

CREATE INDEX event_set_aside ON event (tournament_id, sequence) WHERE kind = 'EventSetAside';
CREATE INDEX event_renamed ON event (tournament_id, sequence) WHERE kind = 'TournamentRenamed';

-- The only way past an event that cannot be folded is another event that names it. Only an EventSetAside exactly as the
-- service writes it counts, which names an earlier event of its log by the digest of the block that holds it. Any other
-- is an ordinary event, and sets nothing aside.
CREATE VIEW set_aside AS
SELECT s.tournament_id, s.sequence, s.set_aside_by, s.set_aside_at, s.actor
FROM (
    SELECT
        tournament_id,
        substring(body FROM '^\{"sequence":([1-9][0-9]{0,17}),"digest":"[0-9a-f]{64}"\}$')::bigint AS sequence,
        substring(body FROM '"digest":"([0-9a-f]{64})"\}$') AS digest,
        sequence AS set_aside_by,
        recorded_at AS set_aside_at,
        actor
    FROM event
    WHERE kind = 'EventSetAside'
) AS s
CROSS JOIN LATERAL (
    SELECT digest
    FROM block
    WHERE tournament_id = s.tournament_id AND last_sequence >= s.sequence
    ORDER BY last_sequence
    LIMIT 1
) AS b
WHERE s.sequence < s.set_aside_by AND s.digest = encode(b.digest, 'hex');
COMMENT ON VIEW set_aside IS 'Events without effect, at every moment and for every reader, because an operator has set them aside.';

-- Voiding finds the points of its competition by this index. Points that name no competition are not in it, and append as
-- fast as without it. A partial index of the events themselves cannot disagree with them. The expression is spelled like
-- the text that the service writes; verification compares it with the meaning of the event, and counts the entries. An id
-- is taken as text in the "C" collation, because a number too large for a column would be an error within an append. A
-- regular expression would take 8 µs for each event. The competition stands before the deltas, within the first 80
-- characters, because scanning a thousand deltas takes longer.
CREATE INDEX event_competition ON event (
    tournament_id,
    (rtrim(left(split_part(split_part(left(body, 80), '"competition_id":', 2), ',', 1), 20), '}') COLLATE "C"),
    sequence
) WHERE kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(body, 80), '"competition_id":') > 0;

-- A table of an earlier day takes back what was reversed later: a reversal takes place with what it reverses.
CREATE INDEX event_reversal ON event (tournament_id, sequence) WHERE kind = 'PointsReversed';

-- Erasing a competitor finds by the first of these what the log tells of them as a person: such bodies begin with the id.
CREATE INDEX event_personal ON event (
    tournament_id, (rtrim(split_part(split_part(left(body, 40), ':', 2), ',', 1), '}') COLLATE "C")
) WHERE personal IS NOT NULL;
CREATE INDEX event_erased ON event (tournament_id, sequence) WHERE kind = 'CompetitorErased';

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
    IF TG_OP = 'DELETE' AND current_setting('tallybook.deleting', true) = 'on'
        AND TG_TABLE_NAME NOT LIKE 'deleted\_tournament%' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

-- The only change of an event: what it tells of a person is erased, once an event says so. (It asks the table that the
-- trigger is on: of a distributed database, that is a shard.)
CREATE FUNCTION refuse_all_but_erasure() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    v_erased boolean := false;
BEGIN
    IF OLD.personal IS NOT NULL AND NEW.personal IS NULL
        AND to_jsonb(NEW) - 'personal' = to_jsonb(OLD) - 'personal' THEN
        EXECUTE format(
            'SELECT EXISTS (SELECT FROM %s WHERE tournament_id = $1 AND kind = ''CompetitorErased'' AND body = $2)',
            TG_RELID::regclass
        ) INTO v_erased
        USING OLD.tournament_id, format('{"competitor_id":%s}', rtrim(split_part(split_part(left(OLD.body, 40), ':', 2), ',', 1), '}'));
    END IF;
    IF NOT v_erased THEN
        RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION refuse_all_but_emptying() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.fingerprint <> substring(OLD.fingerprint FOR 8) OR to_jsonb(NEW) - 'fingerprint' <> to_jsonb(OLD) - 'fingerprint' THEN
        RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON tournament
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER only_erased BEFORE UPDATE ON event
    FOR EACH ROW EXECUTE FUNCTION refuse_all_but_erasure();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON block
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON idempotency
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER only_emptied BEFORE UPDATE ON idempotency
    FOR EACH ROW EXECUTE FUNCTION refuse_all_but_emptying();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON deleted_tournament
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lock_stays BEFORE DELETE OR TRUNCATE ON append_lock
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refusal_stays BEFORE DELETE OR TRUNCATE ON refusal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ── The hash chain ──────────────────────────────────────────────────────────────────────────────────────
-- digest(block) = SHA-256(digest(previous block) ‖ SHA-256(text of the block in UTF-8)).
-- engine/log/digest.py does the same in Python; a test compares both.

CREATE FUNCTION genesis_digest(p_tournament_id bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256('tallybook log 1'::bytea || int8send(p_tournament_id))
$$;

-- Every stored field of a block's events, except `personal`, as one JSON text without blanks: the first sequence, the
-- time in µs since 1970, then the column of each field in the order of the events; null instead of the keys if no event
-- has one.
CREATE FUNCTION block_text(
    p_first_sequence bigint, p_recorded_us bigint, p_actors bigint[], p_kinds text[], p_keys text[], p_bodies text[]
) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT format('[%s,%s,%s,%s,%s,%s]', p_first_sequence, p_recorded_us, array_to_json(p_actors),
                  array_to_json(p_kinds), coalesce(array_to_json(p_keys)::text, 'null'), array_to_json(p_bodies))
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
--   unseen    the texts (see block_text) of the blocks after p_judged_at, up to the head before this block, one a line; no
--             text contains a line feed. If events have personal fields, a tab and the array of these follow. The chain
--             of the texts leads from p_judged_digest to previous_digest; also if the status is overtaken. NULL: nothing
--             landed, or more than p_unseen_bytes or c_unseen_max blocks, or the block at p_judged_at is not the sender's,
--             or the block is exact, or the answer is that of an earlier sending. The texts are made while the lock is
--             held, so they have no gap to the block, and no repeats.
--
-- THE LOCK. A reader that remembers "I have seen everything up to n" and asks for `sequence > n` is right only if no
-- smaller number can become visible later. With numbers from a database sequence it can: one transaction takes 7, another
-- takes 8 and commits first, the reader sees 8, remembers 8, and never sees 7. That is the classic lost event of logs in
-- PostgreSQL. Here the next number is the last block's plus one, and the row in append_lock stays locked from before the
-- number is drawn until the commit. So the next number is drawn after this commit is visible: numbers have no gaps, and
-- their order is the order of commits. The lock is a statement of its own because, under READ COMMITTED, a statement sees
-- what had been committed when *it* began: only statements after the lock are sure to see everything that the previous
-- holder wrote (its block, its append ids, its keys).
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
    p_actors        bigint[],  -- per event, like the next two
    p_kinds         text[],
    p_bodies        text[],
    p_personals     text[],    -- per event; NULL: none has anything in it
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
    v_bytes     bigint;
    v_log_bytes bigint;
    v_time      timestamptz;
    v_now       timestamptz;
    v_digest    bytea;
    v_digest_then bytea;     -- at p_judged_at; NULL: no block ends there
    v_seen      idempotency%ROWTYPE;
    v_next      bigint;
    v_is_new    boolean;
    v_new       boolean[];   -- per event: it is appended
    v_keys      text[];      -- per event; NULL if none has a key
    v_erased    text[];      -- ids of competitors
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
    SELECT b.last_sequence, coalesce(b.structure_sequence, b.last_sequence), b.log_bytes, b.recorded_at, b.digest
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
                    block_text(b.first_sequence, (extract(epoch FROM b.recorded_at) * 1000000)::bigint,
                               e.actors, e.kinds, e.keys, e.bodies) || coalesce(chr(9) || e.personals, ''),
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
                        array_agg(o.body) AS bodies,
                        CASE WHEN count(o.personal) > 0 THEN array_to_json(array_agg(o.personal))::text END AS personals
                    FROM (
                        SELECT e.actor, e.kind, e.idempotency_key, e.body, e.personal
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
            v_is_new := true;
            IF p_keys[r] IS NOT NULL THEN
                SELECT * INTO v_seen FROM idempotency AS i
                    WHERE i.tournament_id = p_tournament_id AND i.idempotency_key = p_keys[r];
            END IF;
            IF v_seen IS NOT NULL THEN
                v_is_new := false;
                answers[r] := CASE WHEN v_seen.fingerprint IN (p_fingerprints[r], substring(p_fingerprints[r] FOR 8))
                                   THEN -v_seen.sequence ELSE 0 END;
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
                    array_agg(e.body ORDER BY e.n), array_agg(e.personal ORDER BY e.n)
                INTO p_actors, p_kinds, v_keys, p_bodies, p_personals
                FROM unnest(p_actors, p_kinds, v_keys, p_bodies, p_personals, v_new) WITH ORDINALITY
                    AS e (actor, kind, key, body, personal, is_new, n)
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

    -- 7. The next sequences.
    first_sequence := v_head + 1;
    last_sequence := v_head + cardinality(p_bodies);
    recorded_at := v_now;

    -- 8. Events, and the chain over the stored bytes.
    IF cardinality(p_bodies) = 1 THEN   -- most blocks if there are many tournaments; saves a tenth of the call
        INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal)
            VALUES (p_tournament_id, first_sequence, recorded_at, p_actors[1], p_kinds[1], v_keys[1], p_bodies[1],
                    p_personals[1]);
    ELSE
        INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal)
            SELECT p_tournament_id, v_head + new.n, append_block.recorded_at, new.actor, new.kind, new.key, new.body,
                new.personal
            FROM unnest(p_actors, p_kinds, v_keys, p_bodies, p_personals) WITH ORDINALITY
                AS new (actor, kind, key, body, personal, n);
    END IF;
    v_text := convert_to(block_text(first_sequence, (extract(epoch FROM recorded_at) * 1000000)::bigint,
                                    p_actors, p_kinds, v_keys, p_bodies), 'UTF8');
    v_bytes := length(v_text) + coalesce(octet_length(array_to_string(p_personals, '')), 0);
    digest := sha256(v_digest || sha256(v_text));
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, digest, bytes, log_bytes, append_id,
                       answers, structure_sequence, created)
        VALUES (p_tournament_id, last_sequence, first_sequence, recorded_at, digest, v_bytes, v_log_bytes + v_bytes,
                p_append_id, answers,
                CASE WHEN p_structural AND (answers IS NULL OR answers[cardinality(answers)] > 0)
                     THEN last_sequence ELSE v_structure END,
                p_created);

    -- 9. What the log tells of erased competitors, and the fingerprints that were made of it.
    IF 'CompetitorErased' = ANY (p_kinds) THEN
        v_erased := ARRAY(
            SELECT rtrim(split_part(split_part(left(e.body, 40), ':', 2), ',', 1), '}') COLLATE "C"
            FROM unnest(p_kinds, p_bodies) AS e (kind, body)
            WHERE e.kind = 'CompetitorErased'
        );
        UPDATE idempotency AS i
            SET fingerprint = substring(i.fingerprint FOR 8)
            WHERE i.tournament_id = p_tournament_id AND i.idempotency_key IN (
                SELECT e.idempotency_key
                FROM event AS e
                WHERE e.tournament_id = p_tournament_id AND e.personal IS NOT NULL
                    AND rtrim(split_part(split_part(left(e.body, 40), ':', 2), ',', 1), '}') COLLATE "C" = ANY (v_erased)
            );
        UPDATE event AS e
            SET personal = NULL
            WHERE e.tournament_id = p_tournament_id AND e.personal IS NOT NULL
                AND rtrim(split_part(split_part(left(e.body, 40), ':', 2), ',', 1), '}') COLLATE "C" = ANY (v_erased);
    END IF;
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

-- Enters a tournament in the registry and appends its first event. False if the slug is taken.
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
    INSERT INTO append_lock (tournament_id) VALUES (p_tournament_id);
    PERFORM append_block(p_tournament_id, p_append_id, false, 0, NULL, true, false, true, NULL, 0, 0, NULL, NULL, NULL,
                         ARRAY[p_actor], ARRAY[p_kind], ARRAY[p_body], NULL, NULL);
    RETURN true;
END
$$;

-- Inserts one block of a tournament from another database: every stored field of its events, of the block and of its
-- idempotency keys. Raises an exception if the block does not follow the one before it, or if its events and the digest
-- before it do not make p_digest.
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
    p_actors             bigint[],  -- per event, like the next four
    p_kinds              text[],
    p_keys               text[],    -- NULL: no event has one
    p_bodies             text[],
    p_personals          text[],    -- NULL: no event has anything in it
    p_used_keys          text[],    -- per key that a request of the block used, like the next two
    p_fingerprints       bytea[],
    p_key_sequences      bigint[],
    p_rules              smallint
) RETURNS void
LANGUAGE plpgsql SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_last   bigint := p_first_sequence + cardinality(p_bodies) - 1;
    v_before bytea;
    v_bytes  bigint := 0;
    v_added  bigint;
    v_text   bytea;
    v_digest bytea;
BEGIN
    IF p_first_sequence = 1 THEN
        v_before := genesis_digest(p_tournament_id);
    ELSE
        SELECT b.digest, b.log_bytes INTO v_before, v_bytes FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence = p_first_sequence - 1;
    END IF;
    v_text := convert_to(block_text(p_first_sequence, (extract(epoch FROM p_recorded_at) * 1000000)::bigint,
                                    p_actors, p_kinds, p_keys, p_bodies), 'UTF8');
    v_digest := sha256(v_before || sha256(v_text));
    IF v_digest IS DISTINCT FROM p_digest THEN
        RAISE EXCEPTION 'the events from % to % do not make the digest %', p_first_sequence, v_last,
            encode(p_digest, 'hex') USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal)
        SELECT p_tournament_id, p_first_sequence + old.n - 1, p_recorded_at, old.actor, old.kind, old.key, old.body,
            old.personal
        FROM unnest(p_actors, p_kinds, p_keys, p_bodies, p_personals) WITH ORDINALITY
            AS old (actor, kind, key, body, personal, n);
    INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
        SELECT p_tournament_id, used.key, used.fingerprint, used.sequence
        FROM unnest(p_used_keys, p_fingerprints, p_key_sequences) AS used (key, fingerprint, sequence);
    v_added := length(v_text) + coalesce(octet_length(array_to_string(p_personals, '')), 0);
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, digest, bytes, log_bytes, append_id,
                       answers, structure_sequence, created, rules)
        VALUES (p_tournament_id, v_last, p_first_sequence, p_recorded_at, v_digest, v_added, v_bytes + v_added,
                p_append_id, p_answers, p_structure_sequence, p_created, p_rules);
END
$$;

-- ── The role the service works as ───────────────────────────────────────────────────────────────────────
-- Roles belong to the cluster: another database's migration may have created it already, or be creating it now.

DO $$
BEGIN
    CREATE ROLE tallybook_service NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;

-- From version 16 on, the creator of a role may administer it, but not yet become it.
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
GRANT SELECT ON tournament, append_lock, event, block, head, idempotency, refusal, set_aside, deleted_tournament
    TO tallybook_service;
REVOKE EXECUTE ON FUNCTION append_block, refuse_keys, open_tournament, import_block FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_block, refuse_keys, open_tournament TO tallybook_service;
