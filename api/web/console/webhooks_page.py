"""The page of a tournament's webhooks: how far each is, and what is wrong with it."""

from collections.abc import Sequence as Items
from urllib.parse import urlsplit

from api.web.console.frame import Venue, Viewer, console_page, data_table, live
from api.web.html import Child, Html, element, joined
from api.web.page import number_text
from api.webhooks.webhooks import ListedWebhook, WebhookState


def webhooks_page(viewer: Viewer, venue: Venue, webhooks: Items[ListedWebhook]) -> bytes:
    """For admins. It shows only the host of an address, because the rest may be a secret of the receiver."""
    heads = [
        ("Webhook", "name"),
        ("Id", "value"),
        ("State", "state"),
        ("Delivered up to", "value"),
        ("Behind", "value"),
        ("Last delivery", "when"),
    ]
    found: Html = element("p", "There are no webhooks for this tournament.")
    if webhooks:
        found = data_table("Webhooks", heads, [_row(venue, one) for one in webhooks])
    return console_page(
        viewer,
        "Webhooks",
        live("webhooks", found),
        element(
            "p", "They are changed on the command line: ", element("code", "tallybook webhook --help"), class_="about"
        ),
        venue=venue,
        below="/webhooks",
    )


def _row(venue: Venue, webhook: ListedWebhook) -> list[Child]:
    taken: Child = "never" if webhook.delivered_at is None else venue.words.time_element(webhook.delivered_at)
    return [
        urlsplit(webhook.url).hostname or "",
        webhook.id,
        _state(venue, webhook),
        number_text(webhook.sequence),
        number_text(webhook.behind),
        taken,
    ]


def _state(venue: Venue, webhook: ListedWebhook) -> Html:
    """The state, with any problem."""
    if webhook.state is WebhookState.ACTIVE and not webhook.failures:
        return element("span", webhook.state)
    times = f"{webhook.failures} {'time' if webhook.failures == 1 else 'times'}"
    problem = element("p", f"Failed {times}: {webhook.problem}", class_="fault") if webhook.problem else None
    again = None
    if webhook.retried_at is not None:
        again = element("p", "Next attempt from ", venue.words.time_element(webhook.retried_at), class_="about")
    return joined((element("span", webhook.state), problem, again))
