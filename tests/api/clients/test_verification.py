"""The Python client verifies messages to webhooks: what the service signs is read, and nothing else."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.webhooks.message import ChangedLine, secret_text
from engine.domain.terms import CompetitorId, UnityId
from tallybook_client import WebhookRefused, verify_webhook
from tallybook_client.webhooks import BODY_BYTES_MAX, TOLERANCE_SECONDS
from tests.api.clients.signed import BODY, KEY, SENT_AT, sent


def test_a_message_is_read() -> None:
    headers = {name.title(): value for name, value in sent().items()}
    message = verify_webhook(secret_text(KEY), headers, BODY, now=SENT_AT)
    assert (message.message_id, message.type) == ("17-4711-1f0c2a9e", "PointsAdded")
    assert message.timestamp.isoformat() == "2026-05-02T17:05:11.123456+00:00"
    assert (message.data.sequence, message.data.ranking_id, message.data.unity_id) == (4711, 8, None)


def test_lines_are_read_as_the_service_writes_them_also_those_of_results() -> None:
    lines = [
        ChangedLine(CompetitorId(1), UnityId(2), 5, 12),
        ChangedLine(CompetitorId(1), UnityId(3), None, 981, 981),
        ChangedLine(CompetitorId(1), UnityId(3), None, None),
    ]
    message = msgspec.json.decode(BODY)
    message["data"]["lines"] = msgspec.to_builtins(lines)
    body = msgspec.json.encode(message)
    read = verify_webhook(secret_text(KEY), sent(body), body, now=SENT_AT).data.lines
    assert [(line.delta, line.total, line.result) for line in read] == [
        (5, 12, None),
        (None, 981, 981),
        (None, None, None),
    ]


def test_one_of_several_signatures_is_enough() -> None:
    headers = sent(keys=[b"another key, which was replaced", KEY])
    assert verify_webhook(secret_text(KEY), headers, BODY, now=SENT_AT)


@pytest.mark.parametrize("seconds", [-TOLERANCE_SECONDS, TOLERANCE_SECONDS])
def test_a_message_may_be_as_old_as_that(seconds: int) -> None:
    assert verify_webhook(secret_text(KEY), sent(), BODY, now=SENT_AT + seconds)
    with pytest.raises(WebhookRefused, match="old"):
        verify_webhook(secret_text(KEY), sent(), BODY, now=SENT_AT + seconds + seconds / abs(seconds))


@given(st.sampled_from([*sent(), "body", "secret"]), st.data())
def test_whatever_is_changed_on_the_way_is_refused(what: str, data: st.DataObject) -> None:
    headers = sent()
    body, key = BODY, KEY
    if what == "body":
        body = data.draw(st.binary().filter(lambda it: it != BODY))
    elif what == "secret":
        key = data.draw(st.binary(min_size=1).filter(lambda it: it != KEY))
    else:
        headers[what] = data.draw(st.text().filter(lambda it: headers[what] not in it.split(" ")))
    with pytest.raises(WebhookRefused):
        verify_webhook(secret_text(key), headers, body, now=SENT_AT)


@pytest.mark.parametrize("name", [*sent()])
def test_what_is_missing_is_named(name: str) -> None:
    headers = sent()
    del headers[name]
    with pytest.raises(WebhookRefused, match=name):
        verify_webhook(secret_text(KEY), headers, BODY, now=SENT_AT)


def test_a_body_beyond_the_limit_is_refused() -> None:
    for length, refused in ((BODY_BYTES_MAX, False), (BODY_BYTES_MAX + 1, True)):
        body = BODY.ljust(length)
        if refused:
            with pytest.raises(WebhookRefused, match="more than"):
                verify_webhook(secret_text(KEY), sent(body), body, now=SENT_AT)
        else:
            assert verify_webhook(secret_text(KEY), sent(body), body, now=SENT_AT)


def test_a_secret_that_is_none_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="ASCII"):
        verify_webhook("whsec_ä", sent(), BODY, now=SENT_AT)
