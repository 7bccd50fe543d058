"""How a competitor came to be where they are, in sentences.

Everybody is called by the name they have today, so that a competitor has one name throughout.
"""

from collections.abc import Callable, Collection, Iterable
from collections.abc import Sequence as Items
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from api.cli.criteria_text import criterion_notation, criterion_text
from api.interface.competition_names import competition_result_text
from api.interface.direction import isolated
from api.web.result_text import result_text
from api.web.scored_text import corrected_text, scored_text
from api.web.words import Words
from engine.domain.notation import Notation
from engine.domain.terms import CompetitionId, CompetitorId, Counts, Reversal, Sequence, UnityId
from engine.domain.times import timestamp
from projections.answers.classification import Neighbours, TiebreakValue
from projections.answers.criteria import CriterionShape, tiebreak_name
from projections.answers.explainer import Cause, ExplanationStep, Overtaking
from projections.answers.explaining import ExplanationPlace
from projections.answers.explanation import Explanation, Together, together
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking

STEPS_TOLD_MAX: Final = 100
"""Steps that are shown one by one; beyond this, those in which only others moved are counted."""
OVERTAKINGS_TOLD_MAX: Final = 10
"""Overtakings of one step that are listed one by one."""
_TOGETHER: Final = "--from and --to, --top or --around narrow this down, so that each step is shown."
_OF_LIST: Final = (Cause.LIST, Cause.SORT)
_REVERSALS: Final = {
    Reversal.VOID: "was reversed",
    Reversal.CORRECTION: "was corrected",
    Reversal.UNVOID: "counts again",
    Reversal.UNDO: "was undone",
    Reversal.REDO: "was redone",
    Reversal.STRIKE: "no longer counts for those who were struck",
    Reversal.UNSTRIKE: "counts again for those who were struck",
}
"""What happened to the event that added the points."""


class ExplanationText:
    """Explains one competitor's place in a unity, as one would write it to them."""

    def __init__(
        self, words: Words, names: NamesById, ranking: ListedRanking, unity_id: UnityId, competitor_id: CompetitorId
    ) -> None:
        self._words = words
        self._names = names
        self._ranking = ranking
        self._unity = ranking.unity(unity_id)
        self._competitor_id = competitor_id
        self._stood_on: dict[Sequence, str] = {}

    def text(self, explanation: Explanation, *, of_others: str = "") -> str:
        """The whole explanation, in lines. `of_others`: of which others it tells, if not of all."""
        name, text = self._name(self._competitor_id), self._unity.notation.text
        lines = [
            f"{name} in {isolated(self._ranking.name)}: {isolated(self._unity.name)}",
            "",
            *(
                []
                if explanation.on is not UNSET
                else [f"{_after(explanation.start)}, {name} {_stood(explanation.start, text)}."]
            ),
            f"{_by(explanation)}, {name} {_stood(explanation.end, text)}.",
        ]
        if of_others:
            lines.append(f"Of the others, only {of_others} are shown.")
        stands_on, told = self._note_results(explanation.steps), together(explanation.steps, self._competitor_id)
        if stands_on is not None:
            lines.append(f"The total is the result {stands_on}.")
        if explanation.steps:
            lines += ["", *self._summary(explanation, told)]
        else:
            lines.append("Nothing in between changed that position or total.")
        if decided := self._classification(explanation.classification):
            lines += ["", *decided]
        if told.own:
            lines += ["", f"What {name} got, last entered first:", "", *self._told(told.own, explanation.dropped or ())]
        if len(explanation.steps) > STEPS_TOLD_MAX and len(told.others) > 1:
            lines += ["", *self._together(told.others), _TOGETHER]
        elif told.others:
            lines += ["", "When only others moved, newest first:", "", *self._told(told.others)]
        return "\n".join(lines)

    def _told(self, steps: Items[ExplanationStep], dropped: Collection[CompetitionId] = ()) -> list[str]:
        lines = []
        for step in steps:
            is_dropped = step.competition_id in dropped
            left_out = ["The classification leaves this competition out, as one of the worst."] if is_dropped else []
            lines += [self._when(step), *(f"    {sentence}" for sentence in (*self._step(step), *left_out))]
        return lines

    def _when(self, step: ExplanationStep) -> str:
        """When it took place, and when it was recorded, where these differ."""
        happened, recorded = step.took_place, step.recorded_at
        text = f"{timestamp(happened)}  event {step.sequence}"
        return text if happened == recorded else f"{text}, recorded at {timestamp(recorded)}"

    def _note_results(self, steps: Iterable[ExplanationStep]) -> str | None:
        """Notes on which result the total stood at each step that did not change it. Returns that of the last; None:
        these steps do not tell."""
        stands_on, is_last = None, self._unity.counts is Counts.LAST
        for step in steps:
            total = step.total
            if step.total_before != total or (is_last and step.result == total):
                given = None if step.result is None or step.result != total else timestamp(step.took_place)
                stands_on = given and f"{self._unity.notation.text(total)} of {given}"
            elif stands_on is not None:
                self._stood_on[step.sequence] = stands_on
        return stands_on

    def _classification(self, neighbours: Neighbours | None) -> list[str]:
        """What parts the competitor from the neighbours in the classification. The values among the tied are not told:
        those of a line are of the last run over its block, which need not be the run that parted it from another."""
        if neighbours is None or neighbours.standings == []:
            return []
        if neighbours.standings is None:
            return ["What decides the classification would take too long to find out."]
        hers = next(line for line in neighbours.standings if line.competitor_id == self._competitor_id)
        sentences = [f"In the classification, {self._name(hers.competitor_id)} stands {ordinal(hers.position)}."]
        for above, below in pairwise(neighbours.standings):
            one, other = self._name(above.competitor_id), self._name(below.competitor_id)
            if below.decided_by is None:
                sentences.append(f"{one} and {other} are equal in every criterion.")
                continue
            criterion = neighbours.criteria[below.decided_by]
            by = criterion_text(self._ranking, criterion)
            if criterion.among is None:
                values = [line.values[below.decided_by] for line in (above, below)]
                text = criterion_notation(self._ranking, criterion).text
                by += f", {' to '.join(text(one) for one in values if one is not None)}"
            sentences.append(f"{one} stands above {other} by {by}.")
        return sentences + [
            self._tiebreak(neighbours.criteria[one.criterion], one) for one in neighbours.tiebreaks or ()
        ]

    def _tiebreak(self, criterion: CriterionShape, value: TiebreakValue) -> str:
        """What a tie-break is made of."""
        text = (
            criterion_notation(self._ranking, criterion) if criterion.tiebreak != "DE" else self._unity.notation
        ).text
        parts, left_out = list[str](), list[str]()
        for part in value.parts:
            who = "no opponent" if part.opponent_id is None else self._name(part.opponent_id)
            played = "" if part.kind == "played" else f", {part.kind}{', a dummy' if part.dummy else ''}"
            amount = text(part.amount) + (f"/{part.games}" if part.games > 1 else "")
            told = f"{amount} (round {part.round}: {who}{played})"
            (parts if part.left_out is None else left_out).append(told)
        is_place = criterion.tiebreak == "DE"
        told = f"{'place ' if is_place else ''}{value.value if is_place else text(value.value)}"
        divided = f", divided by {value.divisor}" if value.divisor > 1 else ""
        without = f"; left out: {', '.join(left_out)}" if left_out else ""
        return f"{tiebreak_name(criterion)}: {told} = {' + '.join(parts) or 0}{divided}{without}."

    def _summary(self, explanation: Explanation, told: Together) -> list[str]:
        written = self._unity.notation
        results = [step for step in explanation.steps if step.result is not None]
        beaten = sum(step.total_before == step.total for step in results)
        of_which = f", {beaten:,} of which did not improve the total" if self._unity.counts is Counts.BEST else ""
        counted = [
            f"{_times(told.deltas, 'change')} of the total ({written.text(told.gained)} gained, "
            f"{written.text(-told.lost)} lost, {signed(written, told.gained + told.lost)} in all)"
            if self._unity.counts is Counts.SUM
            else f"{_times(len(results), 'result')}{of_which}",
            f"passed someone {_times(told.passed, 'time')}, was passed {_times(told.was_passed, 'time')}",
        ]
        if left_out := sum(step.overtakings_left_out for step in explanation.steps):
            counted.append(f"{left_out:,} more overtakings are not shown")
        return [f"In between: {'; '.join(counted)}."]

    def _step(self, step: ExplanationStep) -> list[str]:
        sentences, written = [], self._unity.notation
        if step.cause in _OF_LIST:
            sentences.append(self._list_sentence(step))
        elif step.scored_now and step.competition_id is not None:
            of = self._competition(step.competition_id, UNSET)
            told = scored_text(self._words, self._names, step.scored_now, written, of=of, on=step.took_place)
            total = f"{written.text(step.total_before)} → {written.text(step.total)}"
            sentences.append(f"{told}. Total {total}, {_moved(step)}.")
        elif step.delta is not None:
            sentences.append(
                f"{signed(written, step.delta)} {self._cause(step)}. "
                f"Total {written.text(step.total_before)} → {written.text(step.total)}, "
                f"{_moved(step)}."
            )
        elif step.result is not None or step.total_before != step.total:
            sentences.append(self._result_sentence(step))
        else:
            sentences.append(f"Others moved {self._cause(step)}: {_moved(step)}.")
        return sentences + self._overtakings(step)

    def _result_sentence(self, step: ExplanationStep) -> str:
        """Of a result, or of a reversal of results."""
        text, before, after = self._unity.notation.text, step.total_before, step.total
        given = "Results changed" if step.result is None else f"A result of {text(step.result)}"
        if before == after and self._unity.counts is Counts.BEST:
            total = self._stood_on.get(step.sequence, text(before))
            return f"{given} {self._cause(step)}. It did not improve {total}, {_moved(step)}."
        return f"{given} {self._cause(step)}. Total {text(before)} → {text(after)}, {_moved(step)}."

    def _overtakings(self, step: ExplanationStep) -> list[str]:
        """A sentence each; if there are many, for some: who passed before who drew level, the nearest totals first."""
        if len(step.overtakings) <= OVERTAKINGS_TOLD_MAX:
            told = step.overtakings
        else:
            nearest = sorted(
                step.overtakings, key=lambda one: (one.level, abs((one.who_total or 0) - (one.whom_total or 0)))
            )
            told = nearest[:OVERTAKINGS_TOLD_MAX]
        more = len(step.overtakings) - len(told) + step.overtakings_left_out
        return [*map(self._overtaking, told), *([f"And {more:,} more."] if more else [])]

    def _together(self, steps: Items[ExplanationStep]) -> list[str]:
        """Steps in which only others moved."""
        told = together(steps, self._competitor_id)
        counted = f"was passed {_times(told.was_passed, 'time')} and passed {_times(told.passed, 'time')}"
        return [f"In {len(steps):,} further events only others moved: {self._name(self._competitor_id)} {counted}."]

    def _list_sentence(self, step: ExplanationStep) -> str:
        name, total = self._name(self._competitor_id), self._unity.notation.text(step.total)
        if step.position_after is None:
            return f"{name} left the list."
        if step.position_before is None:
            stands = "not placed" if step.total is None else f"{ordinal(step.position_after)} with {total}"
            return f"{name} joined the list: {stands}."
        changed = "The sort order" if step.cause is Cause.SORT else "The list of competitors"
        return f"{changed} changed: {_moved(step)}."

    def _cause(self, step: ExplanationStep) -> str:
        reason = "" if step.reason is None else f" ({isolated(step.reason)})"
        by = "a free modification"
        if step.competition_id is not None:
            by = self._competition(step.competition_id, step.score_now)
        by += corrected_text(self._words, step.corrected.earlier) if step.corrected else ""
        if step.reversal is Reversal.EXPIRY:
            return "because points expired"
        if step.reversal is not None:
            return f"because event {step.reverses}, by {by}, {_REVERSALS[step.reversal]}"
        return f"by {by}{reason}"

    def _competition(self, competition_id: CompetitionId, score: str | UnsetType) -> str:
        """`score`: the one that it had."""
        competition = self._names.competition(competition_id)
        if competition is None:
            return f"competition {competition_id}"
        voided = "" if competition.voided_at is None else ", since voided"
        said = score and result_text(self._words, score)
        return f"{competition_result_text(self._names, competition, said)}, group {competition.group_id}{voided}"

    def _overtaking(self, overtaking: Overtaking) -> str:
        who, whom = self._name(overtaking.who), self._name(overtaking.whom)
        text = self._unity.notation.text
        if overtaking.level:
            return f"{who} drew level with {whom}, at {text(overtaking.who_total)}."
        return f"{who} passed {whom}, {text(overtaking.who_total)} to {text(overtaking.whom_total)}."

    def _name(self, competitor_id: CompetitorId) -> str:
        return isolated(self._names.competitor(competitor_id).name)


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def _after(stand: ExplanationPlace) -> str:
    if stand.recorded_at is None:
        return "Before the first event"
    return f"After event {stand.sequence}, recorded at {timestamp(stand.recorded_at)} UTC"


def _by(explanation: Explanation) -> str:
    """Which moment the explanation ends at, by both clocks if it is of a day."""
    after = _after(explanation.end)
    if explanation.on is UNSET:
        return after
    return f"By what had taken place at {timestamp(explanation.on)} UTC, as known {after[0].lower()}{after[1:]}"


def _stood(stand: ExplanationPlace, text: Callable[[int | None], str]) -> str:
    if stand.recorded_at is None:
        return "was not in the list"
    if stand.position is None:
        return f"was not in the list, with {text(stand.total)}"
    return "was not placed" if stand.total is None else f"stood {ordinal(stand.position)} with {text(stand.total)}"


def signed(notation: Notation, number: int) -> str:
    """A change of a total, with its sign."""
    return f"{'+' if number >= 0 else ''}{notation.text(number)}"


def only_with(explanation: Explanation, competitor_id: CompetitorId, others: Collection[int]) -> Explanation:
    """The explanation of this competitor, without what happened between her and all but these others."""
    steps = []
    for step in explanation.steps:
        overtakings = [o for o in step.overtakings if (o.whom if o.who == competitor_id else o.who) in others]
        if step.is_own or overtakings:
            steps.append(msgspec.structs.replace(step, overtakings=overtakings))
    return msgspec.structs.replace(explanation, steps=steps)


def _moved(step: ExplanationStep) -> str:
    if step.position_after is None:
        return "not in the list"
    after = "not placed" if step.total is None else ordinal(step.position_after)
    if step.position_before is None:
        return f"now {after}"
    before = "not placed" if step.total_before is None else ordinal(step.position_before)
    return f"still {after}" if before == after else f"{before} → {after}"


def _times(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
