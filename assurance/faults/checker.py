"""The one offline checker: takes what clients were told and what the database holds, and finds where they disagree.

    I1 no loss             every ok is in the log                I6 versions    grow by one, mean one standing for ever
    I2 exactly once        no event twice                        I7 order       gapless, in the order of visibility
    I3 nothing invented    the log holds only what was sent      I8 chain       verifies; saved heads are prefixes
    I4 bounds              totals lie where they may             I9 reads       an answer shows what was ok before
    I5 one truth           live, tables and replay are equal     I10 answers    documented, no defect
    I11 isolation          nothing crosses tournaments           I12 liveness   service resumes in good time

It folds by itself: no code that answers is asked what the right answer is.

Where the database was put back to what it was (`History.replacements`), what was acknowledged in between may be lost;
what was acknowledged before, and what was afterwards, may not.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any, Final

import asyncpg
from msgspec import Struct, field

from api.desk.desk import SUBMIT_SECONDS_MAX
from assurance.faults.clients import KEY, NAMES, Arena
from assurance.faults.history import Asked, Attempt, History, Kind, Outcome, Shown, sums
from engine.domain.terms import OPERATOR, Sequence, TournamentId
from engine.log import codec, digest

STATUSES: Final = {200, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 503}
DEFECT: Final = "An internal error occurred"
RESUMED_SECONDS_MAX: Final = 30.0
ACCEPTED_SECONDS_MAX: Final = SUBMIT_SECONDS_MAX + 2
"""Until a write is answered with 200, by the clock of the process that answers, which it reads when it wakes from a
pause. Two seconds are for a busy machine, which renders and sends the answer late."""
FAULTS_TOLD_MAX: Final = 5
CHANGES_OF_STATE: Final = {
    Kind.CLOSE: "RankingClosed",
    Kind.REOPEN: "RankingReopened",
    Kind.VOID: "CompetitionVoided",
    Kind.UNVOID: "CompetitionUnvoided",
    Kind.ERASE: "CompetitorErased",
}
"""What has nothing to be marked by: its event is known by its key, or by what it is about."""
_REFUSED: Final = (409, 422)


class Verdicts(Struct):
    """By invariant: how many things were looked at, and what was wrong."""

    looked_at: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def look(self, invariant: str, right: bool, fault: str) -> None:
        self.looked_at[invariant] += 1
        if not right:
            self.wrong.setdefault(invariant, []).append(fault)

    def add(self, others: "Verdicts") -> None:
        self.looked_at.update(others.looked_at)
        for invariant, faults in others.wrong.items():
            self.wrong.setdefault(invariant, []).extend(faults)

    def told(self) -> str:
        return "; ".join(
            f"{invariant}: {len(faults)} wrong, such as {faults[:FAULTS_TOLD_MAX]}"
            for invariant, faults in sorted(self.wrong.items())
        )


class Stored(Struct, frozen=True):
    """An event as the log holds it."""

    sequence: int
    recorded_at: datetime
    actor: int
    kind: str
    key: str | None
    body: Any

    @property
    def lines(self) -> tuple[tuple[int, int, int], ...]:
        return tuple((competitor, unity, amount) for competitor, unity, amount in self.body.get("deltas", ()))


class Log(Struct, frozen=True):
    """All of one tournament's, as PostgreSQL holds it; and what its tables say."""

    arena: Arena
    events: list[Stored]
    blocks: list[Any]
    head: Any
    keys: dict[str, int]
    tables: Shown | None
    checkpoint: int


_BLOCKS: Final = """
    SELECT first_sequence, last_sequence, recorded_at, digest, text
    FROM block
    WHERE tournament_id = $1
    ORDER BY last_sequence
"""
_PERSONAL: Final = "SELECT sequence, text FROM personal WHERE tournament_id = $1"
_KEYS: Final = "SELECT idempotency_key, sequence FROM idempotency WHERE tournament_id = $1"
_HEAD: Final = "SELECT sequence, digest, recorded_at FROM head WHERE tournament_id = $1"
_CHECKPOINT: Final = "SELECT sequence FROM checkpoint WHERE tournament_id = $1"
_STANDING: Final = """
    SELECT unity_id, competitor_id, total, version
    FROM standing
    WHERE tournament_id = $1
    ORDER BY unity_id, competitor_id
"""


async def read_log(owner: asyncpg.Connection, arena: Arena) -> Log:
    """As of one moment."""
    async with owner.transaction(isolation="repeatable_read", readonly=True):
        t = arena.tournament_id
        rows = await owner.fetch(_STANDING, t)
        blocks = [dict(row) for row in await owner.fetch(_BLOCKS, t)]
        return Log(
            arena,
            list(_events(blocks, dict(map(tuple, await owner.fetch(_PERSONAL, t))))),
            blocks,
            dict(await owner.fetchrow(_HEAD, t)),
            dict(map(tuple, await owner.fetch(_KEYS, t))),
            _shown_in_tables(rows, arena),
            await owner.fetchval(_CHECKPOINT, t) or 0,
        )


def _events(blocks: list[Any], personal: dict[int, str]) -> Iterator[Stored]:
    """What the lines of the blocks say."""
    for block in blocks:
        for sequence, line in enumerate(block["text"].split("\n"), block["first_sequence"]):
            kind, actor, key, body = json.loads(codec.join_line(line, personal.get(sequence)))
            yield Stored(sequence, block["recorded_at"], actor, kind, key, body)


def _shown_in_tables(rows: list[Any], arena: Arena) -> Shown | None:
    if not rows:
        return None
    versions = {row["unity_id"]: row["version"] for row in rows}
    return Shown(
        tuple(versions[unity] for unity in arena.unities),
        tuple(
            tuple((row["competitor_id"], row["total"]) for row in rows if row["unity_id"] == unity)
            for unity in arena.unities
        ),
    )


class Head(Struct, frozen=True):
    """That was seen at some time, by place of the tournament."""

    tournament: int
    sequence: int
    digest: bytes


class Evidence(Struct):
    """What a run is judged against. `looks`: the standings that the services show when all is quiet, by tournament;
    `lines`: what their processes said; `resumed`: seconds from the end of each fault to the first ok."""

    history: History
    logs: list[Log]
    heads: list[Head] = field(default_factory=list)
    looks: list[tuple[int, Shown]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    resumed: list[float] = field(default_factory=list)
    resumed_seconds_max: float = RESUMED_SECONDS_MAX


def judge(evidence: Evidence) -> Verdicts:
    """Everything that can be judged from the evidence."""
    verdicts = Verdicts()
    folds = [_fold(log) for log in evidence.logs]
    wishes = _wishes(evidence.history)
    _recall_names(wishes, evidence.logs)
    _check_wishes(verdicts, wishes, evidence.logs)
    _check_invented(verdicts, wishes, evidence.logs)
    _check_ids(verdicts, evidence.logs, was_replaced=bool(evidence.history.replacements))
    for place, (log, fold) in enumerate(zip(evidence.logs, folds, strict=True)):
        here = [wish for wish in wishes if wish.asked.tournament == place]
        _check_bounds(verdicts, here, log, fold)
        _check_voids(verdicts, log)
        _check_order(verdicts, log)
        _check_chain(verdicts, log, [head for head in evidence.heads if head.tournament == place])
        _check_truth(verdicts, log, fold, [shown for t, shown in evidence.looks if t == place])
        attempts = [a for a in evidence.history.attempts if a.asked.tournament == place]
        whole = [a for a in attempts if a.began >= evidence.history.whole_since]
        _check_versions(verdicts, whole, fold)
        _check_reads(verdicts, whole, attempts, log, fold)
    _check_answers(verdicts, evidence)
    for seconds in evidence.resumed:
        verdicts.look("I12", seconds <= evidence.resumed_seconds_max, f"resumed after {seconds:.1f} s")
    return verdicts


# ── What was wished for, and became of it ───────────────────────────────────────────────────────────────


class _Wish(Struct):
    """All attempts at one thing. `certain`: whether its event must be there (True), must not (False), or may.

    A refusal of what has a key is final for all that was sent with it before.
    """

    asked: Asked
    history: History
    attempts: list[Attempt]

    @property
    def certain(self) -> bool | None:
        outcomes = {attempt.outcome for attempt in self.attempts}
        if Outcome.OK in outcomes:
            return True if self.sure else None
        if Outcome.UNKNOWN not in outcomes:
            return False
        last = self.attempts[-1]
        final = self.asked.key is not None and last.outcome is Outcome.NO and last.status in _REFUSED
        alone = all(attempt.ended <= last.began for attempt in self.attempts[:-1])
        return False if final and alone and self.history.sure(self.attempts[0]) else None

    @property
    def sure(self) -> list[Attempt]:
        """Those that ended with ok, and what they were told cannot have been lost since."""
        return [a for a in self.attempts if a.outcome is Outcome.OK and self.history.sure(a)]

    @property
    def mark(self) -> object:
        """As `_mark`."""
        if self.asked.kind in CHANGES_OF_STATE:
            return self.asked.kind, self.asked.key or self.asked.target
        return self.asked.kind, self.asked.mark

    @property
    def alike(self) -> bool:
        """Whether others may have asked for just the same."""
        return self.asked.kind in CHANGES_OF_STATE and self.asked.key is None


def _wishes(history: History) -> list[_Wish]:
    wishes: dict[int, _Wish] = {}
    for attempt in history.attempts:
        if attempt.asked.kind is not Kind.LIST:
            wishes.setdefault(attempt.asked.number, _Wish(attempt.asked, history, [])).attempts.append(attempt)
    return list(wishes.values())


_NAMED: Final = {"CompetitorRegistered": Kind.REGISTER, "RankingCreated": Kind.RANKING, "UnityAdded": Kind.UNITY}
_STATES: Final = {name: kind for kind, name in CHANGES_OF_STATE.items()}


def _mark(event: Stored) -> tuple[Kind, object] | None:
    """What was asked for, as far as the event tells; None: nothing that a client asks for."""
    match event.kind:
        case "CompetitorRegistered" | "RankingCreated" | "UnityAdded":
            kind = _NAMED[event.kind]
            name, _, mark = event.body["name"].partition("-")
            return (kind, int(mark)) if name == NAMES[kind] and mark.isdecimal() else None
        case "RankingClosed" | "RankingReopened" | "CompetitionVoided" | "CompetitionUnvoided":
            return _STATES[event.kind], event.key or event.body.get("ranking_id") or event.body["competition_id"]
        case "CompetitorErased" if event.actor != OPERATOR and (event.key or KEY).startswith(KEY):
            return Kind.ERASE, event.key or event.body["competitor_id"]
        case "PointsAdded":
            return Kind.ADD, abs(event.lines[0][2])
        case "CompetitionAdded":
            return Kind.COMPETITION, event.body["group_id"]
        case "RankingModified":
            return Kind.REVISE, int(event.body.get("description") or 0)
    return None


def _recall_names(wishes: list[_Wish], logs: list[Log]) -> None:
    """Gives registrations whose names were erased the name of the wish that they are by their key, or by the id that
    was answered: what has no name has no mark. Only who was erased may lack one."""
    registered = [wish for wish in wishes if wish.asked.kind is Kind.REGISTER]
    by_key = {wish.asked.key: wish for wish in registered if wish.asked.key is not None}
    by_id = {
        (wish.asked.tournament, attempt.made): wish
        for wish in registered
        for attempt in wish.attempts
        if wish.asked.key is None
    }
    for place, log in enumerate(logs):
        erased = {event.body["competitor_id"] for event in log.events if event.kind == "CompetitorErased"}
        for event in log.events:
            competitor_id = event.body.get("competitor_id")
            if event.kind == "CompetitorRegistered" and competitor_id in erased:
                wish = by_id.get((place, competitor_id)) if event.key is None else by_key.get(event.key)
                event.body["name"] = "" if wish is None else f"{NAMES[Kind.REGISTER]}-{wish.asked.mark}"


def _check_wishes(verdicts: Verdicts, wishes: list[_Wish], logs: list[Log]) -> None:
    found: list[dict[object, list[Stored]]] = []
    for log in logs:
        by_mark: dict[object, list[Stored]] = defaultdict(list)
        for event in log.events:
            by_mark[_mark(event)].append(event)
        found.append(by_mark)
    for wish in wishes:
        asked, certain, log = wish.asked, wish.certain, logs[wish.asked.tournament]
        events = found[asked.tournament].get(wish.mark, [])
        if wish.alike:
            for attempt in wish.sure:
                right = attempt.sequence in {_last_of_request(log, event) for event in events}
                verdicts.look("I1", right, f"is not event {attempt.sequence}: {asked}")
            continue
        if certain:
            verdicts.look("I1", len(events) >= 1, f"lost: {asked}")
        if certain is False:
            verdicts.look("I3", not events, f"refused, but in the log: {asked}")
        verdicts.look("I2", len(events) <= 1, f"{len(events)} times in the log: {asked}")
        for event in events:
            verdicts.look("I3", event.key == asked.key, f"the key is {event.key!r}: {asked}")
            if asked.kind is Kind.ADD:
                verdicts.look("I3", event.lines == asked.lines, f"other lines in event {event.sequence}: {asked}")
            if asked.target:
                about = [event.body.get(name) for name in ("competition_id", "ranking_id", "competitor_id")]
                verdicts.look("I3", asked.target in about, f"event {event.sequence} is about {about}: {asked}")
        sequences = {attempt.sequence for attempt in wish.sure}
        if events and sequences:
            last = _last_of_request(log, events[0])
            verdicts.look("I2", sequences == {last}, f"answered with {sequences}, ends with event {last}: {asked}")
        for attempt in wish.sure:
            if events and attempt.made:
                right = attempt.made in made_by(events[0])
                verdicts.look("I2", right, f"was made as {attempt.made}, is {made_by(events[0])}: {asked}")


def _last_of_request(log: Log, event: Stored) -> int:
    """The sequence of the last event of the request that led to `event`: a change of a competition takes points back or
    gives them back."""
    last = event
    for following in log.events[event.sequence :]:
        about = following.body.get("competition_id") == event.body.get("competition_id")
        if following.kind != "PointsReversed" or following.key != event.key or not about:
            break
        last = following
    return last.sequence


def _check_invented(verdicts: Verdicts, wishes: list[_Wish], logs: list[Log]) -> None:
    marks = {(w.asked.tournament, w.mark) for w in wishes}
    elsewhere: dict[object, set[int]] = defaultdict(set)
    for wish in wishes:
        elsewhere[wish.mark].add(wish.asked.tournament)
    keys: dict[str, set[int]] = defaultdict(set)
    for wish in wishes:
        if wish.asked.key is not None:
            keys[wish.asked.key].add(wish.asked.tournament)
    for place, log in enumerate(logs):
        for event in log.events:
            mark = _mark(event)
            if mark is not None:
                verdicts.look("I3", (place, mark) in marks, f"nobody asked for event {event.sequence}: {event.body}")
                if mark in elsewhere:
                    right = place in elsewhere[mark]
                    verdicts.look("I11", right, f"event {event.sequence} was asked for in {elsewhere[mark]}: {mark}")
            if event.key is not None and event.key in keys:
                verdicts.look("I11", place in keys[event.key], f"event {event.sequence} is of another tournament")
        used = Counter(e.key for e in log.events if e.key is not None and e.kind != "PointsReversed")  # of a request
        firsts = {event.key: event.sequence for event in reversed(log.events) if event.key is not None}
        for key, times in used.items():
            verdicts.look("I2", times == 1, f"key {key} was used {times} times")
            verdicts.look("I2", log.keys.get(key) == firsts[key], f"key {key} is remembered for {log.keys.get(key)}")
        for key in log.keys.keys() - used.keys():
            verdicts.look("I2", False, f"key {key} is remembered for what is not there")


def _check_bounds(verdicts: Verdicts, wishes: list[_Wish], log: Log, fold: "_Fold") -> None:
    sure = sums(wish.asked for wish in wishes if wish.certain)
    low, high = sure.copy(), sure.copy()
    for wish in wishes:
        if wish.certain is None:
            for competitor, unity, amount in wish.asked.lines:
                (high if amount > 0 else low)[unity, competitor] += amount
    added: Counter[tuple[int, int]] = Counter()
    for event in log.events:
        if event.kind == "PointsAdded":
            for competitor, unity, amount in event.lines:
                added[unity, competitor] += amount
    for unity, totals in zip(log.arena.unities, fold.last().totals, strict=True):
        for competitor, _ in totals:
            line = unity, competitor
            right = low[line] <= added[line] <= high[line]
            verdicts.look("I4", right, f"{added[line]} for {line}, not from {low[line]} to {high[line]}")


def _check_voids(verdicts: Verdicts, log: Log) -> None:
    """A competition that is voided counts for nothing, one that is unvoided for all that was added for it."""
    added: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    counted: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    voided: set[int] = set()
    changed: tuple[int, int] | None = None  # whose reversals are being read, and the sequence of the change
    for event in [*log.events, None]:
        competition: int = event.body.get("competition_id", 0) if event else 0
        if event and event.kind == "PointsReversed":
            right = changed is not None and changed[0] == competition
            verdicts.look("I4", right, f"event {event.sequence} reverses points of {competition}, which nobody voids")
        elif changed is not None:
            right = _same(counted[changed[0]], Counter() if changed[0] in voided else added[changed[0]])
            verdicts.look("I4", right, f"competition {changed[0]} counts for the wrong points after event {changed[1]}")
            changed = None
        if event is None or not competition:
            continue
        for who, unity, amount in event.lines:
            counted[competition][unity, who] += amount
        if event.kind == "PointsAdded":
            verdicts.look("I4", competition not in voided, f"event {event.sequence} is for voided {competition}")
            for who, unity, amount in event.lines:
                added[competition][unity, who] += amount
        elif event.kind in ("CompetitionVoided", "CompetitionUnvoided"):
            changed = competition, event.sequence
            right = (competition in voided) == (event.kind == "CompetitionUnvoided")
            verdicts.look("I4", right, f"event {event.sequence} changes nothing")
            (voided.add if event.kind == "CompetitionVoided" else voided.discard)(competition)


def _same(one: Counter[tuple[int, int]], other: Counter[tuple[int, int]]) -> bool:
    return all(one[line] == other[line] for line in one.keys() | other.keys())


_MAKES: Final = ("competitor_id", "competition_id", "ranking_id", "main_unity_id", "unity_id")
_MADE: Final = {
    "CompetitorRegistered": ("competitor_id",),
    "CompetitionAdded": ("competition_id",),
    "RankingCreated": ("ranking_id", "main_unity_id"),
    "UnityAdded": ("unity_id",),
}


def made_by(event: Stored) -> tuple[int, ...]:
    """The ids of what the event brings into the world."""
    return tuple(event.body[name] for name in _MADE.get(event.kind, ()))


def _check_ids(verdicts: Verdicts, logs: list[Log], *, was_replaced: bool = False) -> None:
    """Every id is used once in its tournament, and also in the world unless the database `was_replaced`; what an event
    is about is there."""
    owners: dict[int, str] = {log.arena.tournament_id: log.arena.slug for log in logs}
    for log in logs:
        known: dict[str, set[int]] = {name: set() for name in _MAKES}
        for event in log.events:
            for name in _MADE.get(event.kind, ()):
                new = event.body[name]
                there = owners.get(new)
                right = there is None or (was_replaced and there != log.arena.slug)
                verdicts.look("I3", right, f"event {event.sequence} of {log.arena.slug} overwrites {new} of {there}")
                owners[new] = log.arena.slug
                known["unity_id" if name == "main_unity_id" else name].add(new)
            for name in ("competition_id", "ranking_id", "competitor_id"):
                if name in event.body:
                    right = event.body[name] in known[name]
                    verdicts.look(
                        "I5", right, f"event {event.sequence} is about {name} {event.body[name]}, which is not"
                    )
            for competitor, unity, _ in event.lines:
                right = competitor in known["competitor_id"] and unity in known["unity_id"]
                verdicts.look("I5", right, f"event {event.sequence} adds to what is not: {competitor} in {unity}")


def lost(evidence: Evidence) -> int:
    """How many changes were acknowledged and are not in the log, because the database was put back to before them."""
    wishes = _wishes(evidence.history)
    _recall_names(wishes, evidence.logs)
    found = [{_mark(event) for event in log.events} for log in evidence.logs]
    return sum(
        wish.certain is None
        and any(a.outcome is Outcome.OK for a in wish.attempts)
        and wish.mark not in found[wish.asked.tournament]
        for wish in wishes
        if not wish.alike
    )


# ── The log ─────────────────────────────────────────────────────────────────────────────────────────────


class _Fold(Struct):
    """Of the points of one ranking. `states`: per unity, the totals by version, from 1; `versions`: per unity, the
    version after each event, by sequence; `competitions`: how many there are after each."""

    states: list[list[dict[int, int]]]
    versions: list[list[int]]
    competitions: list[int]

    def last(self) -> Shown:
        return Shown(
            tuple(versions[-1] for versions in self.versions),
            tuple(tuple(sorted(states[-1].items())) for states in self.states),
        )


def _fold(log: Log) -> _Fold:
    states = [[dict.fromkeys(log.arena.competitors, 0)] for _ in log.arena.unities]
    versions: list[list[int]] = [[0] for _ in log.arena.unities]
    born = [False for _ in log.arena.unities]
    for event in log.events:
        body = event.body
        for n, unity in enumerate(log.arena.unities):
            if (event.kind == "RankingCreated" and body["main_unity_id"] == unity) or (
                event.kind == "UnityAdded" and body["unity_id"] == unity
            ):
                born[n] = True
            lines = [(who, amount) for who, of, amount in event.lines if of == unity]
            if lines:
                totals = dict(states[n][-1])
                for who, amount in lines:
                    totals[who] += amount
                states[n].append(totals)
            versions[n].append(len(states[n]) if born[n] else 0)
    competitions = accumulate((event.kind == "CompetitionAdded" for event in log.events), initial=0)
    return _Fold(states, versions, list(competitions))


def _check_order(verdicts: Verdicts, log: Log) -> None:
    sequences = [event.sequence for event in log.events]
    verdicts.look("I7", sequences == list(range(1, len(sequences) + 1)), f"gaps in tournament {log.arena.slug}")
    verdicts.look("I7", log.head["sequence"] == len(sequences), f"the head is {log.head}, events are {len(sequences)}")
    for one, next_ in zip(log.events, log.events[1:], strict=False):
        verdicts.look("I7", one.recorded_at <= next_.recorded_at, f"time runs backwards at {next_.sequence}")


def _check_chain(verdicts: Verdicts, log: Log, heads: Iterable[Head]) -> None:
    chain = digest.genesis(TournamentId(log.arena.tournament_id))
    at = {0: chain}
    last = 0
    for block in log.blocks:
        lines = block["text"].split("\n")
        if block["first_sequence"] != last + 1 or block["last_sequence"] != last + len(lines):
            verdicts.look("I8", False, f"no block follows {last}")
            return
        last = block["last_sequence"]
        text = digest.block_text(Sequence(block["first_sequence"]), block["recorded_at"], block["text"])
        chain = at[last] = digest.chain(chain, text)
        verdicts.look("I8", chain == block["digest"], f"the block that ends in {last} is not what its digest says")
    verdicts.look(
        "I8", (last, chain) == (log.head["sequence"], log.head["digest"]), f"the chain does not end in {log.head}"
    )
    for head in heads:
        verdicts.look("I8", at.get(head.sequence) == head.digest, f"{head} was seen and is no prefix")


def _check_truth(verdicts: Verdicts, log: Log, fold: _Fold, looks: list[Shown]) -> None:
    replayed = fold.last()
    for shown in looks:
        verdicts.look("I5", shown == replayed, f"live {shown}, replayed {replayed}")
    verdicts.look("I5", log.checkpoint == len(log.events), f"tables at {log.checkpoint} of {len(log.events)}")
    verdicts.look("I5", log.tables == replayed, f"tables {log.tables}, replayed {replayed}")


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────


def _check_versions(verdicts: Verdicts, attempts: list[Attempt], fold: _Fold) -> None:
    seen: dict[int, list[tuple[float, float, tuple[int, ...]]]] = defaultdict(list)
    for attempt in attempts:
        if attempt.shown is None:
            continue
        for n, version in enumerate(attempt.shown.versions):
            states = fold.states[n]
            known = 1 <= version <= len(states)
            verdicts.look("I6", known, f"version {version} of {len(states)} was shown")
            if known:
                right = dict(attempt.shown.totals[n]) == states[version - 1]
                verdicts.look("I6", right, f"version {version} was shown as {attempt.shown.totals[n]}")
        seen[attempt.asked.client].append((attempt.began, attempt.ended, attempt.shown.versions))
    for of_client in seen.values():
        of_client.sort()
        for (_, ended, before), (began, _, after) in pairwise(of_client):
            falls = began >= ended and any(a < b for a, b in zip(after, before, strict=True))
            verdicts.look("I6", not falls, f"versions fell from {before} to {after}")


def _check_reads(verdicts: Verdicts, attempts: list[Attempt], of_ever: list[Attempt], log: Log, fold: _Fold) -> None:
    """Real time: what was ok before an attempt began must be in what it was answered, and nothing from its future."""
    done = sorted((a.ended, a.sequence) for a in attempts if a.outcome is Outcome.OK and a.sequence)
    ends = [ended for ended, _ in done]
    acknowledged = list(accumulate((sequence for _, sequence in done), max))
    began = sorted(a.began for a in of_ever if a.asked.kind is Kind.COMPETITION)
    size = len(log.events)
    for attempt in attempts:
        if attempt.outcome is not Outcome.OK:
            continue
        before = bisect_left(ends, attempt.began)
        least = min(max(acknowledged[before - 1] if before else 0, attempt.sequence), size)
        if attempt.shown is not None:
            for n, version in enumerate(attempt.shown.versions):
                right = version >= fold.versions[n][least]
                verdicts.look("I9", right, f"{attempt.asked} was shown version {version} after event {least}")
        if attempt.count >= 0:
            right = fold.competitions[least] <= attempt.count <= bisect_right(began, attempt.ended)
            verdicts.look("I9", right, f"{attempt.asked} was shown {attempt.count} competitions after event {least}")


def _check_answers(verdicts: Verdicts, evidence: Evidence) -> None:
    for attempt in evidence.history.attempts:
        verdicts.look("I10", attempt.status in STATUSES | {0}, f"status {attempt.status}: {attempt.asked}")
        if attempt.why:
            right = not attempt.why.startswith(DEFECT) and "without Retry-After" not in attempt.why
            verdicts.look("I10", right, f"{attempt.why}: {attempt.asked}")
    for said in evidence.lines:
        verdicts.look("I10", "Traceback" not in said and '"request_failed"' not in said, said[:2_000])
        if (found := _ACCEPTED.search(said)) is not None:
            verdicts.look("I10", float(found[1]) <= 1000 * ACCEPTED_SECONDS_MAX, f"accepted late: {said[:2_000]}")


_ACCEPTED: Final = re.compile(r'"method":"(?:PUT|POST)".*"status":200,"milliseconds":([0-9.]+)')
