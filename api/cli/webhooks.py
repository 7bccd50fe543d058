"""Commands about webhooks."""

from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, database_at, known, writing_at
from api.webhooks import sending, webhooks
from api.webhooks.message import secret_text
from api.webhooks.webhooks import WebhookId
from engine.domain.errors import Conflict
from engine.domain.terms import ID_MAX, Sequence

_WebhookNumber = Annotated[int, Parameter(validator=Number(gte=1, lte=ID_MAX))]
_After = Annotated[int | None, Parameter(validator=Number(gte=0, lte=ID_MAX))]


async def add_webhook(
    slug: Slug,
    url: str,
    /,
    *,
    kinds: str | None = None,
    after: _After = None,
    allow_private: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    url
        Where messages are sent to: https://… or http://….
    kinds
        Only events of these names, with commas between them, such as PointsAdded,RankingClosed.
    after
        Begin after the event with this sequence; 0: with the first event. Without it: only new events.
    allow_private
        Allow an address that is not public: this machine or its network.
    """
    wanted = None if kinds is None else [kind.strip() for kind in kinds.split(",")]
    async with writing_at(where, slug) as (connection, tournament_id):
        webhook_id, sequence, secret = await webhooks.add_webhook(
            connection,
            tournament_id,
            url,
            kinds=wanted,
            allows_private=allow_private,
            after=None if after is None else Sequence(after),
        )
    if json:
        printing.json({"id": webhook_id, "sequence": sequence, "secret": secret_text(secret)})
    else:
        printing.say(f"webhook {webhook_id} receives the events after event {sequence}")
        _print_secret(secret)


async def list_webhooks(slug: str | None = None, /, *, json: Json = False, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    slug
        Slug of the tournament. Without it, the webhooks of all tournaments.
    """
    async with database_at(where) as database:
        tournament_id = None if slug is None else await known(database, slug)
        async with database.connection() as connection:
            found = await webhooks.listed_webhooks(connection, tournament_id)
    printing.rows(list(map(msgspec.structs.asdict, found)), webhooks.ListedWebhook.__struct_fields__, as_json=json)


async def send_test(slug: Slug, webhook_id: _WebhookNumber, /, *, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database:
        tournament_id = await known(database, slug)
        answered = await sending.send_test(database, tournament_id, WebhookId(webhook_id))
    if json:
        printing.json({"id": webhook_id, "answered": answered.status, "problem": answered.problem})
    if answered.problem is not None:
        raise Conflict(f"Webhook {webhook_id} did not accept the test message: {answered.problem}.")
    if not json:
        printing.say(f"webhook {webhook_id} accepted the test message with status {answered.status}")


async def remove_webhook(slug: Slug, webhook_id: _WebhookNumber, /, *, json: Json = False, where: Where = HERE) -> None:
    async with writing_at(where, slug) as (connection, tournament_id):
        await webhooks.remove_webhook(connection, tournament_id, WebhookId(webhook_id))
    printing.done(f"webhook {webhook_id} is removed", {"id": webhook_id}, as_json=json)


async def resume_webhook(
    slug: Slug, webhook_id: _WebhookNumber, /, *, after: _After = None, json: Json = False, where: Where = HERE
) -> None:
    """
    Parameters
    ----------
    after
        Continue after the event with this sequence. An earlier one sends events again, a later one leaves events out.
        Without it: after the last event sent.
    """
    async with writing_at(where, slug) as (connection, tournament_id):
        sequence = await webhooks.resume_webhook(
            connection,
            tournament_id,
            WebhookId(webhook_id),
            after=None if after is None else Sequence(after),
        )
    facts = {"id": webhook_id, "sequence": sequence}
    printing.done(f"webhook {webhook_id} continues with the events after event {sequence}", facts, as_json=json)


async def rotate_secret(slug: Slug, webhook_id: _WebhookNumber, /, *, json: Json = False, where: Where = HERE) -> None:
    async with writing_at(where, slug) as (connection, tournament_id):
        secret = await webhooks.rotate_secret(connection, tournament_id, WebhookId(webhook_id))
    if json:
        printing.json({"id": webhook_id, "secret": secret_text(secret)})
    else:
        printing.say(f"for {webhooks.OLD_SECRET_HOURS} hours, the old secret signs as well")
        _print_secret(secret)


def _print_secret(secret: bytes) -> None:
    printing.say("Keep this secret; it is not shown again. The receiver needs it to verify what it gets.")
    printing.line(secret_text(secret))
