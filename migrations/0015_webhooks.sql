-- Webhooks: addresses that are told of the events of a tournament. The log holds what is to be sent, so all that is kept
-- here is how far each one has been told.
--
-- Oldest code that runs on it: 0004
-- Adds only. Running code goes on; it tells nobody.

CREATE SEQUENCE webhook_id AS bigint;

CREATE TABLE webhook (
    tournament_id    bigint NOT NULL,
    webhook_id       bigint NOT NULL,
    url              text NOT NULL,
    kinds            text[],
    allows_private   boolean NOT NULL,
    secret           bytea NOT NULL,
    old_secret       bytea,
    old_secret_until timestamptz,
    state            text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'parked', 'off')),
    sequence         bigint NOT NULL,
    digest           bytea NOT NULL,
    failures         int NOT NULL DEFAULT 0,
    due_at           timestamptz NOT NULL DEFAULT now(),
    problem          text,
    delivered_at     timestamptz,
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tournament_id, webhook_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE webhook IS 'An address that is told of the events of a tournament, in their order.';
COMMENT ON COLUMN webhook.kinds IS 'The kinds of events that it is told of; NULL: all.';
COMMENT ON COLUMN webhook.allows_private IS 'It may lead to an address that is not public.';
COMMENT ON COLUMN webhook.secret IS 'The key of its signatures, as it is: signing needs it.';
COMMENT ON COLUMN webhook.old_secret IS 'The key before that, which signs as well for a while.';
COMMENT ON COLUMN webhook.state IS
    'parked: it waits for an operator; off: its receiver has switched it off (410). Nothing is sent in either.';
COMMENT ON COLUMN webhook.sequence IS 'The last event that it was told of, or did not want.';
COMMENT ON COLUMN webhook.digest IS 'The digest of the block of that event.';
COMMENT ON COLUMN webhook.failures IS 'How often the next event was sent in vain.';
COMMENT ON COLUMN webhook.due_at IS 'When it is sent next, at the earliest.';

GRANT USAGE ON SEQUENCE webhook_id TO tallybook_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook TO tallybook_service;
