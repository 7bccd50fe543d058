-- Webhooks: addresses that receive the events of a tournament. The log itself is the queue, so only the position of each
-- webhook is kept here.

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
COMMENT ON TABLE webhook IS 'An address that receives the events of a tournament, in their order.';
COMMENT ON COLUMN webhook.kinds IS 'The kinds of events that it receives; NULL: all.';
COMMENT ON COLUMN webhook.allows_private IS 'It may lead to an address that is not public.';
COMMENT ON COLUMN webhook.secret IS 'The key of its signatures, in plain, because signing needs it.';
COMMENT ON COLUMN webhook.old_secret IS 'The key before that, which signs as well for a while.';
COMMENT ON COLUMN webhook.state IS
    'parked: it waits for an operator; off: its receiver has switched it off (410). Nothing is sent in either.';
COMMENT ON COLUMN webhook.sequence IS 'The last event that it received, or did not want.';
COMMENT ON COLUMN webhook.digest IS 'The digest of the block of that event.';
COMMENT ON COLUMN webhook.failures IS 'Failed attempts to send the next event.';
COMMENT ON COLUMN webhook.due_at IS 'The earliest time of the next attempt.';

GRANT USAGE ON SEQUENCE webhook_id TO tallybook_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook TO tallybook_service;
