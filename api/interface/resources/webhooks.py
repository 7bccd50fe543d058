"""Webhooks over HTTP. They are added on the command line; here, one can be tried."""

import asyncio
from importlib import import_module
from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.interface.declarations import Acting, Action
from api.interface.rendering import Answer
from api.webhooks.webhooks import WebhookId
from engine.domain.terms import TournamentId

TESTS_AT_ONCE_MAX: Final = 10
"""Tests that one process waits for at the same time. Each takes as long as its receiver, within a bound."""


class WebhookTestShape(Struct, frozen=True, kw_only=True):
    """The result of a test. `answered`: the status of the receiver's answer; None: there was none. `problem`: why the
    receiver did not accept the message; None: it did."""

    accepted: bool
    answered: int | None
    problem: str | None


async def _test(acting: Acting, tournament_id: TournamentId, *, webhook_id: int) -> WebhookTestShape:
    sending = await asyncio.to_thread(import_module, "api.webhooks.sending")  # with aiohttp's client, it takes 6 MiB
    answered = await sending.send_test(acting.desk.database, tournament_id, WebhookId(webhook_id))
    return WebhookTestShape(accepted=answered.problem is None, answered=answered.status, problem=answered.problem)


TESTS: Final = Action(
    "webhook/{webhook_id}/test.json",
    "Send a webhook one test message now, and show the reply",
    "testWebhook",
    Answer("test", WebhookTestShape, "Test message sent"),
    _test,
    Scope.ADMIN,
    TESTS_AT_ONCE_MAX,
)
