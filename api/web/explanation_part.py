"""The part of a competitor's page that explains their line: every step by which they reached their position."""

from collections.abc import Container, Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from api.interface.competition_names import competition_result_text
from api.interface.direction import isolated
from api.web.html import Child, Html, element
from api.web.page import ToId, name_text
from api.web.result_text import result_text
from api.web.scored_text import corrected_text, scored_text
from api.web.table import unity_name
from api.web.words import Words
from engine.domain.terms import CompetitionId, CompetitorId, Counts, RankingId, Reversal, Sequence, Sort
from projections.answers.classification import Neighbours
from projections.answers.criteria import tiebreak_name, value_notation
from projections.answers.explainer import Cause, ExplanationStep, Overtaking
from projections.answers.explanation import Explanation, Settled, Together, settled, together
from projections.answers.names import NamesById
from projections.answers.rankings import ListedUnity

OVERTAKINGS_SHOWN_MAX: Final = 5
"""Overtakings of one step that are listed one by one."""
_CAUSES: Final = {
    Cause.POINTS: "cause_points",
    Cause.REVERSAL: "cause_reversal",
    Cause.LIST: "cause_list",
    Cause.SORT: "cause_sort",
}
_REVERSALS: Final = {
    Reversal.VOID: "cause_void",
    Reversal.UNVOID: "cause_unvoid",
    Reversal.STRIKE: "cause_strike",
    Reversal.UNSTRIKE: "cause_unstrike",
    Reversal.EXPIRY: "cause_expiry",
}
"""What has words of its own."""


def tiebreaks_part(
    words: Words, names: NamesById, ranking_id: RankingId, classification: Neighbours | None
) -> Html | None:
    """What the competitor's tie-breaks are made of: a line for each round, a column for each tie-break. What is left
    out is struck through."""
    values = [] if classification is None else classification.tiebreaks or []
    if classification is None or not values:
        return None
    cells: dict[tuple[int, int], Html] = {}
    opponents: dict[int, list[Html | str]] = {}
    heads, sums = list[Html](), list[Html]()
    for column, value in enumerate(values):
        criterion = classification.criteria[value.criterion]
        unity = names.unity(ranking_id, criterion.unities[0])
        points, of_value = unity.notation, value_notation(criterion, unity.notation, Sort(unity.sort))
        of_part = points if criterion.tiebreak == "DE" else of_value
        for part in value.parts:
            if part.opponent_id is None:
                who: Html | str = words("bye" if part.kind == "bye" else "absent")
            else:
                who = name_text(names.competitor(part.opponent_id).name)
            opponents.setdefault(part.round, [who])
            text = words.number(part.amount, of_part) + (f"/{part.games}" if part.games > 1 else "")
            shown = element("span", text, title=words("dummy") if part.dummy else None)
            cells[part.round, column] = shown if part.left_out is None else element("s", shown, title=words("left_out"))
        heads.append(element("th", tiebreak_name(criterion), scope="col", class_="value"))
        sums.append(element("td", words.number(value.value, of_value), class_="value"))
    rows = [
        element(
            "tr",
            element("th", str(number), scope="row", class_="when"),
            element("td", *opponents[number], class_="name"),
            *[element("td", cells.get((number, column), ""), class_="value") for column in range(len(values))],
        )
        for number in sorted(opponents)
    ]
    return element(
        "table",
        element("caption", words("tiebreaks")),
        element(
            "thead",
            element(
                "tr",
                element("th", words("round", number="").strip(), scope="col", class_="when"),
                element("th", words("opponent"), scope="col", class_="name"),
                *heads,
            ),
        ),
        element("tbody", *rows, element("tr", element("td"), element("td", words("value"), class_="name"), *sums)),
    )


class _Telling(Struct, frozen=True):
    """What steps are told with: `her` and `unity` are those explained, `late` and `dropped` as in the explanation."""

    words: Words
    names: NamesById
    her: CompetitorId
    unity: ListedUnity
    late: Container[Sequence]
    dropped: Container[CompetitionId]
    to: ToId

    @property
    def unity_name(self) -> str:
        return unity_name(self.words, self.unity.name)


def steps_part(
    words: Words, names: NamesById, explanation: Explanation, unity: ListedUnity, to: ToId, *, is_alone: bool
) -> list[Html]:
    """A summary of the steps; the competitor's own steps; and, folded away, corrections, and the steps in which only
    others moved. `to`: the address of a competition; `is_alone`: the table compares more than this unity."""
    steps, her = explanation.steps, explanation.competitor_id
    if not steps:
        return [element("p", words("no_steps"))]
    all_steps, as_recorded = together(steps, her), explanation.on is UNSET
    telling = _Telling(words, names, her, unity, all_steps.late, explanation.dropped or (), to)
    key = "steps_alone" if as_recorded else "all_alone"
    alone = f" {words(key, unity=telling.unity_name)}" if is_alone else ""
    told = [element("p", _summary(words, steps, all_steps, unity), alone, class_="summary")]
    own = settled(all_steps.own) if as_recorded else Settled(all_steps.own, [])
    corrections = {step.sequence for step in steps if step.corrects} if as_recorded else set[Sequence]()
    if own.kept:
        left = corrections - {step.sequence for step in own.corrected}
        told.append(_table(telling, own.kept, words("own_steps"), left))
    for key, caption, its in (
        ("corrected_count", "corrected_steps", own.corrected),
        ("others_moved_count", "others_steps", all_steps.others),
    ):
        if its:
            summary = element("summary", words(key, number=len(its)))
            told.append(element("details", summary, _table(telling, its, words(caption), corrections)))
    return told


def _summary(words: Words, steps: Items[ExplanationStep], told: Together, unity: ListedUnity) -> str:
    """The steps in total, in words."""
    notation, first, last = unity.notation, steps[0].position_before, steps[-1].position_after
    times, was_passed = words.counted("times", told.passed), words.counted("times", told.was_passed)
    said = [words("passed_times", passed=times, was_passed=was_passed)]
    if unity.counts is Counts.SUM:
        sums = {"gained": words.signed(told.gained, notation), "lost": words.number(told.lost, notation)}
        said.insert(0, words.counted("changes", told.deltas, **sums))
    if first is not None and last not in (None, first):
        said.append(words("from_to", first=first, last=last))
    return " ".join(said)


def _table(telling: _Telling, steps: Iterable[ExplanationStep], caption: str, corrections: Container[Sequence]) -> Html:
    """`corrections`: the steps that have the time of their recording, with the day of the competition."""
    words = telling.words
    heads = [
        element("th", text, scope="col", class_=kind)
        for text, kind in (
            (words("when"), "when"),
            (words("what"), "name"),
            (words("change"), "value"),
            (telling.unity_name, "value first"),
            (words("place"), "value"),
        )
    ]
    return element(
        "table",
        element("caption", caption, class_="unseen"),
        element("thead", element("tr", *heads)),
        element("tbody", *[_row(telling, step, corrects=step.sequence in corrections) for step in steps]),
    )


def _row(telling: _Telling, step: ExplanationStep, *, corrects: bool) -> Html:
    words, unity = telling.words, telling.unity
    what: Child = _what(words, telling.names, step, unity, step.took_place if corrects else None)
    if step.competition_id is not None and telling.names.competition(step.competition_id) is not None:
        what = element("a", what, href=telling.to(step.competition_id), class_="who-met")
    said = [element("p", what)]
    if step.reason is not None:
        said.append(element("p", step.reason, class_="reason"))
    if step.overtakings:
        said.append(element("p", _overtakings(words, telling.names, step, telling.her), class_="overtakings"))
    entered = words("entered_late", day=words.day(step.recorded_at)) if step.sequence in telling.late else None
    change = None if step.delta is None else words.signed(step.delta, unity.notation)
    if step.result is not None:
        change = words.number(step.result, unity.notation)
    return element(
        "tr",
        element(
            "td",
            words.when_element(step.recorded_at if corrects else step.took_place),
            entered and element("span", entered, class_="late"),
            class_="when",
        ),
        element("td", *said, class_="name"),
        element(
            "td",
            change,
            element("span", words("dropped"), class_="late") if step.competition_id in telling.dropped else None,
            class_="value",
            data_label=words("change"),
        ),
        element(
            "td",
            words.number(step.total, unity.notation),
            class_="value first",
            data_label=telling.unity_name,
        ),
        element("td", _places(words, step), class_="value", data_label=words("place")),
    )


def _what(words: Words, names: NamesById, step: ExplanationStep, unity: ListedUnity, on: datetime | None) -> str:
    """`on`: the day of the competition, if it is told."""
    if step.scored_now and step.competition_id is not None:
        of = _competition(words, names, step.competition_id, UNSET)
        return scored_text(words, names, step.scored_now, unity.notation, of=of, on=on)
    cause = words(_CAUSES[step.cause])
    if step.reversal is not None:
        # An undone deduction gives points back.
        is_withdrawn = step.delta < 0 if step.delta else step.reversal.takes_back
        in_general = words("cause_reversal" if is_withdrawn else "cause_given_back")
        cause = words(_REVERSALS[step.reversal]) if step.reversal in _REVERSALS else in_general
    if step.competition_id is None:
        return words("others_moved") if step.cause is Cause.POINTS and not step.is_own else cause
    named = _competition(words, names, step.competition_id, step.score_now)
    named = named if on is None else words("scored_on", told=named, day=words.day(on))
    named += corrected_text(words, step.corrected.earlier) if step.corrected else ""
    return named if step.cause is Cause.POINTS else f"{cause}: {named}"


def _competition(words: Words, names: NamesById, competition_id: CompetitionId, score: str | UnsetType) -> str:
    """`score`: the one that it had."""
    competition = names.competition(competition_id)
    if competition is None:
        return words("competition_number", number=competition_id)
    said = score and result_text(words, score)
    told = competition_result_text(names, competition, said, words("competition_of"))
    return words("group", competition=told, number=competition.group_id)


def _places(words: Words, step: ExplanationStep) -> str:
    if step.position_after is None:
        return words("left")
    after = words.number(step.position_after if step.total is not None else None)
    before = words.number(step.position_before if step.total_before is not None else None)
    return after if step.position_before is None or before == after else f"{before} → {after}"


def _overtakings(words: Words, names: NamesById, step: ExplanationStep, her: CompetitorId) -> str:
    told = [_overtaking(words, names, one, her) for one in step.overtakings[:OVERTAKINGS_SHOWN_MAX]]
    more = len(step.overtakings) - len(told) + step.overtakings_left_out
    if more:
        told.append(words("more", number=words.number(more)))
    return "; ".join(told)


def _overtaking(words: Words, names: NamesById, one: Overtaking, her: CompetitorId) -> str:
    other = isolated(names.competitor(one.whom if one.who == her else one.who).name)
    if one.level:
        return words("drew_level" if one.who == her else "other_drew_level", name=other)
    return words("passed" if one.who == her else "other_passed", name=other)
