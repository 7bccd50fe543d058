"""Scorings: how the results of competitions become points in a ranking.

Pure. `wanted` derives from one result all the amounts that it gives. What is recorded for a new or corrected result is
the difference to what was recorded before, so a scoring itself never looks at earlier lines.

A result is read in these forms. Of two participants: a score `a:b`, perhaps with a word (`2:2 pen`), a word alone,
`+:-` for a forfeit, or two performances `x|y`. Of one: a performance, or a bye. Of more: a performance for each. Who
won is decided by the word, then by the declared winner, then by the score or the places.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from typing import Final, Protocol, assert_never, get_args

from msgspec import Struct, structs

from engine.domain.awards import ABSENT, Award, AwardValue, Entries, ResultOutcome, Says, Scoring
from engine.domain.errors import Fault
from engine.domain.notation import with_point
from engine.domain.problems import NONE_SOLVED, problem_of
from engine.domain.state import ParticipantsState, RankingState, UnityState
from engine.domain.steps import Steps, finished
from engine.domain.terms import (
    AWARDS_MAX,
    DELTA_MAX,
    ENROLLED_MAX,
    SCORING_TABLE_MAX,
    SCORINGS_MAX,
    CompetitorId,
    Counts,
    UnityId,
    name_fault,
)


class ScoredCompetition(Protocol):
    """What a scoring reads of a competition. `scale`: the name of a scoring; empty: none."""

    @property
    def group_id(self) -> int: ...
    @property
    def participants(self) -> tuple[CompetitorId, ...]: ...
    @property
    def result(self) -> str | Mapping[CompetitorId, str] | None: ...
    @property
    def winner_id(self) -> CompetitorId | None: ...
    @property
    def scale(self) -> str: ...


class ScoredRanking(Protocol):
    """What a scoring reads of a ranking."""

    @property
    def participants(self) -> ParticipantsState: ...
    @property
    def unities(self) -> Mapping[UnityId, UnityState]: ...


ScoredAmounts = dict[tuple[CompetitorId, UnityId], int]
"""What a result gives: an amount for each competitor and unity."""


class NotRead(Exception):
    """A result that a scoring cannot read: it is accepted, gives nothing, and is listed. `why`: a sentence about it.
    `forms`: those that count."""

    def __init__(self, why: str, forms: tuple[str, ...]) -> None:
        super().__init__(f"{why} Forms that count: {'; '.join(forms)}.")
        self.why = why
        self.forms = forms


class Undecided(NotRead):
    """The result of a match that was abandoned: it gives nothing until it is decided."""


class ReadResult(Struct, frozen=True, kw_only=True):
    """What a result says of one participant. `score`: own and other's; `word`: the one after it, in lower case;
    `size`: that of the performance, of which smaller ones are better, or the place that was sent; None: nothing depends
    on it; `status`: instead of a performance, such as `dnf`."""

    outcome: ResultOutcome | None = None
    word: str = ""
    score: tuple[str, str] | None = None
    performance: str = ""
    size: int | None = None
    status: str = ""

    def keys(self, value: AwardValue) -> Iterator[str]:
        """Those that a table can have for it, the most exact first."""
        texts = [":".join(self.score)] if value == "score" and self.score else []
        if self.outcome is not None:
            texts.append(self.outcome)
        for text in texts:
            if self.word:
                yield f"{text} {self.word}"
            yield text


USUAL_WORDS: Final[Mapping[str, Says]] = {
    "aet": None,
    "pen": None,
    "wo": "awarded",
    "walkover": "awarded",
    "awarded": "awarded",
}
"""Words that every scoring knows: extra time, penalties, and what was not played."""
ABANDONED: Final = "abandoned"
"""The word, alone or after a score, of a match that is not decided. A scoring may declare it as another word."""
SHOOT_OUT: Final = "pen"
"""The word of a match that has a winner whatever its score. A scoring may declare it as another word."""
FORFEIT_OF_BOTH: Final = "-:-"
"""What stands for the word of a match that was not played, and that both have lost."""
USUAL_STATUSES: Final = frozenset(("dns", "dnf", "dsq", "dq", "nc"))
"""Texts that are known as no performance even where nothing is declared for them: not started, not finished,
disqualified, not competing."""
_OF_DUELS: Final = frozenset(("outcome", "score", "for", "against"))
_OF_CONTESTS: Final = frozenset(("solved", "minutes", "tries", "last"))
_OUTCOMES: Final = get_args(ResultOutcome)
_WITH_KEYS: Final = ("outcome", "score", "performance", "place")
_SIGNS: Final[dict[str, ResultOutcome]] = {"+": "win", "-": "loss"}
_LEFT_OUT: Final = str.maketrans("", "", "()./")

_KEY_SHOWN_MAX: Final = 80
"""Characters of a key that a fault repeats."""
PARTICIPANTS_AT_ONCE: Final = 500
"""Participants of whom one step reads a result, or counts points."""
SHOWN_KEYS_MAX: Final = 20
"""Keys of a table that are named when a result is not among them."""
_NUMBER: Final = r"(1/2|½|[0-9]{1,9}(?:[.,][0-9]{1,6}|½)?)"
_SCORE: Final = re.compile(rf"{_NUMBER}\s*[:–-]\s*{_NUMBER}\s*(.*)", re.DOTALL | re.ASCII)  # noqa: RUF001 - a dash is one, too
_FORFEIT: Final = re.compile(r"([+-])\s*[:/]?\s*([+-])", re.ASCII)
_PERFORMANCES: Final = re.compile(r"([^|]+)\|([^|]+)")
_BYE: Final = re.compile(r"(?:(full|half|zero)[ -](?:point )?)?bye")
_QUANTITY: Final = re.compile(r"([0-9]{1,18}(?::[0-5][0-9]){0,2})(?:\.([0-9]{1,9}))?")
_PLACE: Final = re.compile(r"[1-9][0-9]{0,8}")
_MINUS: Final = "\N{MINUS SIGN}"


def choose(scorings: Iterable[Scoring], competition: ScoredCompetition) -> Scoring | None:
    """The scoring for a competition: the one that its scale names, or else the first for its group; None: there is
    none."""
    scale = _plain(competition.scale)
    for scoring in scorings:
        if scale:
            if _plain(scoring.name) == scale:
                return scoring
        elif competition.group_id in scoring.groups if scoring.groups else not scoring.name:
            return scoring
    return None


def wanted(scoring: Scoring, competition: ScoredCompetition, ranking: ScoredRanking) -> ScoredAmounts:
    """The points that the result gives in the ranking, to competitors who are or were in it. A 0 was given, too. None
    without a result. Raises NotRead."""
    return finished(wanted_in_steps(scoring, competition, ranking))


def wanted_in_steps(scoring: Scoring, competition: ScoredCompetition, ranking: ScoredRanking) -> Steps[ScoredAmounts]:
    """As `wanted`. The result may have thousands of participants."""
    return (yield from amounts_of(scoring, (yield from read_in_steps(scoring, competition)), ranking))


def amounts_of(
    scoring: Scoring, readings: Mapping[CompetitorId, ReadResult], ranking: ScoredRanking
) -> Steps[ScoredAmounts]:
    """As `wanted`, of what the result says of each participant."""
    if not readings:
        return {}
    lines: ScoredAmounts = {}
    entries = scoring.entries or len(ranking.participants)
    among = places(scoring, readings, ranking)
    ours = {c: one for c, one in readings.items() if ranking.participants.row(c) is not None}
    for award in scoring.awards:
        unity_id, placed = award.unity_id, among.get(award.among, {})
        unity = ranking.unities[unity_id]
        statuses = {_plain(status): _status_amount(award, given, entries) for status, given in award.statuses.items()}
        for number, (c, one) in enumerate(ours.items(), start=1):
            amount = _amount(scoring, award, one, unity, placed.get(c), statuses)
            if amount is not None:
                named = c, unity_id
                lines[named] = lines.get(named, 0) + amount
            if number % PARTICIPANTS_AT_ONCE == 0:
                yield
        if (absent := statuses.get(ABSENT)) is not None and not award.outcomes:
            for c in ranking.participants:
                if c not in ours:
                    lines[c, unity_id] = lines.get((c, unity_id), 0) + absent
    if max(map(abs, lines.values()), default=0) > DELTA_MAX:
        for (_, unity_id), total in lines.items():
            most = ranking.unities[unity_id].counts.most
            if not -most <= total <= most:
                raise _not_read(scoring, f"It gives {total}, which is not within ±{most}.")
    return lines


def why_nothing(
    scorings: Iterable[Scoring], competition: ScoredCompetition, ranking: ScoredRanking
) -> Steps[str | None]:
    """Why the result gives nothing in the ranking, with the forms that count. None: it gives something, there is none,
    nobody in it was ever in the ranking, or no scoring is for it."""
    if competition.result is None and competition.winner_id is None:
        return None
    if all(ranking.participants.row(one) is None for one in competition.participants):
        return None
    scoring = choose(scorings, competition)
    if scoring is None:
        return f"No scoring of the ranking is called {competition.scale!r}." if competition.scale else None
    try:
        yield from wanted_in_steps(scoring, competition, ranking)
    except NotRead as error:
        return str(error)
    return None


def counts_enrolled(scoring: Scoring) -> bool:
    """Whether what a result gives also depends on competitors who have no part in it."""
    given = [one for award in scoring.awards for one in award.statuses.items()]
    return any(_plain(status) == ABSENT or (amount == "entries+1" and not scoring.entries) for status, amount in given)


def was_played(scoring: Scoring, result: ReadResult) -> bool:
    """Whether a duel was played: it was not if its word or its score says that it was awarded."""
    words, score = _words(scoring), result.score or ()
    return "awarded" not in [words.get(one) for one in (result.word, ":".join(score), ":".join(score[::-1]))]


def worth(scorings: Iterable[Scoring], unity_id: UnityId, outcome: ResultOutcome) -> int | None:
    """What an outcome gives in a unity, by the first scoring that says so; None: none does."""
    for scoring in scorings:
        amounts = [
            award.table.get(outcome) if isinstance(award.table, dict) else award.factor
            for award in scoring.awards
            if award.unity_id == unity_id
            and award.value in ("outcome", "score")
            and (not award.outcomes or outcome in award.outcomes)
        ]
        if found := [amount for amount in amounts if amount is not None]:
            return sum(found)
    return None


def outcomes_by_amount(scorings: Iterable[Scoring], unity_id: UnityId) -> dict[int, ResultOutcome]:
    """Which outcome each amount in a unity stands for; empty: some amount may stand for something else."""
    awards = [award for scoring in scorings for award in scoring.awards if award.unity_id == unity_id]
    tables = [award.table for award in awards if award.value == "outcome" and not award.outcomes]
    if not tables or len(tables) < len(awards) or any(table != tables[0] for table in tables):
        return {}
    amounts = {"loss": 0, **tables[0]} if isinstance(tables[0], dict) else {}
    by_amount: dict[int, ResultOutcome] = {amounts[one]: one for one in ("win", "draw", "loss") if one in amounts}
    return by_amount if len(by_amount) == len(amounts) == 3 else {}


def places(
    scoring: Scoring, readings: Mapping[CompetitorId, ReadResult], ranking: ScoredRanking
) -> dict[str, dict[CompetitorId, tuple[int, int]]]:
    """The place of each with a performance, and how many share it, by whose places awards count."""
    found: dict[str, dict[CompetitorId, tuple[int, int]]] = {}
    if among := {award.among for award in scoring.awards if award.value == "place"}:
        sizes = {c: one.size for c, one in readings.items() if one.size is not None}
        if "participants" in among:
            found["participants"] = _places(sizes, were_sent=scoring.order == "sent")
        if "enrolled" in among:
            enrolled = ranking.participants.lookup()
            found["enrolled"] = _places({c: size for c, size in sizes.items() if c in enrolled}, were_sent=False)
    return found


def _places(sizes: Mapping[CompetitorId, int], *, were_sent: bool) -> dict[CompetitorId, tuple[int, int]]:
    """The place of each, and how many share it. `were_sent`: the sizes are the places."""
    sharing = Counter(sizes.values())
    if were_sent:
        return {c: (size, sharing[size]) for c, size in sizes.items()}
    before = accumulate([sharing[size] for size in sorted(sharing)], initial=1)
    rank = dict(zip(sorted(sharing), before, strict=False))
    return {c: (rank[size], sharing[size]) for c, size in sizes.items()}


def _status_amount(award: Award, given: int | Entries | None, entries: int) -> int | None:
    return _shared_amount(award, entries + 1, 1) if isinstance(given, str) else given


def _amount(
    scoring: Scoring,
    award: Award,
    reading: ReadResult,
    unity: UnityState,
    place: tuple[int, int] | None,
    statuses: Mapping[str, int | None],
) -> int | None:
    """What an award gives to a participant; None: nothing, not even 0. `place`: with how many it is shared."""
    if award.outcomes and reading.outcome not in award.outcomes:
        return None
    if reading.status and reading.status in statuses:
        return statuses[reading.status]
    match award.value:
        case "outcome" | "score":
            return _by_table(scoring, award, reading)
        case "place":
            return None if place is None else _shared_amount(award, *place)
        case "for" | "against":
            return reading.score and award.factor * _number(scoring, reading.score[award.value == "against"], unity)
        case "performance":
            if not reading.performance:
                return None
            if isinstance(award.table, dict):
                if (text := _plain(reading.performance)) not in award.table:
                    raise _not_listed(scoring, reading.performance, award.table)
                return award.table[text]
            return award.factor * _number(scoring, reading.performance, unity)
        case "solved" | "minutes" | "tries" | "last":
            return award.factor * _contest(scoring, reading.performance)[award.value] if reading.performance else None
        case _:
            assert_never(award.value)


def _by_table(scoring: Scoring, award: Award, reading: ReadResult) -> int | None:
    if reading.outcome is None:
        return None
    if not isinstance(award.table, dict):
        return award.factor
    keys = [*reading.keys(award.value)]
    for key in keys:
        if key in award.table:
            return award.table[key]
    if reading.outcome == "bye":
        return None
    if award.value == "outcome" and reading.outcome == "loss":
        return 0
    raise _not_listed(scoring, keys[0], award.table)


def _not_listed(scoring: Scoring, text: str, table: dict[str, int]) -> NotRead:
    return _not_read(scoring, f"{text!r} is not one of {', '.join(islice(table, SHOWN_KEYS_MAX))}.")


def _number(scoring: Scoring, text: str, unity: UnityState) -> int:
    try:
        return unity.notation.number(text)
    except ValueError as error:
        raise _not_read(scoring, f"{text!r} cannot count in the unity {unity.name!r}: it {error}.") from None


def _shared_amount(award: Award, place: int, sharing: int) -> int | None:
    """The amount of a place, or the mean of those that this many fill: to the nearest, halves away from zero."""
    table, count = award.table, sharing
    if count == 1 or award.ties != "mean":
        if table is None:
            return award.factor * place
        if isinstance(table, dict):
            return table.get(str(place))
        return table[place - 1] if place <= len(table) else 0
    if isinstance(table, dict):
        filled = range(place, place + count)
        found = [amount for key, amount in table.items() if _PLACE.fullmatch(key) and int(key) in filled]
        if not found:
            return None
        total = sum(found)
    elif table is None:
        total = award.factor * count * (2 * place + count - 1) // 2
    else:
        total = sum(table[place - 1 : place - 1 + count])
    size = (2 * abs(total) + count) // (2 * count)
    return size if total >= 0 else -size


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────


def read(scoring: Scoring, competition: ScoredCompetition) -> dict[CompetitorId, ReadResult]:
    """What the result says of each participant; nothing of a fixture. Raises NotRead."""
    return finished(read_in_steps(scoring, competition))


def read_in_steps(scoring: Scoring, competition: ScoredCompetition) -> Steps[dict[CompetitorId, ReadResult]]:
    """As `read`. The result may have thousands of participants."""
    participants, result = competition.participants, competition.result
    winner = competition.winner_id if competition.winner_id in participants else None
    if not result and winner is None:
        return {}
    performances = performances_of(participants, result)
    if performances is None:
        text = result.strip() if isinstance(result, str) else ""
        readings = _duel(scoring, text, participants, winner)
        if readings is None and len(participants) == 1:
            performances = {participants[0]: text}
        elif readings is None:
            raise _not_read(scoring, f"{text!r} is in none of the forms that count.")
        elif not scores_duels(scoring):
            raise _not_read(scoring, f"{text!r} has no performances.")
        else:
            return readings
    if not _scores_performances(scoring):
        raise _not_read(scoring, "It has performances, which give no points.")
    return (yield from _performed(scoring, performances, winner))


def _forfeit(text: str) -> re.Match[str] | None:
    """The signs of both in a forfeit, such as +:-."""
    return _FORFEIT.fullmatch(text.replace(_MINUS, "-"))


def winner_by_score(
    participants: tuple[CompetitorId, ...], result: object, *, even_with_word: bool = True
) -> CompetitorId | None:
    """Who of two has the higher score, perhaps with a usual word, or won by forfeit; None: the result does not say."""
    if len(participants) != 2 or not isinstance(result, str):
        return None
    text = result.strip()
    if (signs := _forfeit(text)) is not None:
        return None if signs[1] == signs[2] else participants[signs[2] == "+"]
    found = _SCORE.fullmatch(text)
    if found is None or (word := _plain(found[3])) not in {"", *USUAL_WORDS} or (word and not even_with_word):
        return None
    one, other = [_quantity(_exact(part)) or 0 for part in found.groups()[:2]]
    return None if one == other else participants[one < other]


def turned(result: str) -> str | None:
    """A score of two, a forfeit or two performances as they read for the second one; None: it is none of these."""
    found = _SCORE.fullmatch(result) or _FORFEIT.fullmatch(result) or _PERFORMANCES.fullmatch(result)
    if found is None:
        return None
    between, rest = result[found.end(1) : found.start(2)], result[found.end(2) :]
    return f"{found[2]}{between}{found[1]}{rest}"


def score_and_word(result: str) -> tuple[str, str]:
    """The score, and the word alone or after it, in the form in which words are compared; each may be empty. A forfeit
    has the word wo; one that both have lost, FORFEIT_OF_BOTH."""
    text = result.strip()
    if (signs := _forfeit(text)) is not None:
        return "", FORFEIT_OF_BOTH if signs[1] == signs[2] == "-" else "wo"
    found = _SCORE.fullmatch(text)
    return ("", _plain(text)) if found is None else (text[: found.end(2)], _plain(found[3]))


def tells_the_winner(participants: tuple[CompetitorId, ...], result: object) -> bool:
    """Whether the result alone decides which of two has won, or that neither has: a forfeit, or a score without a
    word."""
    if len(participants) != 2 or not isinstance(result, str):
        return False
    text = result.strip()
    if _forfeit(text) is not None:
        return True
    found = _SCORE.fullmatch(text)
    return found is not None and not _plain(found[3])


def contradicts(participants: tuple[CompetitorId, ...], result: object, winner: CompetitorId | None) -> bool:
    """Whether this winner has the lower score, and no word after it says why."""
    return winner is not None and winner_by_score(participants, result, even_with_word=False) not in (None, winner)


def named_winner_faults(competition: ScoredCompetition, scorings: Iterable[Scoring]) -> Steps[list[Fault]]:
    """What console, command line and imports say of a winner that the result contradicts, and of a shoot-out without
    one. `scorings`: those that are for it."""
    participants, result, winner = competition.participants, competition.result, competition.winner_id
    wrong, chosen = "", [*scorings]
    if winner is None:
        word = score_and_word(result)[1] if isinstance(result, str) and len(participants) == 2 else ""
        if word == SHOOT_OUT and all(_is_shoot_out(scoring, word) for scoring in chosen):
            wrong = "name the winner: a shoot-out always has one"
    elif contradicts(participants, result, winner):
        wrong = "has the lower score; leave it out, or add a word such as wo"
    elif (performances := performances_of(participants, result)) is not None:
        for scoring in chosen:
            try:
                readings = yield from _performed(scoring, performances, None)
            except NotRead:
                continue
            if winner in readings and readings[winner].outcome == "loss":
                wrong = "is not first in the result; leave it empty, or correct the result"
    return [Fault("winner", wrong)] if wrong else []


def scorings_of(rankings: Iterable[RankingState], competition: ScoredCompetition) -> list[tuple[RankingState, Scoring]]:
    """The scorings that are for the competition, with their rankings."""
    chosen = [(ranking, choose(ranking.scorings, competition)) for ranking in rankings if ranking.scorings]
    return [
        (ranking, scoring)
        for ranking, scoring in chosen
        if scoring is not None and any(ranking.participants.row(one) is not None for one in competition.participants)
    ]


def performances_of(
    participants: tuple[CompetitorId, ...], result: str | Mapping[CompetitorId, str] | None
) -> dict[CompetitorId, str] | None:
    """The performances that are not empty: of two participants `10.1|9.8`; None: the result is of another form."""
    if isinstance(result, str):
        parts = result.split("|")
        result = dict(zip(participants, parts, strict=True)) if len(participants) == len(parts) == 2 else None
    return None if result is None else {c: text for c in participants if (text := result.get(c, "").strip())}


def _duel(
    scoring: Scoring, text: str, participants: tuple[CompetitorId, ...], winner: CompetitorId | None
) -> dict[CompetitorId, ReadResult] | None:
    """What a score, a word, a bye, or only a winner says; None: the text is of another form."""
    pair, words, word = len(participants) == 2, _words(scoring), _plain(text)
    if pair and ABANDONED not in words and word.split(" ")[-1] == ABANDONED:
        raise Undecided("It was abandoned, and gives nothing until it is decided.", _forms(scoring))
    readings = [ReadResult(word=word)] * len(participants)
    if len(participants) == 1 and (bye := _BYE.fullmatch(text.casefold())) is not None:
        return {participants[0]: ReadResult(outcome="bye", word=bye[1] or "")}
    if pair and (signs := _forfeit(text)) is not None and "-" in signs.groups():
        return {c: ReadResult(outcome=_SIGNS[i], word="wo") for c, i in zip(participants, signs.groups(), strict=True)}
    if pair and (found := _SCORE.fullmatch(text)) is not None:
        word = _plain(found[3])
        if word not in words:
            raise _not_read(scoring, f"{found[3]!r} is not a word that counts after a score.")
        score = _exact(found[1]), _exact(found[2])
        if winner is None:
            one, other = [_quantity(part) or 0 for part in score]
            winner = None if one == other else participants[one < other]
        if winner is None and _is_shoot_out(scoring, word):
            raise _not_read(scoring, "A shoot-out always has a winner: name the winner.")
        readings = [ReadResult(word=word, score=score), ReadResult(word=word, score=score[::-1])]
    elif word not in words:
        return None
    elif winner is None and (words[word] is None or len(participants) == 1):
        raise _not_read(scoring, f"{text!r} does not say who won.")
    says = words[word] or words.get(":".join(readings[0].score or ()))
    return {
        c: structs.replace(reading, outcome=_outcome(says, winner, c))
        for c, reading in zip(participants, readings, strict=True)
    }


def _is_shoot_out(scoring: Scoring, word: str) -> bool:
    return word == SHOOT_OUT and _words(scoring)[word] is None


def _outcome(says: Says, winner: CompetitorId | None, competitor_id: CompetitorId) -> ResultOutcome:
    if says is not None and says != "awarded":
        return says
    if winner is not None:
        return "win" if winner == competitor_id else "loss"
    return "draw" if says is None else "loss"


def _performed(
    scoring: Scoring, performances: Mapping[CompetitorId, str], winner: CompetitorId | None
) -> Steps[dict[CompetitorId, ReadResult]]:
    known = USUAL_STATUSES.union(*(map(_plain, award.statuses) for award in scoring.awards))
    values = {award.value for award in scoring.awards}
    are_compared = "place" in values or ("outcome" in values and scoring.order != "sent")
    statuses: dict[CompetitorId, str] = {}
    sizes: dict[CompetitorId, int] = {}
    for number, (c, text) in enumerate(performances.items(), start=1):
        if (plain := text if text.isascii() and text.isdigit() else _plain(text)) in known:
            statuses[c] = plain
        elif are_compared:
            sizes[c] = _size(scoring, text)
        if number % PARTICIPANTS_AT_ONCE == 0:
            yield
    best = min(sizes.values(), default=None)
    first = {c for c, size in sizes.items() if size == best}
    if winner is None and len(first) == 1:
        (winner,) = first
    others: ResultOutcome | None = "loss" if winner is not None or first else None
    outcomes: dict[CompetitorId, ResultOutcome] = dict.fromkeys(first, "draw") if winner is None else {winner: "win"}
    return {
        c: ReadResult(outcome=outcomes.get(c, others), status=statuses[c])
        if c in statuses
        else ReadResult(outcome=outcomes.get(c, others), performance=text, size=sizes.get(c))
        for c, text in performances.items()
    }


def _size(scoring: Scoring, performance: str) -> int:
    """Raises NotRead."""
    if scoring.order == "sent":
        sent = _PLACE.fullmatch(performance.removesuffix("."))
        if sent is not None:
            return int(sent[0])
    elif (size := _quantity(performance)) is not None:
        return -size if scoring.order == "high" else size
    raise _not_read(scoring, f"{performance!r} is not {_measure(scoring)}.")


def _contest(scoring: Scoring, text: str) -> dict[str, int]:
    """The contest values of a performance."""
    minutes, tries = [], 0
    for token in filter(NONE_SOLVED.__ne__, text.split()):
        if (problem := problem_of(token)) is None:
            raise _not_read(scoring, f"{token!r} is not a minute, perhaps with wrong tries before, such as 120+2.")
        if problem.minute is not None:
            minutes.append(problem.minute)
            tries += problem.wrong
    return {"solved": len(minutes), "minutes": sum(minutes), "tries": tries, "last": max(minutes, default=0)}


def _words(scoring: Scoring) -> Mapping[str, Says]:
    """Those that count, and the empty one."""
    return {"": None, **USUAL_WORDS, **{_plain(word): says for word, says in scoring.words.items()}}


def _plain(text: str) -> str:
    """A word or a status in the form in which they are compared: `(n.V.)` is `nv`, and `w/o` is `wo`."""
    return " ".join(text.casefold().translate(_LEFT_OUT).split())


def _exact(text: str) -> str:
    """A number of a score in the form that tables have: `2½` and `2,50` are `2.5`."""
    whole, _, rest = with_point(text).partition(".")
    rest = rest.rstrip("0")
    return f"{int(whole)}.{rest}" if rest else f"{int(whole)}"


def _quantity(text: str) -> int | None:
    """A number or a time in seconds, in billionths; None: it is neither."""
    negative = text[:1] in ("-", _MINUS)
    found = _QUANTITY.fullmatch(with_point(text[1:] if negative else text.removeprefix("+")))
    if found is None:
        return None
    whole = 0
    for part in found[1].split(":"):
        whole = 60 * whole + int(part)
    size = whole * 10**9 + int((found[2] or "").ljust(9, "0"))
    return -size if negative else size


# ── What is wrong, and what counts ───────────────────────────────────────────────────────────────────────


def scores_duels(scoring: Scoring) -> bool:
    """Whether it reads scores; otherwise only performances."""
    return any(award.value in _OF_DUELS for award in scoring.awards)


def _scores_performances(scoring: Scoring) -> bool:
    return any(
        award.value not in _OF_DUELS or (award.value == "outcome" and scoring.order != "sent")
        for award in scoring.awards
    )


def _measure(scoring: Scoring) -> str:
    return "a place, such as 1" if scoring.order == "sent" else "a number or time, such as 9.58 or 1:02.3"


def _not_read(scoring: Scoring, why: str) -> NotRead:
    return NotRead(why, _forms(scoring))


def _forms(scoring: Scoring) -> tuple[str, ...]:
    """Those that count."""
    values = {award.value for award in scoring.awards}
    forms = []
    if scores_duels(scoring):
        words = ", ".join(filter(None, _words(scoring)))
        forms += ["a score of two numbers, such as 2:1", f"one of these words after it, or with a winner: {words}"]
        forms += ["bye, half bye or zero bye"] if "outcome" in values else []
    if _scores_performances(scoring):
        each = "the minutes of solved problems, such as 43 120+2, or -" if values & _OF_CONTESTS else _measure(scoring)
        statuses = dict.fromkeys(status for award in scoring.awards for status in award.statuses if status != ABSENT)
        forms += [f"for each participant, with | between two: {each}" + "".join(f", {status}" for status in statuses)]
    return tuple(forms)


def scoring_faults(ranking: RankingState, scorings: tuple[Scoring, ...]) -> list[Fault]:
    """What is wrong with scorings that are declared for the ranking."""
    if len(scorings) > SCORINGS_MAX:
        return [Fault("scorings", f"must be at most {SCORINGS_MAX}")]
    faults: list[Fault] = []
    names = Counter(_plain(scoring.name) for scoring in scorings if scoring.name)
    for number, scoring in enumerate(scorings):
        field = f"scorings[{number}]"
        faults += _text_faults(f"{field}.name", filter(None, [scoring.name]))
        if names[_plain(scoring.name)] > 1:
            faults.append(Fault(f"{field}.name", "must not be the name of another scoring"))
        if not 1 <= len(scoring.awards) <= AWARDS_MAX:
            faults.append(Fault(f"{field}.awards", f"must be 1 to {AWARDS_MAX}"))
            continue
        if scoring.entries is not None and not 1 <= scoring.entries <= ENROLLED_MAX:
            faults.append(Fault(f"{field}.entries", f"must be from 1 to {ENROLLED_MAX}"))
        for name, size in (("groups", len(scoring.groups)), ("words", len(scoring.words))):
            if size > SCORING_TABLE_MAX:
                faults.append(Fault(f"{field}.{name}", f"must be at most {SCORING_TABLE_MAX}"))
        faults += _text_faults(f"{field}.words", scoring.words)
        into = Counter(award.unity_id for award in scoring.awards)
        for place, award in enumerate(scoring.awards):
            its = f"{field}.awards[{place}]"
            unity = ranking.unities.get(award.unity_id)
            if into[award.unity_id] > 1 and unity is not None and unity.counts is not Counts.SUM:
                faults.append(Fault(f"{its}.unity", "counts results: only one award can give them"))
            faults += [Fault(f"{its}.{fault.field}", fault.message) for fault in _award_faults(ranking, award)]
    return faults


def _award_faults(ranking: RankingState, award: Award) -> Iterator[Fault]:
    if award.unity_id not in ranking.unities:
        yield Fault("unity", f"unity {award.unity_id} is not in this ranking")
    table, amounts = award.table, [award.factor, *(n for n in award.statuses.values() if isinstance(n, int))]
    if isinstance(table, dict):
        amounts += table.values()
        if award.value not in _WITH_KEYS:
            yield Fault("table", "must be left out")
        for key in table if award.value in _WITH_KEYS else ():
            if (wrong := _key_fault(award.value, key)) is not None:
                yield Fault("table", f"{key[:_KEY_SHOWN_MAX]!r} {wrong}")
    elif table is not None:
        amounts += table
        if award.value != "place":
            yield Fault("table", "must be an object, not a list" if award.value in _WITH_KEYS else "must be left out")
    elif award.value == "score":
        yield Fault("table", "must be an object by score")
    yield from _text_faults("statuses", award.statuses)
    for name, size in (("table", len(table or ())), ("statuses", len(award.statuses))):
        if size > SCORING_TABLE_MAX:
            yield Fault(name, f"must have at most {SCORING_TABLE_MAX} amounts")
    if not all(-DELTA_MAX <= amount <= DELTA_MAX for amount in amounts):
        yield Fault("table" if table else "factor", f"must be within ±{DELTA_MAX}")


def _text_faults(field: str, texts: Iterable[str]) -> Iterator[Fault]:
    """What is wrong with words or statuses: each is compared without punctuation, but must not be empty."""
    return (Fault(field, fault) for text in texts if (fault := name_fault(_plain(text))) is not None)


def _key_fault(value: AwardValue, key: str) -> str | None:
    """What is wrong with the key of a table, which no result would find."""
    own = _plain(key)
    if value == "place":
        return None if _PLACE.fullmatch(key) else "must be a place, such as 1"
    if value != "performance":
        score = _SCORE.fullmatch(key) if value == "score" else None
        if score is not None:
            own = f"{_exact(score[1])}:{_exact(score[2])} {_plain(score[3])}".strip()
        elif own.split(" ")[0] not in _OUTCOMES:
            return (
                f"must be win, draw, loss or bye{', or a score such as 3:1' * (value == 'score')}, perhaps with a word"
            )
    return None if own == key else f"must be written {own!r}"
