-- For audits: competitions that are voided, and boards as they once were.
--
-- Adds only; code that does not know these columns and this table runs on, as long as nothing is voided.

ALTER TABLE competition ADD COLUMN voided_at timestamptz;
COMMENT ON COLUMN competition.voided_at IS 'Since when it does not count; NULL: it does.';

-- Where an answer about the past starts to fold from, so that it costs as much as the distance to the next of these
-- and not as much as the log is long. Each is what the log gives up to its sequence, and safe to drop.
CREATE TABLE snapshot (
    tournament_id bigint NOT NULL,
    fold_version  int NOT NULL,
    sequence      bigint NOT NULL,
    digest        bytea NOT NULL,
    board         bytea NOT NULL,
    PRIMARY KEY (tournament_id, fold_version, sequence)
);
COMMENT ON COLUMN snapshot.digest IS 'Of the block that ends at the sequence.';
COMMENT ON COLUMN snapshot.board IS 'The board in MessagePack, see projections/snapshots.py.';

ALTER TABLE checkpoint ADD COLUMN snapshot_sequence bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN checkpoint.snapshot_sequence IS 'Sequence of the last snapshot that was written; 0: of none.';

GRANT SELECT, INSERT, UPDATE, DELETE ON snapshot TO tallybook_service;
