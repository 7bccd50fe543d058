-- Tournaments can be put into another database, as they were.
--
-- Oldest code that runs on it: 0004
-- Adds a function that only the owner may call. Running code goes on.

-- A block says by which version of the rules its events were judged (engine/domain/rejudging.py), so that rules which
-- become stricter hold for later blocks only. Code that judges by version 1 leaves it to the default.
ALTER TABLE block ADD COLUMN rules smallint NOT NULL DEFAULT 1;
COMMENT ON COLUMN block.rules IS 'Version of the rules that its events were judged by.';

-- Inserts one block of a tournament that comes from another database: every stored field of its events, of the block and
-- of its idempotency keys as they were there. Raises an exception if the block does not follow the one before it, or
-- if the digest that its events and the digest before it make is not p_digest.
--
-- With the rights of the caller: only the owner may insert. Nobody sees the tournament before the transaction enters it in
-- the registry and commits (projections/verification/archives.py); nothing is appended meanwhile, as it has no lock yet.
CREATE FUNCTION import_block(
    p_tournament_id      bigint,
    p_first_sequence     bigint,
    p_recorded_at        timestamptz,
    p_digest             bytea,
    p_append_id          uuid,
    p_answers            bigint[],
    p_structure_sequence bigint,
    p_created            bigint[],
    p_actors             bigint[],  -- per event, like the next three
    p_kinds              text[],
    p_keys               text[],    -- NULL: no event has one
    p_bodies             text[],
    p_used_keys          text[],    -- per key that a request of the block used, like the next two
    p_fingerprints       bytea[],
    p_key_sequences      bigint[],
    p_rules              smallint
) RETURNS void
LANGUAGE plpgsql SET search_path = tallybook, pg_temp AS $$
DECLARE
    v_last   bigint := p_first_sequence + cardinality(p_bodies) - 1;
    v_before bytea;
    v_text   bytea;
    v_digest bytea;
BEGIN
    IF p_first_sequence = 1 THEN
        v_before := genesis_digest(p_tournament_id);
    ELSE
        SELECT b.digest INTO v_before FROM block AS b
            WHERE b.tournament_id = p_tournament_id AND b.last_sequence = p_first_sequence - 1;
    END IF;
    v_text := convert_to(block_text(p_first_sequence, (extract(epoch FROM p_recorded_at) * 1000000)::bigint,
                                    p_actors, p_kinds, p_keys, p_bodies), 'UTF8');
    v_digest := sha256(v_before || sha256(v_text));
    IF v_digest IS DISTINCT FROM p_digest THEN
        RAISE EXCEPTION 'the events from % to % do not make the digest %', p_first_sequence, v_last,
            encode(p_digest, 'hex') USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body)
        SELECT p_tournament_id, p_first_sequence + old.n - 1, p_recorded_at, old.actor, old.kind, old.key, old.body
        FROM unnest(p_actors, p_kinds, p_keys, p_bodies) WITH ORDINALITY AS old (actor, kind, key, body, n);
    INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
        SELECT p_tournament_id, used.key, used.fingerprint, used.sequence
        FROM unnest(p_used_keys, p_fingerprints, p_key_sequences) AS used (key, fingerprint, sequence);
    INSERT INTO block (tournament_id, last_sequence, first_sequence, recorded_at, digest, bytes, append_id, answers,
                       structure_sequence, created, rules)
        VALUES (p_tournament_id, v_last, p_first_sequence, p_recorded_at, v_digest, length(v_text), p_append_id,
                p_answers, p_structure_sequence, p_created, p_rules);
END
$$;

REVOKE EXECUTE ON FUNCTION import_block FROM PUBLIC;
