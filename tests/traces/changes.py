"""Changes of one line of a trace, and which of them nobody can find.

A changed trace that processes which obey the protocol could have left as well is accepted, rightly:

- A process that died later may have died before it wrote a line that is missing, or have been asked for something else.
- A process may start twice. Nobody sees a start after it had answered everything, or after which it is only read from.
- A judging that took nothing may be left out, or come twice: the next one refuses the same. So may the judging under
  the lock.
- What was noted of a key that was used says nothing that its answer does not say; and when a refusal is noted, the log
  may have more of them already. A process that was asked more than once with a key may note it more than once.
- A process that dies may have been asked for a list that it never showed, or not.
- What is sent to a listener in two pieces may be sent in one, which ends within a block or with it; and nobody sees
  what is sent over a connection that is gone, or from where one that sends nothing begins.
- What workers did about events before the play does not matter. When PostgreSQL has been killed, they may go on from
  before what they had saved.
- A worker that starts again, or fails, does not say what it had read; nor does one that died before it could say that
  it had saved it. So the next one may go on from before that.
- What was asked for matters only if it was recorded, or refused with its key, and not if the answer is 503; and no line
  says when a process learns of a refusal, which may be before anybody notes it.
- Lines about lost connections: they say what may have happened meanwhile, and need not have.
- A process that does nothing more may have found that the log was replaced, or not.
"""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.traces.lines import SERVICES, WORKERS, Did, Line, Said, Trace

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


def is_legal(trace: Trace, change: Change) -> bool:
    """Whether the change is one of those above."""
    line, what = change.line, change.what
    dies = _dies_later(trace, change)
    match line.did:
        case Did.STARTED if line.process in WORKERS:
            return True
        case Did.STARTED:
            before, after = _lives_around(trace, line)
            return what == TWICE or _is_idle(before) or all(one.did is not Did.ASKED for one in after)
        case Did.ASKED:
            recorded = {name for log in trace.logs for name in (*(one.request for one in log.entries), *log.refusals)}
            asked = {one.request for one in trace.lines[: change.place] if one.did is Did.ASKED}
            noted = [one.refusals for one in trace.lines if one.did is Did.NOTED and one.request in asked]
            return (
                (what in (DROPPED, ELSE) and dies)
                or (what == ELSE and (line.request not in recorded or _is_unavailable(trace, change)))
                or (what == MORE and line.refusals < max(noted, default=0))
            )
        case Did.JUDGED:
            return (what == DROPPED and dies) or (what in (DROPPED, TWICE) and not line.taken)
        case Did.LOCKED:
            return what in (DROPPED, TWICE)
        case Did.NOTED:
            is_told = line.sequence > 0 or what == MORE
            return is_told or (what == DROPPED and dies) or (what == TWICE and _is_asked_again(trace, change))
        case Did.READ:
            return what in (DROPPED, ELSEWHERE, OTHER_LIVE) and _is_never_shown(trace, change)
        case Did.SHOWN:
            return what == DROPPED and dies and not _lives_on(trace, change)
        case Did.OPENED | Did.LOST | Did.UNNOTED | Did.FORGOT | Did.CRASHED:
            return True
        case Did.FORKED:
            return what in (DROPPED, ELSEWHERE) and not _loads_again(trace, change)
        case Did.LISTENED:
            is_unseen = not _sends(trace, line) or not line.sequence or _is_gone(trace, change)
            return is_unseen or (what in CLOSE_BY and _is_within_block(trace, change))
        case Did.SENT:
            return what == DROPPED or _is_gone(trace, change) or (what in CLOSE_BY and _is_within_block(trace, change))
        case Did.CLAIMED:
            is_before = what == OTHER_CHECKPOINT and (
                line.after <= trace.log.begin or _may_be_unsaved(trace, change) or _may_lack(trace, change)
            )
            return what == TWICE or is_before or not _is_saved(trace, change.place) or line.sequence <= trace.log.begin
        case Did.SAVED:
            is_before = what == CLOSE_BY[1] and line.sequence <= trace.log.begin + 1
            return what == DROPPED or is_before or line.sequence <= trace.log.begin
        case Did.COMMITTED | Did.ANSWERED:
            return what == DROPPED and dies
        case Did.RESTORED:
            return False


def _lives_around(trace: Trace, start: Line) -> tuple[list[Line], list[Line]]:
    """What the process did in the life before this start, and in the one that it begins."""
    lives: list[list[Line]] = [[]]
    for line in trace.lines:
        if line.process == start.process:
            if line is start:
                begun = len(lives)
            if line.did is Did.STARTED:
                lives.append([])
            else:
                lives[-1].append(line)
    return lives[begun - 1], lives[begun]


def _is_idle(life: Items[Line]) -> bool:
    """Whether a process has answered all that it was asked for."""
    asked = {one.case for one in life if one.did is Did.ASKED}
    return asked <= {one.case for one in life if one.did is Did.ANSWERED}


def _dies_later(trace: Trace, change: Change) -> bool:
    later = trace.lines[change.place + 1 :]
    return any(line.did is Did.STARTED and line.process == change.line.process for line in later)


def _is_unavailable(trace: Trace, change: Change) -> bool:
    """Whether the answer to what was asked for is 503."""
    its = change.line.process, change.line.case
    later = [one for one in trace.lines[change.place + 1 :] if one.did is Did.ANSWERED]
    return next((one.said for one in later if (one.process, one.case) == its), None) is Said.UNAVAILABLE


def _is_never_shown(trace: Trace, change: Change) -> bool:
    """Whether the process died before it showed what this line asks it for."""
    later = [line for line in trace.lines[change.place + 1 :] if line.process == change.line.process]
    return next((line.did for line in later if line.did in (Did.SHOWN, Did.STARTED)), None) is Did.STARTED


def _lives_on(trace: Trace, change: Change) -> bool:
    """Whether the process does something in this life after the reader has asked for the next list."""
    later = trace.lines[change.place + 1 :]
    again = next((place for place, line in enumerate(later) if line.did is Did.READ), len(later))
    of_process = [line for line in later[again:] if line.process == change.line.process]
    after = [line for line in of_process if line.did is Did.STARTED or line.live == change.line.live]
    return bool(after) and after[0].did is not Did.STARTED


def _loads_again(trace: Trace, change: Change) -> bool:
    """Whether the process does something with the next live that it has in this life."""
    for line in trace.lines[change.place + 1 :]:
        if line.process == change.line.process and (line.did is Did.STARTED or line.live > change.line.live):
            return line.did is not Did.STARTED
    return False


def _sends(trace: Trace, listener: Line) -> bool:
    return any(line.did is Did.SENT and line.case == listener.case for line in trace.lines)


def _is_gone(trace: Trace, change: Change) -> bool:
    """Whether another connection had taken the place of the one over which this was sent."""
    before = [line.case for line in trace.lines[: change.place + 1] if line.did is Did.LISTENED]
    return max(before) > change.line.case


def _is_within_block(trace: Trace, change: Change) -> bool:
    """Whether the block of the event that the changed line names has this digest as well."""
    line = change.changed.lines[change.place]
    ends = [min((end for end in log.digests if end >= line.sequence), default=0) for log in trace.logs]
    return line.digest in [log.digests.get(end) for log, end in zip(trace.logs, ends, strict=True)]


def _is_asked_again(trace: Trace, change: Change) -> bool:
    """Whether the process was asked with the key more often in this life than it has noted it."""
    before, after = trace.lines[: change.place], trace.lines[change.place :]
    told = list[Did]()
    for lines in (reversed(before), after):
        for line in lines:
            if line.process == change.line.process and line.did is Did.STARTED:
                break
            if (line.process, line.request) == (change.line.process, change.line.request):
                told.append(line.did)
    return told.count(Did.ASKED) > told.count(Did.NOTED)


def _may_be_unsaved(trace: Trace, change: Change) -> bool:
    """Whether nobody says that what a worker had read before was saved, and the other checkpoint is where it began."""
    places = [place for place, line in enumerate(trace.lines[: change.place]) if line.did is Did.CLAIMED]
    if not places or _is_saved(trace, places[-1]):
        return False
    begin, end = trace.lines[places[-1]].after, change.line.after - 1
    return begin <= end and not any(begin < entry.last <= end for entry in trace.log.entries)


def _may_lack(trace: Trace, change: Change) -> bool:
    """Whether PostgreSQL was killed since workers saved what they claimed last."""
    before = enumerate(trace.lines[: change.place])
    ends = [line.did for place, line in before if line.did is Did.CRASHED or _is_saved_claim(trace, place)]
    return ends[-1:] == [Did.CRASHED]


def _is_saved_claim(trace: Trace, place: int) -> bool:
    return trace.lines[place].did is Did.CLAIMED and _is_saved(trace, place)


def _is_saved(trace: Trace, place: int) -> bool:
    later = [line.did for line in trace.lines[place + 1 :] if line.process == trace.lines[place].process]
    return next((did for did in later if did in (Did.CLAIMED, Did.SAVED, Did.STARTED)), None) is Did.SAVED


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
