-- Sessions: who has signed in to the console, and with which token. Only the hash of a session's text is kept. A row is
-- deleted when its session ends, and some time after it has expired.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on. Like tokens, sessions belong to the service, not to a tournament.

CREATE TABLE session (
    session_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       bytea NOT NULL UNIQUE,
    token_id   bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE session IS 'Who has signed in to the console. A session ends with its token, too.';
COMMENT ON COLUMN session.hash IS 'SHA-256 of the session''s text, which only the browser has.';

CREATE INDEX session_of_token ON session (token_id, session_id);

GRANT SELECT, INSERT, DELETE ON session TO tallybook_service;
