-- Tickets: what opens one stream, in the place of a token, for programs that cannot send a header. Only the hash of a
-- ticket is kept. It is deleted when it is used, and some time after it has expired.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on.

CREATE TABLE ticket (
    tournament_id bigint NOT NULL,
    hash          bytea NOT NULL,
    token_id      bigint NOT NULL,
    expires_at    timestamptz NOT NULL,
    PRIMARY KEY (tournament_id, hash)
);
COMMENT ON TABLE ticket IS 'What opens one stream of the tournament once, in the place of the token that asked for it.';
COMMENT ON COLUMN ticket.hash IS 'SHA-256 of the ticket''s text.';

CREATE INDEX ticket_expires ON ticket (tournament_id, expires_at);

GRANT SELECT, INSERT, DELETE ON ticket TO tallybook_service;
