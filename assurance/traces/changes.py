"""Changes of one line of a trace."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from assurance.traces.lines import SERVICES, Did, Line, Said, Trace

DROPPED: Final = "dropped"
TWICE: Final = "written twice"
ELSEWHERE: Final = "another process"
OTHER_LIVE: Final = "another live"
ELSE: Final = "asks for something else"
MORE: Final = "more refusals"
OTHER_CHECKPOINT: Final = "another checkpoint"
CLOSE_BY: Final = ("a sequence more", "a sequence less")


class Change(Struct, frozen=True):
    """What was done to the line at `place`, and the trace that this gives."""

    what: str
    place: int
    line: Line
    changed: Trace

    @property
    def told(self) -> str:
        return f"{self.what}, line {self.place + 1}: {self.line}"


def changes(trace: Trace) -> Iterator[Change]:
    """All that this module knows of."""
    for place, line in enumerate(trace.lines):
        before, after = trace.lines[:place], trace.lines[place + 1 :]
        for what, lines in (
            (DROPPED, before + after),
            (TWICE, (*before, line, line, *after)),
            *((what, (*before, other, *after)) for what, other in _others(trace, line)),
            *_moved(line, before, after),
        ):
            yield Change(what, place, line, replace(trace, lines=lines))


def _moved(line: Line, before: tuple[Line, ...], after: tuple[Line, ...]) -> Iterator[tuple[str, tuple[Line, ...]]]:
    """To before what it follows from: the line that has it asked, judged or committed."""
    for place in range(len(before) - 1, -1, -1):
        cause = before[place]
        if (cause.process, cause.live) == (line.process, line.live) and (
            (line.did is Did.JUDGED and cause.did is Did.ASKED and cause.case in line.taken)
            or (line.did is Did.COMMITTED and cause.did is Did.JUDGED and cause.taken)
            or (line.did is Did.ANSWERED and line.said is Said.OK and cause.did is Did.COMMITTED)
            or (line.did is Did.SHOWN and cause.did is Did.READ)
            or (line.did is Did.SENT and cause.did is Did.LISTENED and cause.case == line.case)
            or (line.did is Did.SAVED and cause.did is Did.CLAIMED)
        ):
            yield "before what it follows from", (*before[:place], line, *before[place:], *after)
            return


def _others(trace: Trace, line: Line) -> Iterator[tuple[str, Line]]:
    """The line with something else in it."""
    yield ELSEWHERE, replace(line, process=line.process ^ 1)
    if trace.lost is not None and line.process in SERVICES and line.did not in (Did.STARTED, Did.FORGOT):
        yield OTHER_LIVE, replace(line, live=line.live ^ 1)
    if line.did is Did.SHOWN and (older := _older_head(trace, line)):
        yield "a head before what was acknowledged", replace(line, sequence=older, digest=trace.log.digests[older])
    if line.sequence:
        yield CLOSE_BY[0], replace(line, sequence=line.sequence + 1)
        yield CLOSE_BY[1], replace(line, sequence=line.sequence - 1)
    if line.after:
        yield OTHER_CHECKPOINT, replace(line, after=line.after - 1)
    if line.digest:
        other = next(digest for digest in trace.log.digests.values() if digest != line.digest)
        yield "another digest", replace(line, digest=other)
    if line.answers:
        yield "one answer more", replace(line, answers=(*line.answers, line.answers[-1]))
        yield "another answer", replace(line, answers=(*line.answers[:-1], 1))
    if len(line.answers) > 1:
        yield "answers swapped", replace(line, answers=tuple(reversed(line.answers)))
    if line.taken:
        yield "one case less", replace(line, taken=line.taken[:-1])
        yield "refused, not taken", replace(line, taken=(), refused=line.taken)
    if line.refused:
        yield "taken, not refused", replace(line, taken=line.refused, refused=())
    match line.did:
        case Did.ANSWERED:
            for said in Said:
                if said is not line.said:
                    yield f"said {said}", replace(line, said=said)
        case Did.ASKED:
            yield ELSE, replace(line, request="another")
            yield MORE, replace(line, refusals=line.refusals + 1)
        case Did.JUDGED | Did.NOTED:
            yield MORE, replace(line, refusals=line.refusals + 1)


def _older_head(trace: Trace, line: Line) -> int:
    """The last end of a block that lacks what was acknowledged before the read; 0: there is none, or the log may have
    lost that."""
    before = trace.lines[: trace.lines.index(line)]
    if any(one.did is Did.RESTORED for one in before):
        return 0
    read = max(place for place, one in enumerate(before) if one.did is Did.READ)
    acknowledged = max((one.sequence for one in before[:read] if one.did is Did.ANSWERED), default=0)
    return max([end for end in trace.log.digests if trace.log.begin <= end < acknowledged], default=0)
