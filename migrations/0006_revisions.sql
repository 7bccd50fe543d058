-- For conditional changes: which event changed a competitor, a competition or a ranking last, so that a change can be
-- refused where the thing is not any more what its sender has seen.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code names the columns that it writes, so it survives this: it leaves these as they are, in tables
-- of its own version of the fold, which newer code does not read but makes anew.

ALTER TABLE competitor ADD COLUMN revised bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN competitor.revised IS 'Sequence of the last event that changed it; likewise in the other tables.';

ALTER TABLE competition ADD COLUMN revised bigint NOT NULL DEFAULT 0;

ALTER TABLE ranking
    ADD COLUMN revised    bigint NOT NULL DEFAULT 0,
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT 'epoch';
COMMENT ON COLUMN ranking.revised IS 'Of its fields, its list or its unities; points change nothing of it.';
