"""What the public sees of a tournament: a log that ends at one of its events.

Pure. THE PUBLIC END. While a tournament is published, the public sees only the state after its events up to the *public
end*: every public page, stream, picture and ETag is computed as if the log ended there. Normally the public end is the
head. A freeze holds it; a reveal moves it forward, or ends the freeze. Nothing that was shown is hidden again: while a
tournament is published, its public end never falls.

HIDDEN. The public sees nothing of a hidden ranking at any moment, wherever its log ends.
"""

from collections.abc import Iterable
from typing import assert_never

import msgspec
from msgspec import UNSET, Struct

from engine.domain import events
from engine.domain.commands import NextReveal
from engine.domain.events import Points, Recorded, Revaluation
from engine.domain.presentation import ZONE_DEFAULT
from engine.domain.terms import CompetitionId, RankingId, Sequence, Stage

PublicationEvent = (
    events.TournamentPublished
    | events.TournamentUnpublished
    | events.PublicationFrozen
    | events.PublicationRevealed
    | events.RankingHidden
    | events.RankingShown
    | events.PresentationChanged
    | events.StageEvent
)


class Presentation(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """How the tournament presents itself. None: the default of the service. `logo`: the event that has it. `listed`:
    whether the service's first page links to the board."""

    zone: str = ZONE_DEFAULT
    language: str | None = None
    accent: str | None = None
    logo: Sequence | None = None
    listed: bool = False

    def after(self, sequence: Sequence, event: events.PresentationChanged) -> "Presentation":
        """The presentation after the event of this sequence."""
        changes: dict[str, object] = {
            name: said for name in ("language", "accent", "listed") if (said := getattr(event, name)) is not UNSET
        }
        if event.zone is not UNSET:
            changes["zone"] = event.zone or ZONE_DEFAULT
        if event.logo is not UNSET:
            changes["logo"] = None if event.logo is None else sequence
        return msgspec.structs.replace(self, **changes)


class Publication(Struct, frozen=True, kw_only=True, gc=False):
    """`frozen_at`: the event at which the public end is held. None: it is not held. An unpublished tournament can be
    frozen, too. `seen_before`: the last sequence that the public had seen when the tournament was last unpublished; 0:
    it never was. `hidden`: the rankings that the public does not see. `presentation`: how the tournament presents
    itself. `stage`: archived or deleted; None: it can change."""

    published: bool = False
    frozen_at: Sequence | None = None
    seen_before: Sequence = Sequence(0)
    hidden: frozenset[RankingId] = frozenset()
    presentation: Presentation = Presentation()
    stage: Stage | None = None

    def public_end(self, head: Sequence) -> Sequence | None:
        """The last event that the public sees of a log that ends at `head`. None: it sees nothing, because the
        tournament is not published.

        For a live: `live.board.publication.public_end(live.head.sequence)`. Always use the board at the head: an
        earlier one does not contain a later freeze.
        """
        if not self.published:
            return None
        return head if self.frozen_at is None else self.frozen_at

    def seen(self, head: Sequence) -> Sequence:
        """The last event of a log that ends at `head` that the public has ever seen; 0: none."""
        return max(self.seen_before, self.public_end(head) or Sequence(0))

    def after(self, sequence: Sequence, event: PublicationEvent) -> "Publication":
        """The publication after the event of this sequence."""
        match event:
            case events.TournamentPublished():
                return msgspec.structs.replace(self, published=True)
            case events.TournamentUnpublished():
                return self._unpublished(sequence)
            case events.TournamentDeleted():
                return msgspec.structs.replace(self._unpublished(sequence), stage=event.stage)
            case events.TournamentArchived() | events.TournamentRestored():
                return msgspec.structs.replace(self, stage=event.stage)
            case events.PublicationFrozen():
                return msgspec.structs.replace(self, frozen_at=event.at)
            case events.PublicationRevealed():
                return msgspec.structs.replace(self, frozen_at=event.to)
            case events.RankingHidden():
                return msgspec.structs.replace(self, hidden=self.hidden | {event.ranking_id})
            case events.RankingShown():
                return msgspec.structs.replace(self, hidden=self.hidden - {event.ranking_id})
            case events.PresentationChanged():
                return msgspec.structs.replace(self, presentation=self.presentation.after(sequence, event))
            case _:
                assert_never(event)

    def _unpublished(self, sequence: Sequence) -> "Publication":
        return msgspec.structs.replace(self, published=False, seen_before=self.seen(Sequence(sequence - 1)))


class NextRevealSearch:
    """Finds the next competition that gave points after the event `held`, and the last of these points. It `take`s the
    events that follow, in order, until it is `over` or no events are left. `held` None: nothing is held, and no
    competition is found.

    The points of a competition end before an event that voids, unvoids, strikes or unstrikes. The reversals after that
    event are revealed by a step of their own.
    """

    def __init__(self, held: Sequence | None) -> None:
        self.over = False
        self._held = held
        self._competition_id: CompetitionId | None = None
        self._last: Sequence | None = None

    def take(self, run: Iterable[Recorded]) -> None:
        """Takes the next events."""
        for recorded in run:
            event = recorded.event
            if isinstance(event, Points):
                if event.competition_id is not None and self._competition_id in (None, event.competition_id):
                    self._competition_id, self._last = event.competition_id, recorded.sequence
            elif isinstance(event, Revaluation) and event.competition_id == self._competition_id:
                self.over = True
                return

    @property
    def found(self) -> NextReveal:
        return NextReveal(self._held, self._last)
