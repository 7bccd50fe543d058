-- Tokens: who may ask what. Only the hash of a token is kept; it is shown once, when it is made.
--
-- Adds only. Tokens belong to the service, not to a tournament. Rows are revoked, never deleted, because
-- events name their ids for ever.

CREATE TABLE token (
    token_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL,
    hash           bytea NOT NULL UNIQUE,
    scope          text NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    tournament_ids bigint[],
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz,
    revoked_at     timestamptz
);
COMMENT ON COLUMN token.hash IS 'SHA-256 of the token''s text.';
COMMENT ON COLUMN token.tournament_ids IS 'The tournaments it is bound to; NULL: all, those to come too.';

GRANT SELECT, INSERT, UPDATE ON token TO tallybook_service;
