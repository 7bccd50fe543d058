"""How a competitor came to be where they are, in sentences.

Everybody is called by the name they have today, so that a competitor has one name throughout.
"""

from collections.abc import Sequence as Items
from itertools import pairwise

from api.cli.names import competition_name
from api.interface.rendering import timestamp
from engine.domain.events import Criterion
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board, Ranking
from projections.board.classification import Classified, in_force
from projections.past.explanation import Cause, Overtaking, Step
from projections.past.past import DatedPlace, Explanation


class ExplanationText:
    """Explains one competitor's place in a unity, as one would write it to them."""

    def __init__(self, board: Board, ranking_id: RankingId, unity_id: UnityId, competitor_id: CompetitorId) -> None:
        self._board = board
        self._ranking = board.rankings[ranking_id]
        self._unity = self._ranking.unities[unity_id]
        self._competitor_id = competitor_id

    def text(self, explanation: Explanation) -> str:
        """The whole explanation, in lines."""
        name = self._name(self._competitor_id)
        lines = [
            f"{name} in {self._ranking.name}: {self._unity.name}",
            "",
            f"{_after(explanation.start)}, {name} {_stood(explanation.start)}.",
            f"{_after(explanation.end)}, {name} {_stood(explanation.end)}.",
        ]
        if not explanation.steps:
            return "\n".join([*lines, "Nothing in between changed that position or total."])
        lines += ["", *self._summary(explanation), ""]
        for step in explanation.steps:
            head = f"{timestamp(step.recorded.recorded_at)}  event {step.recorded.sequence}"
            lines += [head, *(f"    {sentence}" for sentence in self._step(step))]
        return "\n".join(lines)

    def classification(self, ranking: Ranking, neighbours: Items[Classified]) -> str:
        """Why the competitor stands where they stand in the classification of `ranking`. `neighbours` are their line
        and those next to it, in order. The values among the tied are not told: those of a line are of the last run over
        its block, which need not be the run that parted it from its neighbour."""
        hers = next(n for n, line in enumerate(neighbours) if line.competitor_id == self._competitor_id)
        name = self._name(self._competitor_id)
        sentences = [f"In the classification, {name} stands {ordinal(neighbours[hers].position)}."]
        for above, below in pairwise(neighbours):
            one, other = self._name(above.competitor_id), self._name(below.competitor_id)
            if below.decided_by is None:
                sentences.append(f"{one} and {other} are equal in every criterion.")
                continue
            criterion = in_force(ranking)[below.decided_by]
            by = criterion_text(ranking, criterion)
            if criterion.among is None:
                by += f", {above.values[below.decided_by]} to {below.values[below.decided_by]}"
            sentences.append(f"{one} stands above {other} by {by}.")
        return "\n".join(sentences)

    def _summary(self, explanation: Explanation) -> list[str]:
        """All steps taken together."""
        deltas = [step for step in explanation.steps if step.delta is not None]
        gained, lost = (sum(s.delta or 0 for s in deltas if ((s.delta or 0) > 0) is up) for up in (True, False))
        passing = [o for step in explanation.steps for o in step.overtakings if not o.level]
        passes = sum(o.who == self._competitor_id for o in passing)
        counted = [
            f"{_times(len(deltas), 'change')} of the total ({gained} gained, {-lost} lost, {gained + lost:+} in all)",
            f"passed somebody {_times(passes, 'time')}, was passed {_times(len(passing) - passes, 'time')}",
        ]
        return [f"In between: {'; '.join(counted)}."]

    def _step(self, step: Step) -> list[str]:
        sentences = []
        if step.cause in (Cause.LIST, Cause.SORT):
            sentences.append(self._list_sentence(step))
        elif step.delta is not None:
            sentences.append(
                f"{step.delta:+} {self._cause(step)}. Total {step.before.total} → {step.after.total}, {_moved(step)}."
            )
        else:
            sentences.append(f"Others moved {self._cause(step)}: {_moved(step)}.")
        return sentences + [self._overtaking(overtaking) for overtaking in step.overtakings]

    def _list_sentence(self, step: Step) -> str:
        name = self._name(self._competitor_id)
        if step.after.position is None:
            return f"{name} left the list."
        if step.before.position is None:
            return f"{name} came into the list: {ordinal(step.after.position)} with {step.after.total}."
        changed = "Which totals are better" if step.cause is Cause.SORT else "The list of competitors"
        return f"{changed} changed: {_moved(step)}."

    def _cause(self, step: Step) -> str:
        reason = "" if step.reason is None else f" ({step.reason})"
        if step.competition_id is None:
            return f"by a free modification{reason}"
        competition = self._competition(step.competition_id)
        if step.cause is Cause.REVERSAL:
            return f"because event {step.reverses}, by {competition}, was reversed"
        return f"by {competition}{reason}"

    def _competition(self, competition_id: CompetitionId) -> str:
        competition = self._board.competitions[competition_id]
        known = []
        if name := competition_name(self._board, competition):
            known.append(name)
        if isinstance(competition.result, str):
            known.append(competition.result)
        if competition.voided_at is not None:
            known.append("voided by now")
        return f"competition {competition_id}" + (f" ({', '.join(known)})" if known else "")

    def _overtaking(self, overtaking: Overtaking) -> str:
        who, whom = self._name(overtaking.who), self._name(overtaking.whom)
        if overtaking.level:
            return f"{who} drew level with {whom}, at {overtaking.who_total}."
        return f"{who} passed {whom}, {overtaking.who_total} to {overtaking.whom_total}."

    def _name(self, competitor_id: CompetitorId) -> str:
        return self._board.competitors[competitor_id].name


def criterion_text(ranking: Ranking, criterion: Criterion) -> str:
    """A criterion in words: "points", "points, best 18", "goals among the tied"."""
    name = ranking.unities[criterion.unity_id].name
    best = "" if criterion.best is None else f", best {criterion.best}"
    return f"{name}{best}{' among the tied' if criterion.among else ''}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def _after(stand: DatedPlace) -> str:
    if stand.recorded_at is None:
        return "Before the first event"
    return f"After event {stand.sequence}, recorded at {timestamp(stand.recorded_at)} UTC"


def _stood(stand: DatedPlace) -> str:
    if stand.place.position is None:
        return f"was not in the list, with {stand.place.total}"
    return f"stood {ordinal(stand.place.position)} with {stand.place.total}"


def _moved(step: Step) -> str:
    before, after = step.before.position, step.after.position
    if before is None or after is None:
        return "not in the list" if after is None else f"now {ordinal(after)}"
    return f"still {ordinal(after)}" if before == after else f"{ordinal(before)} → {ordinal(after)}"


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
