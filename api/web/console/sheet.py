"""The rows of a match-day sheet: what is typed for a match, and which result that is. Pure.

A row has two boxes, and says how the match ended. What is no result changes nothing else: of a postponed match the
fixture stays, with another date or none.
"""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from msgspec import UNSET, Struct

from engine.domain.awards import Scoring
from engine.domain.commands import RecordResult
from engine.domain.errors import Fault, Unacceptable
from engine.domain.faults import refuse_if_any, unacceptable
from engine.domain.rescoring import CorrectedCompetition
from engine.domain.scoring import (
    ABANDONED,
    NotRead,
    Undecided,
    named_winner_faults,
    scores_duels,
    wanted,
    winner_by_score,
)
from engine.domain.state import CompetitionState, RankingState
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId
from projections.answers.zones import skipped_time

PLAYED: Final = ""
WALKOVERS: Final = ("wo-1", "wo-2")
PENALTIES: Final = ("pen-1", "pen-2")
LOST_BY_BOTH: Final = "none"
POSTPONED: Final = "postponed"
EXTRA_TIME: Final = "aet"
WORD: Final = "word:"
"""Before a word of the scoring's own."""
_FORFEITS: Final = {"+:-": WALKOVERS[0], "-:+": WALKOVERS[1], "-:-": LOST_BY_BOTH}
_SCORE: Final = re.compile(r"([^\s:|–-]+)\s*([:|–-])\s*([^\s:|–-]+)(?:\s+(\S.*))?", re.ASCII)  # noqa: RUF001 - a dash is one, too
_USUAL: Final = {"": PLAYED, EXTRA_TIME: EXTRA_TIME, ABANDONED: ABANDONED}
_OF_WINNERS: Final = {"wo": WALKOVERS, "pen": PENALTIES}


class MatchRow(Struct, frozen=True, kw_only=True):
    """What is typed for a match. `how`: how it ended. `on`: the new date of a postponed one."""

    home: str = ""
    away: str = ""
    how: str = PLAYED
    on: str = ""

    @property
    def text(self) -> str:
        """What a page keeps of it, to see what was changed there."""
        return f"{self.home} {self.away} {self.how}"


def row_of(competition: CompetitionState) -> MatchRow | None:
    """What a sheet shows for a match of two; None: its result fits into no row."""
    result, winner = competition.result, competition.winner_id
    if len(competition.participants) != 2 or isinstance(result, Mapping):
        return None
    if result is None:
        return MatchRow() if winner is None else None
    if (forfeit := _FORFEITS.get(result)) is not None:
        return MatchRow(how=forfeit)
    if result == ABANDONED:
        return MatchRow(how=ABANDONED)
    found = _SCORE.fullmatch(result)
    if found is None:
        return None
    home, away, word = found[1], found[3], found[4] or ""
    if not word and winner not in (None, winner_by_score(competition.participants, result)):
        return None
    if word in _OF_WINNERS and winner is not None:
        return MatchRow(home=home, away=away, how=_OF_WINNERS[word][competition.participants.index(winner)])
    return MatchRow(home=home, away=away, how=_USUAL.get(word, f"{WORD}{word}"))


def keyboard(scorings: Items[tuple[RankingState, Scoring]]) -> str | None:
    """The keyboard of a phone with which scores are typed; None: that with letters."""
    if not all(scores_duels(one) for _, one in scorings):
        return None
    notations = [ranking.unities[award.unity_id].notation for ranking, one in scorings for award in one.awards]
    return "decimal" if any(one.decimals for one in notations) else "numeric"


def recorded(
    competition_id: CompetitionId,
    competition: CompetitionState,
    row: MatchRow,
    scorings: Items[tuple[RankingState, Scoring]],
    zone: tzinfo,
) -> RecordResult:
    """What the row says of the match. Raises Unacceptable, also for a result that a scoring cannot read, and for a
    shoot-out without a winner."""
    its: dict[str, Any] = {"competition_id": CompetitionId(0), "of": competition_id}
    if row.how == POSTPONED:
        return RecordResult(**its, result=None, winner_id=None, started_at=_date(row.on, zone))
    separator = ":" if all(scores_duels(one) for _, one in scorings) else "|"
    result, winner = _result(row, separator), None
    participants = competition.participants
    for how in _OF_WINNERS.values():
        if row.how in how:
            winner = participants[how.index(row.how)]
    if winner is None:
        winner = winner_by_score(participants, result)
    said = RecordResult(**its, result=result, winner_id=winner)
    supposed = CorrectedCompetition(competition.group_id, participants, result, winner, competition.scale)
    refuse_if_any(finished(named_winner_faults(supposed, [scoring for _, scoring in scorings])))
    _refuse_unread(supposed, scorings)
    return said


def changes(competition: CompetitionState, said: RecordResult) -> bool:
    """Whether the match differs from what is said of it."""
    is_moved = said.started_at is not UNSET and said.started_at != competition.date
    return is_moved or (said.result, said.winner_id) != (competition.result, competition.winner_id)


def _result(row: MatchRow, separator: str) -> str | None:
    """The result as text. Raises Unacceptable."""
    if row.how == LOST_BY_BOTH:
        return "-:-"
    if not row.home and not row.away:
        if row.how in WALKOVERS:
            return ("+:-", "-:+")[WALKOVERS.index(row.how)]
        if row.how in (PLAYED, ABANDONED):
            return row.how or None
    if not row.home or not row.away:
        raise unacceptable([Fault("result", "both need a score")])
    word = row.how.partition("-")[0] if row.how in (*WALKOVERS, *PENALTIES) else row.how.removeprefix(WORD)
    return f"{row.home}{separator}{row.away} {word}".strip()


def _refuse_unread(supposed: CorrectedCompetition, scorings: Iterable[tuple[RankingState, Scoring]]) -> None:
    for ranking, scoring in scorings:
        try:
            wanted(scoring, supposed, ranking)
        except Undecided:
            continue
        except NotRead as error:
            raise Unacceptable(str(error), [Fault("result", str(error))]) from None


def _date(text: str, zone: tzinfo) -> datetime | None:
    """The date that a browser's field has; None: it is empty. Raises Unacceptable."""
    if not text:
        return None
    try:
        local = datetime.fromisoformat(text).replace(tzinfo=zone)
        moment, skipped = local.astimezone(UTC), skipped_time(local)
    except (ValueError, OverflowError):
        raise unacceptable([Fault("on", "must be a day and a time, such as 2026-05-09 15:00")]) from None
    if skipped is not None:
        raise unacceptable([Fault("on", skipped)])
    return moment
