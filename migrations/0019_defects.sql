-- Defects that tournaments met, so that operators see them where they look anyway; and tournaments that were deleted.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on; it notes no defect.

CREATE TABLE defect (
    tournament_id bigint NOT NULL,
    part          text NOT NULL,
    reason        text NOT NULL,
    met_at        timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, part)
);
COMMENT ON TABLE defect IS 'What failed last in each part of the work for a tournament, and should not have.';

GRANT SELECT, INSERT, UPDATE, DELETE ON defect TO tallybook_service;

-- ── Deleted tournaments ─────────────────────────────────────────────────────────────────────────────────

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

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON deleted_tournament
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
GRANT SELECT ON deleted_tournament TO tallybook_service;

-- Lets the owner delete a tournament, in a transaction that says so. The service's role has no right to delete a row of
-- the log, whatever it says. That a tournament was deleted can never be deleted.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger
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
