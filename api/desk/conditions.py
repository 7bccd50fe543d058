"""Conditional changes: If-Match states a condition on the resource that a request addresses.

TAGS. A resource's own tag, `<sequence>.<moment>`, names the last event that changed its own fields, list or unities: by
its sequence, and by the time at which it was recorded, in µs since 1970, in hexadecimal. A log has one event for each
sequence. After a restore to an earlier moment, another event takes that sequence, but at another time. Points change no
tag, and neither do embedded resources: a competitor's new name, shown in a ranking, is no reason to refuse a new list.

But a copy that a client keeps must be identical byte for byte. So the ETag of an answer is the own tag, a dash and a
digest of its body. If-None-Match compares the whole ETag, If-Match only the part before the dash.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from msgspec import Struct

from engine.domain.errors import Fault, PreconditionFailed, Refusal, Unreadable
from engine.domain.terms import CompetitionId, CompetitorId, RankingId
from projections.answers.rankings import ListedRanking
from projections.board.board import Board, Competition, Competitor, Ranking

IF_MATCH_TAGS_MAX: Final = 100
"""Tags that one request may name."""
_ANY_TAG: Final = r'(?:W/)?"[!#-~]*"'
IF_MATCH_PATTERN: Final = rf"\*|{_ANY_TAG}(?:[ \t]*,[ \t]*{_ANY_TAG}){{0,{IF_MATCH_TAGS_MAX - 1}}}"
_IF_MATCH: Final = re.compile(IF_MATCH_PATTERN)
_TAG: Final = re.compile(r'(W/)?"([!#-~]*)"')
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def own_tag(resource: Competitor | Competition | Ranking | ListedRanking) -> str:
    """The resource's own tag, without quotes."""
    return f"{resource.revised}.{(resource.updated_at - _BEGINNING) // _MICROSECOND:x}"


class Condition(Struct, frozen=True):
    """The condition that each of the resources still has one of the own tags, which are none if only weak ones were
    sent. `kind` is ranking, competitor or competition."""

    kind: str
    resource_ids: tuple[int, ...]
    own_tags: frozenset[str]

    @property
    def exact(self) -> bool:
        """Whether any event between the judging and the append makes the block invalid. Every change of a ranking's or
        a competitor's tag is structural, so the log itself refuses blocks judged before it. A change of a competition
        is not structural."""
        return self.kind == "competition"

    def refuse_unless_met(self, board: Board) -> None:
        """Raises PreconditionFailed. A resource that does not exist passes: the judging refuses it for that."""
        for resource_id in self.resource_ids:
            resource = self._resource(board, resource_id)
            if resource is not None and not self.own_tags:
                raise PreconditionFailed(
                    'A weak ETag (W/"…") never matches; send the ETag as it was answered, without W/.'
                )
            if resource is not None and own_tag(resource) not in self.own_tags:
                raise PreconditionFailed(
                    f"The {self.kind} {resource_id} has changed since its ETag was sent; read it again, then send "
                    "your change with the new ETag."
                )

    def _resource(self, board: Board, resource_id: int) -> Competitor | Competition | Ranking | None:
        if self.kind == "ranking":
            return board.rankings.get(RankingId(resource_id))
        if self.kind == "competitor":
            return board.competitors.get(CompetitorId(resource_id))
        return board.competitions.get(CompetitionId(resource_id))


class Refused(Struct, frozen=True):
    """The condition that is never met: for a request that may only repeat an earlier one."""

    refusal: Refusal
    exact: ClassVar[bool] = False

    def refuse_unless_met(self, _board: Board) -> None:
        """Raises the refusal."""
        raise self.refusal.with_traceback(None)


def parse_if_match(values: Iterable[str], ids: Mapping[str, int]) -> Condition | None:
    """The condition that the values of If-Match state for a request whose path has these `ids`, by name and in its
    order. The first id names the resource: a unity is part of its ranking.

    None for `*`, which demands only that the resource exists. Weak tags match nothing, so they are left out. Raises
    Unreadable, also if there are no `ids`.
    """
    if not ids:
        raise _unreadable("has nothing to compare with, because the path names no resource; leave it out")
    text = ", ".join(value.strip(" \t") for value in values)
    if not _IF_MATCH.fullmatch(text):
        raise _unreadable(
            f"must be * or at most {IF_MATCH_TAGS_MAX} ETags, exactly as they were sent: in double quotes, with "
            "commas between them"
        )
    if text == "*":
        return None
    name, resource_id = next(iter(ids.items()))
    own_tags = frozenset(tag.partition("-")[0] for weak, tag in _TAG.findall(text) if not weak)
    return Condition(name.removesuffix("_id"), (resource_id,), own_tags)


def _unreadable(message: str) -> Unreadable:
    return Unreadable("The header If-Match cannot be read; correct it.", [Fault("If-Match", message)])
