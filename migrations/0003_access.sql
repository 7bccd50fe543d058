-- Access: tokens, the sessions of the console, tickets for streams, and quotas. Only hashes of their texts are kept.
--
-- Tokens and sessions belong to the service, not to a tournament. Tokens are revoked and never deleted, because events
-- name their ids for ever. Sessions and tickets are deleted when they end, and some time after they have expired.

CREATE TABLE token (
    token_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL,
    hash           bytea NOT NULL UNIQUE,
    scope          text NOT NULL CHECK (scope IN ('score', 'read', 'write', 'admin')),
    tournament_ids bigint[],
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz,
    revoked_at     timestamptz,
    only_group     bigint,
    only_round     text,
    CHECK ((scope = 'score') = (only_group IS NOT NULL OR only_round IS NOT NULL))
);
COMMENT ON COLUMN token.only_group IS 'A scorer enters results of this group; NULL: of any.';
COMMENT ON COLUMN token.only_round IS 'A scorer enters results of the round with this key; NULL: of any.';
COMMENT ON COLUMN token.hash IS 'SHA-256 of the token''s text.';
COMMENT ON COLUMN token.tournament_ids IS 'The tournaments it is bound to; NULL: all, including future ones.';

CREATE TABLE session (
    session_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       bytea NOT NULL UNIQUE,
    token_id   bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE session IS 'Sessions of the console. A session ends with its token, too.';
COMMENT ON COLUMN session.hash IS 'SHA-256 of the session''s text, which only the browser has.';

CREATE INDEX session_of_token ON session (token_id, session_id);

CREATE TABLE ticket (
    tournament_id bigint NOT NULL,
    hash          bytea NOT NULL,
    token_id      bigint NOT NULL,
    expires_at    timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, hash)
);
COMMENT ON TABLE ticket IS 'Opens one stream once, instead of the token that requested it, for programs that cannot send a header.';
COMMENT ON COLUMN ticket.hash IS 'SHA-256 of the ticket''s text.';

CREATE INDEX ticket_expires ON ticket (tournament_id, expires_at);

CREATE TABLE quota (
    tournament_id bigint PRIMARY KEY,
    events        bigint,
    competitors   bigint,
    bytes         bigint
);
COMMENT ON TABLE quota IS 'Bounds of what a tournament holds; NULL: none. Processes read it every two seconds.';
COMMENT ON COLUMN quota.bytes IS 'Of blocks as they are stored, see block.log_bytes.';

GRANT SELECT, INSERT, UPDATE, DELETE ON quota TO tallybook_service;
GRANT SELECT, INSERT, UPDATE ON token TO tallybook_service;
GRANT SELECT, INSERT, DELETE ON session, ticket TO tallybook_service;
