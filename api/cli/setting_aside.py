"""The command that sets aside an event that cannot be folded."""

from typing import Annotated, Final

from cyclopts import Parameter

from api.cli import printing
from api.cli.progress import progress
from api.cli.where import HERE, Json, Slug, Where, database_at, known
from engine.domain.terms import Sequence
from engine.domain.times import instant, timestamp
from projections.verification.setting_aside import Findings, Unfoldable, set_aside

SHOWN_MAX: Final = 2_000
"""Characters of an event's body that are shown. --json shows all."""


async def set_event_aside(
    slug: Slug,
    sequence: int,
    /,
    *,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    dry_run
        Show the event and what could not be folded after it, and change nothing.
    """
    async with database_at(where) as database:
        tournament_id = await known(database, slug)
        with progress(slug) as advance:
            found = await set_aside(database, tournament_id, Sequence(sequence), dry_run=dry_run, progress=advance)
    if json:
        printing.json(_row(found, done=not dry_run))
    else:
        _tell(slug, found, done=not dry_run)


def _row(found: Findings, *, done: bool) -> dict[str, object]:
    assert found.first is not None
    event = found.first.event
    return {
        "set_aside": done,
        "sequence": event.sequence,
        "kind": event.kind,
        "body": event.body,
        "actor": event.actor,
        "recorded_at": instant(event.recorded_at),
        "digest": event.digest.hex(),
        "reason": found.first.reason,
        "next": None if found.second is None else found.second.event.sequence,
        "left": found.count - 1,
    }


def _tell(slug: str, found: Findings, *, done: bool) -> None:
    assert found.first is not None
    printing.line(f"event {found.first.event.sequence} of {slug} {'is' if done else 'would be'} set aside:")
    _tell_of(found.first)
    if found.second is None:
        printing.say("Every other event can be folded. The service continues automatically within seconds.")
        return
    left = "1 more event" if found.count == 2 else f"{found.count - 1:,} more events"
    printing.line(f"{left} cannot be folded after that; the next one is event {found.second.event.sequence}:")
    _tell_of(found.second)
    printing.say(f"The tournament stays stopped. Next: `tallybook set-aside {slug} {found.second.event.sequence}`.")


def _tell_of(unfoldable: Unfoldable) -> None:
    event = unfoldable.event
    printing.line(f"  {_shown(event.kind)} {_shown(event.body)}")
    printing.line(f"  recorded at {timestamp(event.recorded_at)} for token {event.actor}")
    printing.line(f"  {_shown(unfoldable.reason)}")


def _shown(text: str) -> str:
    """The beginning of a text from outside, with control characters escaped so that no terminal obeys them."""
    shown = "".join([c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:SHOWN_MAX]])
    return shown if len(text) <= SHOWN_MAX else f"{shown} … ({len(text):,} characters)"
