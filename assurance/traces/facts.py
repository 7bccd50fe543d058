"""What a trace must not say, whatever the model does: what contradicts the log, or the lines before it.

Nothing is searched for. A trace that breaks one of these rules certainly shows what no processes did, so the model must
refuse it. Of any other trace, only the model knows.
"""

from collections import defaultdict
from collections.abc import Iterator

from assurance.traces.lines import WORKERS, Did, Line, Said, Trace

_Life = tuple[int, int, int]
"""A process, its live, and how often the process has started."""


def untruth(trace: Trace) -> str:
    """The first rule that is broken, and the line that breaks it. Empty: none is."""
    return next(_Reader(trace).untruths(), "")


class _Reader:
    """Reads a trace from its first line to its last."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._events = {(entry.request, entry.first) for log in trace.logs for entry in log.entries}
        self._asked: dict[tuple[_Life, int], Line] = {}
        self._answered: set[tuple[_Life, int]] = set()
        self._taken: dict[_Life, tuple[int, ...]] = {}
        self._recorded: set[tuple[_Life, int]] = set()
        self._refusals: dict[tuple[_Life, str], int] = {}
        """The number of the refusal of each key, as a process noted it."""
        self._reads: dict[_Life, int] = {}
        """What had been acknowledged when a process was asked for a list."""
        self._acknowledged = 0
        self._claims: dict[_Life, tuple[int, str]] = {}
        self._connection = -1
        self._sent = 0

    def untruths(self) -> Iterator[str]:
        trace, starts = self._trace, defaultdict[int, int](int)
        for line in trace.lines:
            starts[line.process] += line.did is Did.STARTED
            for rule in self._broken((line.process, line.live, starts[line.process]), line):
                yield f"{rule}: {line}"
        asked = {line.request for line in self._asked.values()}
        for log in trace.logs:
            yield from (f"the log holds what was asked for: {one}" for one in log.entries if one.request not in asked)
        if sum(line.did is Did.RESTORED for line in trace.lines) != (trace.lost is not None):
            yield "a line says that the log was replaced, if it was"

    def _broken(self, life: _Life, line: Line) -> Iterator[str]:
        match line.did:
            case Did.ASKED:
                if (life, line.case) in self._asked:
                    yield "a case has a number of its own"
                self._asked[life, line.case] = line
            case Did.JUDGED:
                yield from self._judged(life, line)
            case Did.LOCKED:
                yield from self._no_head(line)
                if life not in self._taken:
                    yield "what is judged under the lock was judged before"
            case Did.COMMITTED:
                yield from self._committed(life, line)
            case Did.NOTED:
                if not line.sequence:
                    self._refusals[life, line.request] = line.refusals
                if line.sequence and (line.request, line.sequence) not in self._events:
                    yield "the log has the event that used the key"
                if not line.sequence and line.refusals > max(
                    log.refusals.get(line.request, 0) for log in self._trace.logs
                ):
                    yield "the log has the refusal"
            case Did.ANSWERED:
                yield from self._answer(life, line)
            case Did.READ:
                self._reads[life] = self._acknowledged
            case Did.SHOWN:
                yield from self._shown(life, line)
            case Did.LISTENED | Did.SENT:
                yield from self._stream(line)
            case Did.CLAIMED | Did.SAVED:
                yield from self._folded(life, line)
            case Did.RESTORED:
                yield from self._no_head(line)
            case Did.FORKED if self._trace.lost is None:
                yield "a log is another one only if it was replaced"
            case _:
                pass

    def _judged(self, life: _Life, line: Line) -> Iterator[str]:
        yield from self._no_head(line)
        if any((life, case) not in self._asked for case in (*line.taken, *line.refused)):
            yield "what is judged was asked for"
        if line.taken and life in self._taken:
            yield "a process has one block under way"
        if line.taken:
            self._taken[life] = line.taken

    def _committed(self, life: _Life, line: Line) -> Iterator[str]:
        taken = self._taken.pop(life, None)
        if taken is None:
            yield "what is committed was judged"
        if not line.answers or taken is None:
            return
        if len(taken) != len(line.answers):
            yield "each case of a block has an answer"
        for case, answer in zip(taken, line.answers, strict=False):
            asked = self._asked.get((life, case))
            if answer is not None and asked is not None and (asked.request, abs(answer)) not in self._events:
                yield "the log has what was committed"
            self._recorded.add((life, answer or 0))
        if line.sequence:
            yield from self._no_head(line)

    def _answer(self, life: _Life, line: Line) -> Iterator[str]:
        asked = self._asked.get((life, line.case))
        if asked is None:
            yield "what is answered was asked for"
            return
        if (life, line.case) in self._answered:
            yield "a case is answered once"
        self._answered.add((life, line.case))
        is_held = any(entry.request == asked.request for entry in self._trace.log.entries)
        match line.said:
            case Said.OK | Said.REPEATED:
                self._acknowledged = max(self._acknowledged, line.sequence)
                if (asked.request, line.sequence) not in self._events:
                    yield "the log has what is acknowledged"
                if line.said is Said.OK and (life, line.sequence) not in self._recorded:
                    yield "what is acknowledged was committed"
            case Said.REFUSED:
                refusal = self._refusals.get((life, asked.request)) if asked.keyed else None
                if asked.keyed and refusal is None:
                    yield "a key is refused when that was noted"
                elif is_held and self._trace.lost is None and not self._is_sent_again(asked, refusal):
                    yield "what is refused is never recorded, unless it is sent again"
            case Said.UNAVAILABLE:
                if (
                    is_held
                    and [one.request for one in self._trace.lines if one.did is Did.ASKED].count(asked.request) == 1
                ):
                    yield "what is answered with 503 is not recorded by that"
            case Said.UNKNOWN:
                pass

    def _is_sent_again(self, asked: Line, refusal: int | None) -> bool:
        """Whether a process that knew of the refusal was asked for the same: only that may be recorded. The client may
        not have heard of the refusal, or have sent the key to two processes."""
        return refusal is not None and any(
            line.did is Did.ASKED and line.request == asked.request and line.refusals >= refusal
            for line in self._trace.lines
        )

    def _shown(self, life: _Life, line: Line) -> Iterator[str]:
        yield from self._no_head(line)
        least = self._reads.pop(life, None)
        if least is None:
            yield "what is shown was asked for"
        elif line.sequence < least and self._trace.lost is None:
            yield "a list shows what was acknowledged before it was asked for"

    def _stream(self, line: Line) -> Iterator[str]:
        """What is sent over a connection that is gone, nobody sees."""
        if line.did is Did.LISTENED and line.case > self._connection:
            self._connection, self._sent = line.case, line.sequence
        elif line.case != self._connection:
            return
        elif line.sequence <= self._sent:
            yield "a stream goes on from where it was"
        self._sent = line.sequence
        if line.sequence and not any(
            line.digest == log.digests[min(end for end in log.digests if end >= line.sequence)]
            for log in self._trace.logs
            if line.sequence <= max(log.digests)
        ):
            yield "the log has the block that is sent"

    def _folded(self, life: _Life, line: Line) -> Iterator[str]:
        """What workers do about events before the play does not matter."""
        if line.process not in WORKERS:
            yield "workers fold"
        elif line.sequence > self._trace.log.begin:
            yield from self._no_head(line)
            if line.did is Did.CLAIMED:
                self._claims[life] = line.sequence, line.digest
            elif self._claims.pop(life, None) != (line.sequence, line.digest):
                yield "a worker saves what it has read"

    def _no_head(self, line: Line) -> Iterator[str]:
        if all(log.digests.get(line.sequence) != line.digest for log in self._trace.logs):
            yield "the log has each head"
