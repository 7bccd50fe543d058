"""The operations of a service, each as a method with its name in the OpenAPI document.

Each method takes the slug of the tournament first, and raises CallFailed (`errors.py` has the tree). A change is sent
with one idempotency key in all its attempts: a new one, or the `idempotency_key` that you give, so that a call that you
repeat later is also done once. With `if_match`, the `etag` of what you have read, the change is refused with
PreconditionFailed if somebody else has changed it since. A change keeps fields that are not given, and empties fields
that are given as None, or empty. Times must be aware.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import date, datetime
from itertools import groupby
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar
from urllib.parse import quote

import msgspec
from aiohttp import ClientSession
from msgspec import UNSET, Raw, Struct, UnsetType
from yarl import URL

from tallybook_client.keys import new_key
from tallybook_client.sending import Patience, Reply, Request, Sender, open_session
from tallybook_client.shapes import (
    AtVersion,
    Classification,
    ComparedRanking,
    Competition,
    Competitor,
    CompetitorForms,
    Criterion,
    DeclaredScoring,
    Delta,
    Done,
    Erasure,
    Expiring,
    Explanation,
    ExportedEvent,
    HistoryLine,
    Kind,
    Leaders,
    Made,
    MadeRanking,
    MadeResult,
    MadeSeveral,
    Moment,
    NewCompetition,
    NewCompetitor,
    Presentation,
    Publication,
    Ranking,
    RankingStandings,
    RecordedResult,
    Slice,
    Standing,
    Standings,
    Ticket,
    TournamentState,
    WebhookTest,
    Window,
    utc_text,
)
from tallybook_client.stream import StreamEvent, follow

_T = TypeVar("_T")
_D = TypeVar("_D", bound=Done)
_R = TypeVar("_R", Competitor, Competition, Ranking)
Sort = Literal["ASC", "DESC"]
_Fields = dict[str, object]
PAGE_ITEMS: Final = 200
LINES_MAX: Final = 1_000
"""The most that one answer shows; iterators request as many at a time."""


class Client:
    """Use within `async with`, in one event loop. `address` is that of the service, such as `https://example.org`."""

    def __init__(self, address: str, token: str, *, patience: Patience = Patience()) -> None:  # noqa: B008 - frozen
        self._address = URL(address)
        if self._address.scheme not in ("http", "https") or not self._address.host:
            raise ValueError(f"{address!r} must be the address of a service, as https://example.org")
        self._token = token
        self._patience = patience
        self._opened: tuple[ClientSession, Sender] | None = None

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    async def __aenter__(self) -> Self:
        session = open_session()
        self._opened = session, Sender(session, self._address, self._token, self._patience)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            session, _ = self._opened
            self._opened = None
            await session.close()

    # ── Competitors ─────────────────────────────────────────────────────────────────────────────────────

    async def list_competitors(
        self, slug: str, *, name: str | None = None, tag: str | None = None, parent: int | None = None, after: int = 0
    ) -> AsyncGenerator[Competitor, None]:
        """The competitors registered after the competitor `after`, in their order. Filters: the beginning of the name,
        a tag, the parent directly above."""
        query = {"name": name, "tag": tag, "parent": parent}
        async for item in self._items(_path(slug, "competitors"), query, "competitors", "competitor", after):
            yield msgspec.json.decode(item, type=Competitor)

    async def show_competitor(self, slug: str, competitor_id: int) -> Competitor:
        return await self._resource(_path(slug, "competitors", competitor_id), "competitor", Competitor)

    async def register_competitor(
        self, slug: str, competitor: NewCompetitor, *, idempotency_key: str | None = None
    ) -> Made:
        return await self._change("POST", _path(slug, "competitors"), competitor, Made, idempotency_key)

    async def register_competitors(
        self, slug: str, competitors: Iterable[NewCompetitor], *, idempotency_key: str | None = None
    ) -> MadeSeveral:
        """At most 1,000 of them: all are registered, or none."""
        return await self._change(
            "POST", _path(slug, "competitors"), {"items": [*competitors]}, MadeSeveral, idempotency_key
        )

    async def change_competitor(
        self,
        slug: str,
        competitor_id: int,
        *,
        name: str | UnsetType = UNSET,
        tags: Items[str] | None | UnsetType = UNSET,
        color: str | None | UnsetType = UNSET,
        parent: int | None | UnsetType = UNSET,
        key: str | None | UnsetType = UNSET,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        fields = {"name": name, "tags": tags, "color": color, "parent": parent, "key": key}
        path = _path(slug, "competitors", competitor_id)
        return await self._change("PUT", path, fields, Done, idempotency_key, if_match)

    async def show_competitor_standings(self, slug: str, competitor_id: int) -> AsyncGenerator[RankingStandings, None]:
        """The lines of a competitor in every ranking they are in."""
        path = _path(slug, "competitors", competitor_id, "standings")
        async for item in self._items(path, {}, "rankings", "ranking", 0, per_page=None):
            yield msgspec.json.decode(item, type=RankingStandings)

    # ── Competitions ────────────────────────────────────────────────────────────────────────────────────

    async def list_competitions(
        self,
        slug: str,
        *,
        group_id: int | None = None,
        round: int | None = None,  # noqa: A002 - its name in the interface
        competitor: int | None = None,
        has_result: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: int = 0,
    ) -> AsyncGenerator[Competition, None]:
        """The competitions added after the competition `after`, in their order. Filters: the group, the round, a
        competitor, with or without a result, the time of the start."""
        query: _Fields = {"group_id": group_id, "round": round, "competitor": competitor}
        query |= {"has_result": has_result, "from": since, "to": until}
        async for item in self._items(_path(slug, "competitions"), query, "competitions", "competition", after):
            yield msgspec.json.decode(item, type=Competition)

    async def show_competition(self, slug: str, competition_id: int) -> Competition:
        return await self._resource(_path(slug, "competitions", competition_id), "competition", Competition)

    async def add_competition(
        self, slug: str, competition: NewCompetition, *, idempotency_key: str | None = None
    ) -> Made:
        return await self._change("POST", _path(slug, "competitions"), competition, Made, idempotency_key)

    async def add_competitions(
        self, slug: str, competitions: Iterable[NewCompetition], *, idempotency_key: str | None = None
    ) -> MadeSeveral:
        """At most 1,000 of them: all are added, or none."""
        return await self._change(
            "POST", _path(slug, "competitions"), {"items": [*competitions]}, MadeSeveral, idempotency_key
        )

    async def change_competition(
        self,
        slug: str,
        competition_id: int,
        *,
        started_at: datetime | None | UnsetType = UNSET,
        location: str | None | UnsetType = UNSET,
        participants: Iterable[int] | None | UnsetType = UNSET,
        result: str | Mapping[int, str] | None | UnsetType = UNSET,
        winner: int | None | UnsetType = UNSET,
        group_id: int | UnsetType = UNSET,
        scale: str | None | UnsetType = UNSET,
        round: int | None | UnsetType = UNSET,  # noqa: A002
        round_name: str | None | UnsetType = UNSET,
        key: str | None | UnsetType = UNSET,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """An empty `started_at`: it started when it was added. With other participants, send a result and a winner that
        fit them."""
        fields = {
            "started_at": utc_text(started_at) if isinstance(started_at, datetime) else started_at,
            "location": location,
            "participants": [*participants] if participants else participants,
            "result": result,
            "winner": winner,
            "group_id": group_id,
            "scale": scale,
            "round": round,
            "round_name": round_name,
            "key": key,
        }
        path = _path(slug, "competitions", competition_id)
        return await self._change("PUT", path, fields, Done, idempotency_key, if_match)

    async def record_result(
        self, slug: str, competition: NewCompetition, *, ranking: int | None = None, idempotency_key: str | None = None
    ) -> MadeResult:
        """Adds a competition with its result, or gives it to the competition with its key. `ranking`: the answer has
        its standings."""
        path = _path(slug, "results") + ("" if ranking is None else f"?ranking={ranking}")
        return await self._change("PUT", path, competition, MadeResult, idempotency_key)

    async def record_results(
        self, slug: str, competitions: Iterable[NewCompetition], *, idempotency_key: str | None = None
    ) -> MadeSeveral:
        """As `record_result`, for at most 1,000 of them: all are recorded, or none."""
        return await self._change(
            "PUT", _path(slug, "results"), {"items": [*competitions]}, MadeSeveral, idempotency_key
        )

    async def list_results(self, slug: str, competition_id: int) -> tuple[RecordedResult, ...]:
        """The results that the competition had: first that with which it was added."""
        path = _path(slug, "competitions", competition_id, "results")
        found = await self._payload(path, {}, "competition", dict[str, tuple[RecordedResult, ...]])
        return found["results"]

    async def preview_change_competition(
        self,
        slug: str,
        competition_id: int,
        *,
        participants: Iterable[int] | None | UnsetType = UNSET,
        result: str | Mapping[int, str] | None | UnsetType = UNSET,
        winner: int | None | UnsetType = UNSET,
        group_id: int | UnsetType = UNSET,
        scale: str | None | UnsetType = UNSET,
    ) -> tuple[ComparedRanking, ...]:
        """Who would move by a supposed or corrected result, where results give points."""
        fields = {
            "participants": [*participants] if participants else participants,
            "result": msgspec.json.encode(result).decode() if isinstance(result, Mapping) else result,
            "winner": winner,
            "group_id": group_id,
            "scale": scale,
        }
        query = {name: "" if value is None else value for name, value in fields.items() if value is not UNSET}
        path = _path(slug, "competitions", competition_id, "preview")
        return await self._payload(path, query, "rankings", tuple[ComparedRanking, ...])

    async def erase_competitor(
        self, slug: str, competitor_id: int, *, idempotency_key: str | None = None, if_match: str | None = None
    ) -> Done:
        """Erases all names, tags, colours and keys, at every moment; points stay. Needs scope `admin`."""
        path = _path(slug, "competitors", competitor_id, "erase")
        return await self._change("PUT", path, {}, Done, idempotency_key, if_match)

    async def preview_erase_competitor(self, slug: str, competitor_id: int) -> Erasure:
        return await self._payload(_path(slug, "competitors", competitor_id, "erase"), {}, "erasure", Erasure)

    async def export_competitor(self, slug: str, competitor_id: int) -> AsyncGenerator[ExportedEvent, None]:
        """Every event that touches a competitor, cut down to it. Needs scope `admin`."""
        path = _path(slug, "competitors", competitor_id, "export")
        async for item in self._items(path, {"limit": LINES_MAX}, "export", "events", 0, per_page=None):
            yield msgspec.json.decode(item, type=ExportedEvent)

    async def void_competition(
        self, slug: str, competition_id: int, *, idempotency_key: str | None = None, if_match: str | None = None
    ) -> Done:
        """Takes back all points that the competition gave. Needs scope `admin`, as the next three methods do."""
        path = _path(slug, "competitions", competition_id, "void")
        return await self._change("PUT", path, {}, Done, idempotency_key, if_match)

    async def unvoid_competition(
        self, slug: str, competition_id: int, *, idempotency_key: str | None = None, if_match: str | None = None
    ) -> Done:
        path = _path(slug, "competitions", competition_id, "unvoid")
        return await self._change("PUT", path, {}, Done, idempotency_key, if_match)

    async def strike_competitors(
        self,
        slug: str,
        competition_id: int,
        competitors: Iterable[int],
        *,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """Takes back all points that the competition gave these competitors."""
        path = _path(slug, "competitions", competition_id, "strike")
        return await self._change("PUT", path, {"competitors": [*competitors]}, Done, idempotency_key, if_match)

    async def unstrike_competitors(
        self,
        slug: str,
        competition_id: int,
        competitors: Iterable[int],
        *,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        path = _path(slug, "competitions", competition_id, "unstrike")
        return await self._change("PUT", path, {"competitors": [*competitors]}, Done, idempotency_key, if_match)

    async def preview_strike_competitors(
        self, slug: str, competition_id: int, competitors: Iterable[int]
    ) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "competitions", competition_id, "strike")
        query = {"competitors": ",".join(map(str, competitors))}
        return await self._payload(path, query, "rankings", tuple[ComparedRanking, ...])

    async def preview_unstrike_competitors(
        self, slug: str, competition_id: int, competitors: Iterable[int]
    ) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "competitions", competition_id, "unstrike")
        query = {"competitors": ",".join(map(str, competitors))}
        return await self._payload(path, query, "rankings", tuple[ComparedRanking, ...])

    async def preview_void_competition(self, slug: str, competition_id: int) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "competitions", competition_id, "void")
        return await self._payload(path, {}, "rankings", tuple[ComparedRanking, ...])

    async def preview_unvoid_competition(self, slug: str, competition_id: int) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "competitions", competition_id, "unvoid")
        return await self._payload(path, {}, "rankings", tuple[ComparedRanking, ...])

    # ── Rankings ────────────────────────────────────────────────────────────────────────────────────────

    async def list_rankings(self, slug: str) -> tuple[Ranking, ...]:
        """All of them, without their competitors."""
        rankings = await self._payload(_path(slug, "rankings"), _BRIEF, "rankings", dict[str, tuple[Ranking, ...]])
        return rankings["ranking"]

    async def list_kinds(self, slug: str) -> dict[str, Kind]:
        """The well-known kinds of rankings."""
        return await self._payload(_path(slug, "rankings", "kinds"), {}, "kinds", dict[str, Kind])

    async def show_ranking(self, slug: str, ranking_id: int, *, with_competitors: bool = False) -> Ranking:
        query = {} if with_competitors else _BRIEF
        return await self._resource(_path(slug, "rankings", ranking_id), "ranking", Ranking, query)

    async def create_ranking(
        self,
        slug: str,
        name: str,
        main_unity_name: str,
        participants: Iterable[int],
        *,
        description: str | None = None,
        main_unity_sort: Sort | None = None,
        main_unity_decimals: int | None = None,
        main_unity_time: Literal["s", "ms"] | None = None,
        main_unity_counts: Literal["sum", "best", "last"] | None = None,
        main_unity_lasts: str | None = None,
        main_unity_expires_on: Literal["minute", "day", "week"] | None = None,
        main_unity_absent: Literal["none"] | None = None,
        idempotency_key: str | None = None,
    ) -> MadeRanking:
        """Points stay whole numbers of a smallest unit, which pages show with `decimals` or as a `time`."""
        fields: _Fields = {"name": name, "main_unity_name": main_unity_name, "participants": [*participants]}
        fields |= _given(description=description, main_unity_sort=main_unity_sort)
        fields |= _given(main_unity_decimals=main_unity_decimals, main_unity_time=main_unity_time)
        fields |= _given(main_unity_counts=main_unity_counts, main_unity_absent=main_unity_absent)
        fields |= _given(main_unity_lasts=main_unity_lasts, main_unity_expires_on=main_unity_expires_on)
        return await self._change("POST", _path(slug, "rankings"), fields, MadeRanking, idempotency_key)

    async def modify_ranking(
        self,
        slug: str,
        ranking_id: int,
        main_unity_name: str,
        participants: Iterable[int],
        *,
        name: str | UnsetType = UNSET,
        description: str | None | UnsetType = UNSET,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """Replaces the whole list, of 10,000 competitors at most."""
        fields: _Fields = {"main_unity_name": main_unity_name, "participants": [*participants]}
        fields |= {"name": name, "description": description}
        path = _path(slug, "rankings", ranking_id)
        return await self._change("PUT", path, fields, Done, idempotency_key, if_match)

    async def change_ranking_information(
        self,
        slug: str,
        ranking_id: int,
        *,
        name: str | UnsetType = UNSET,
        description: str | None | UnsetType = UNSET,
        zones: str | None | UnsetType = UNSET,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        path = _path(slug, "rankings", ranking_id, "information")
        fields = {"name": name, "description": description, "zones": zones}
        return await self._change("PUT", path, fields, Done, idempotency_key, if_match)

    async def change_visibility(
        self, slug: str, ranking_id: int, *, hidden: bool, idempotency_key: str | None = None
    ) -> Done:
        """Hides the ranking from the public at every moment, or shows it again. Needs scope `admin`."""
        path = _path(slug, "rankings", ranking_id, "visibility")
        return await self._change("PUT", path, {"hidden": hidden}, Done, idempotency_key)

    async def order_rankings(self, slug: str, order: Iterable[int], *, idempotency_key: str | None = None) -> Done:
        """These rankings come first; the others follow in their current order."""
        return await self._change("PUT", _path(slug, "rankings"), {"order": [*order]}, Done, idempotency_key)

    async def change_participants(
        self,
        slug: str,
        ranking_id: int,
        *,
        add: Iterable[int] = (),
        remove: Iterable[int] = (),
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """New competitors come at the end of the list; returning ones have their earlier totals."""
        path = _path(slug, "rankings", ranking_id, "participants")
        fields = _given(add=[*add] or None, remove=[*remove] or None)
        return await self._change("PUT", path, fields, Done, idempotency_key, if_match)

    async def preview_change_participants(
        self, slug: str, ranking_id: int, *, add: Iterable[int] = (), remove: Iterable[int] = ()
    ) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "rankings", ranking_id, "participants")
        query = _given(add=[*add] or None, remove=[*remove] or None)
        return await self._payload(path, query, "rankings", tuple[ComparedRanking, ...])

    async def add_unity(
        self,
        slug: str,
        ranking_id: int,
        name: str,
        *,
        sort: Sort = "DESC",
        decimals: int | None = None,
        time: Literal["s", "ms"] | None = None,
        counts: Literal["sum", "best", "last"] | None = None,
        lasts: str | None = None,
        expires_on: Literal["minute", "day", "week"] | None = None,
        absent: Literal["none"] | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Made:
        path = _path(slug, "rankings", ranking_id, "unities")
        fields: _Fields = {"name": name, "sort": sort, **_given(decimals=decimals, time=time, counts=counts)}
        fields |= _given(lasts=lasts, expires_on=expires_on, absent=absent)
        return await self._change("POST", path, fields, Made, idempotency_key, if_match)

    async def change_unity(
        self,
        slug: str,
        ranking_id: int,
        unity_id: int,
        *,
        name: str | UnsetType = UNSET,
        sort: Sort | UnsetType = UNSET,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        path = _path(slug, "rankings", ranking_id, "unities", unity_id)
        return await self._change("PUT", path, {"name": name, "sort": sort}, Done, idempotency_key, if_match)

    async def close_ranking(
        self, slug: str, ranking_id: int, *, idempotency_key: str | None = None, if_match: str | None = None
    ) -> Done:
        """Closes the ranking: nothing in it can change, but it can be hidden and ordered. Needs scope `admin`."""
        path = _path(slug, "rankings", ranking_id, "close")
        return await self._change("PUT", path, {}, Done, idempotency_key, if_match)

    async def reopen_ranking(
        self, slug: str, ranking_id: int, *, idempotency_key: str | None = None, if_match: str | None = None
    ) -> Done:
        """Needs scope `admin`."""
        path = _path(slug, "rankings", ranking_id, "reopen")
        return await self._change("PUT", path, {}, Done, idempotency_key, if_match)

    async def declare_classification(
        self,
        slug: str,
        ranking_id: int,
        criteria: Iterable[Criterion],
        *,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """No criteria: takes the declaration back."""
        path = _path(slug, "rankings", ranking_id, "classification")
        return await self._change("PUT", path, {"criteria": [*criteria]}, Done, idempotency_key, if_match)

    async def preview_reopen_ranking(self, slug: str, ranking_id: int) -> tuple[ComparedRanking, ...]:
        """Who would move by the results recorded since it was closed. Needs scope `admin`."""
        path = _path(slug, "rankings", ranking_id, "reopen")
        return await self._payload(path, {}, "rankings", tuple[ComparedRanking, ...])

    async def show_scoring(self, slug: str, ranking_id: int) -> DeclaredScoring:
        """What results give in the ranking, and which results give nothing."""
        path = _path(slug, "rankings", ranking_id, "scoring")
        return await self._payload(path, {}, "scoring", DeclaredScoring)

    async def declare_scoring(
        self,
        slug: str,
        ranking_id: int,
        scorings: Iterable[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """Scores all results of the ranking by these scorings, which are as in a Kind, but with ids of unities. None:
        results give nothing."""
        path = _path(slug, "rankings", ranking_id, "scoring")
        return await self._change("PUT", path, {"scorings": [*scorings]}, Done, idempotency_key, if_match)

    async def preview_declare_scoring(
        self, slug: str, ranking_id: int, scorings: Iterable[Mapping[str, Any]]
    ) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "rankings", ranking_id, "scoring", "preview")
        query = {"scorings": msgspec.json.encode([*scorings]).decode()}
        return await self._payload(path, query, "rankings", tuple[ComparedRanking, ...])

    # ── Points ──────────────────────────────────────────────────────────────────────────────────────────

    async def add_points(
        self,
        slug: str,
        ranking_id: int,
        deltas: Iterable[Delta],
        *,
        competition_id: int | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Done:
        """At most 10,000 of them: all are added, or none."""
        fields = {"participants_delta": _lines(deltas), **_given(competition_id=competition_id, reason=reason)}
        path = _path(slug, "rankings", ranking_id, "add")
        return await self._change("PUT", path, fields, Done, idempotency_key, if_match)

    async def add_points_to_rankings(
        self,
        slug: str,
        deltas: Mapping[int, Iterable[Delta]],
        *,
        competition_id: int | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Done:
        """The deltas of each ranking: all are added, or none."""
        rankings = [{"ranking_id": one, "participants_delta": _lines(of_one)} for one, of_one in deltas.items()]
        fields = {"rankings_delta": rankings, **_given(competition_id=competition_id, reason=reason)}
        return await self._change("PUT", _path(slug, "points"), fields, Done, idempotency_key)

    async def reverse_points(
        self, slug: str, ranking_id: int, sequence: int, *, idempotency_key: str | None = None
    ) -> Done:
        """Undoes the points that the event `sequence` added; or, if it undid points, redoes these. Points that another
        token added, or undid, need scope `admin`."""
        path = _path(slug, "rankings", ranking_id, "reverse")
        return await self._change("PUT", path, {"sequence": sequence}, Done, idempotency_key)

    async def preview_reverse_points(self, slug: str, ranking_id: int, sequence: int) -> tuple[ComparedRanking, ...]:
        path = _path(slug, "rankings", ranking_id, "reverse")
        return await self._payload(path, {"sequence": str(sequence)}, "rankings", tuple[ComparedRanking, ...])

    # ── Standings ───────────────────────────────────────────────────────────────────────────────────────

    async def show_standings(
        self,
        slug: str,
        ranking_id: int,
        window: Window | None = None,
        *,
        unity_id: int | None = None,
        at: Moment | None = None,
        on: date | None = None,
        since: int | datetime | None = None,
        since_on: date | None = None,
        tag: str | None = None,
    ) -> Standings:
        """All lines of every unity, or of this one. A window has lines of this unity, or of the main one. `at`: at a
        past moment. `on`: only points that had taken place by this day or time. `since`: compared with that moment;
        `since_on`: with the points that had taken place by then. `tag`: the sub-table of competitors with this tag."""
        query = {
            "unity": unity_id,
            "tag": tag,
            **_at(at),
            "on": on,
            **_since(since),
            "since_on": since_on,
            **_window(window),
        }
        return await self._payload(_path(slug, "rankings", ranking_id, "standings"), query, "ranking", Standings)

    async def iterate_standings(
        self,
        slug: str,
        ranking_id: int,
        *,
        unity_id: int | None = None,
        at: Moment | None = None,
        on: date | None = None,
        since: int | datetime | None = None,
        since_on: date | None = None,
        tag: str | None = None,
    ) -> AsyncGenerator[Standing, None]:
        """The lines of one unity from the first to the last, requested window by window. All show the moment of the
        first window."""
        offset, lines = 0, 1
        while offset < lines:
            window = Slice(offset, LINES_MAX)
            part = await self.show_standings(
                slug, ranking_id, window, unity_id=unity_id, at=at, on=on, since=since, since_on=since_on, tag=tag
            )
            (unity,) = part.unities
            for standing in unity.competitors_ranking:
                yield standing
            at = part.sequence
            offset, lines = offset + LINES_MAX, unity.lines or 0

    async def show_classification(
        self,
        slug: str,
        ranking_id: int,
        window: Window | None = None,
        *,
        at: Moment | None = None,
        on: date | None = None,
        since: int | datetime | None = None,
        since_on: date | None = None,
        tag: str | None = None,
    ) -> Classification:
        """As show_standings; without a window, the first 1,000 lines."""
        query = {"tag": tag, **_at(at), "on": on, **_since(since), "since_on": since_on, **_window(window)}
        path = _path(slug, "rankings", ranking_id, "classification")
        return await self._payload(path, query, "classification", Classification)

    async def show_form(
        self,
        slug: str,
        ranking_id: int,
        window: Window,
        *,
        last: int | None = None,
        unity_id: int | None = None,
        at: Moment | None = None,
        on: date | None = None,
    ) -> CompetitorForms:
        """The points of the competitors of a window in each of their `last` competitions."""
        query = {"last": last, "unity": unity_id, **_at(at), "on": on, **_window(window)}
        return await self._payload(_path(slug, "rankings", ranking_id, "form"), query, "form", CompetitorForms)

    async def show_expiring(
        self,
        slug: str,
        ranking_id: int,
        until: date,
        window: Window,
        *,
        unity_id: int | None = None,
    ) -> Expiring:
        """The totals that the competitors of a window will have left at the time `until`, when points have expired."""
        query = {"until": until, "unity": unity_id, **_window(window)}
        return await self._payload(_path(slug, "rankings", ranking_id, "expiring"), query, "expiring", Expiring)

    async def show_leaders(
        self,
        slug: str,
        ranking_id: int,
        *,
        clock: Literal["log", "world"] = "log",
        unity_id: int | None = None,
        at: int | datetime | None = None,
        until: date | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> Leaders:
        """The leaders and their reigns, by what had been recorded (`log`) or had taken place (`world`)."""
        query = {"clock": clock, "unity": unity_id, **_at(at), "until": until, "offset": offset, "limit": limit}
        return await self._payload(_path(slug, "rankings", ranking_id, "leaders"), query, "leaders", Leaders)

    # ── The past ────────────────────────────────────────────────────────────────────────────────────────

    async def list_history(
        self,
        slug: str,
        ranking_id: int,
        *,
        unity: int | None = None,
        competitor: int | None = None,
        competition: int | None = None,
        actor: int | None = None,
        first: int | datetime | None = None,
        last: int | datetime | None = None,
    ) -> AsyncGenerator[HistoryLine, None]:
        """Every delta from `first` to `last`, each a sequence or a time, with the position before and after."""
        query: _Fields = {"unity": unity, "competitor": competitor, "competition": competition}
        query |= {"actor": actor, f"from_{_kind(first)}": first, f"to_{_kind(last)}": last, "limit": LINES_MAX}
        path = _path(slug, "rankings", ranking_id, "history")
        while True:
            body = await self._read(path, query)
            page = msgspec.json.decode(body, type=_HistoryPage)
            for line in page.history:
                yield line
            if page.next is None:
                return
            query["after"] = page.next

    async def explain(
        self,
        slug: str,
        ranking_id: int,
        competitor: int,
        *,
        unity: int | None = None,
        start: int | None = None,
        end: int | None = None,
        on: date | None = None,
    ) -> Explanation:
        """Why the competitor has this place: the steps from after the event `start` to after the event `end`. `on`: the
        last steps by this day or time, in order of time."""
        query = {"competitor": competitor, "unity": unity, "from": start, "to": end, "on": on}
        return await self._payload(_path(slug, "rankings", ranking_id, "explain"), query, "explanation", Explanation)

    def follow(
        self,
        slug: str,
        *,
        after: int | str | None = None,
        ranking: int | None = None,
        kinds: Iterable[str] = (),
        speed: float | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events after `after` (an id, a sequence, or "head": only new ones): first those in the log, then each as
        it is committed, each once, across lost connections. `ranking`, `kinds`: only such events. `speed` plays the
        past. Leave the loop within `contextlib.aclosing` to end the connection at once."""
        query = _texts({"ranking": ranking, "kinds": [*kinds] or None, "speed": speed})
        return follow(self._sender, f"/tournament/{quote(slug, safe='')}/events", query, after)

    async def create_ticket(self, slug: str) -> Ticket:
        """A ticket, which opens one stream in place of the token, for a browser."""
        reply = await self._sender.send(Request(method="POST", path=_path(slug, "tickets"), body=b"{}", headers=_JSON))
        return _decoded(reply.body, "ticket", Ticket)

    async def test_webhook(self, slug: str, webhook_id: int) -> WebhookTest:
        """Sends a webhook one test message now. Returns the receiver's reply."""
        path = _path(slug, f"webhook/{webhook_id}/test")
        reply = await self._sender.send(Request(method="POST", path=path, body=b"{}", headers=_JSON))
        return _decoded(reply.body, "test", WebhookTest)

    # ── The public ──────────────────────────────────────────────────────────────────────────────────────

    async def rename_tournament(self, slug: str, *, name: str, idempotency_key: str | None = None) -> Done:
        """Its slug stays. Needs scope `admin`."""
        return await self._change("PUT", _path(slug, "tournament"), {"name": name}, Done, idempotency_key)

    async def archive_tournament(self, slug: str, *, idempotency_key: str | None = None) -> Done:
        """It can only be read from then on. Needs scope `admin`."""
        return await self._change("PUT", _path(slug, "archive"), {}, Done, idempotency_key)

    async def restore_tournament(self, slug: str, *, idempotency_key: str | None = None) -> Done:
        """An archived one can change again. Needs scope `admin`."""
        return await self._change("PUT", _path(slug, "restore"), {}, Done, idempotency_key)

    async def delete_tournament(self, slug: str, *, idempotency_key: str | None = None) -> Done:
        """It is not found from then on; only the operator can restore it. Needs scope `admin` for all tournaments."""
        return await self._change("PUT", _path(slug, "delete"), {"slug": slug}, Done, idempotency_key)

    async def show_tournament(self, slug: str) -> TournamentState:
        return await self._payload(_path(slug, "tournament"), {}, "tournament", TournamentState)

    async def show_presentation(self, slug: str) -> Presentation:
        return await self._payload(_path(slug, "presentation"), {}, "presentation", Presentation)

    async def change_presentation(
        self,
        slug: str,
        *,
        zone: str | None = None,
        language: str | None = None,
        accent: str | None = None,
        logo: str | None = None,
        listed: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Done:
        """None keeps a field; an empty text removes its value. `logo`: a PNG in base64. Needs scope `admin`."""
        fields = _given(zone=zone, language=language, accent=accent, logo=logo, listed=listed)
        return await self._change("PUT", _path(slug, "presentation"), fields, Done, idempotency_key)

    async def show_publication(self, slug: str) -> Publication:
        return await self._payload(_path(slug, "publication"), {}, "publication", Publication)

    async def change_publication(
        self,
        slug: str,
        *,
        published: bool | None = None,
        freeze: int | Literal["now"] | None = None,
        reveal: int | Literal["next", "all"] | None = None,
        idempotency_key: str | None = None,
    ) -> Done:
        """Give exactly one of the three. Needs scope `admin`."""
        fields = _given(published=published, freeze=freeze, reveal=reveal)
        return await self._change("PUT", _path(slug, "publication"), fields, Done, idempotency_key)

    # ── Shared parts ────────────────────────────────────────────────────────────────────────────────────

    @property
    def _sender(self) -> Sender:
        if self._opened is None:
            raise RuntimeError("use the client within `async with`")
        return self._opened[1]

    async def _read(self, path: str, query: Mapping[str, object]) -> bytes:
        return (await self._sender.send(Request(method="GET", path=path, query=_texts(query)))).body

    async def _payload(self, path: str, query: Mapping[str, object], key: str, kind: type[_T]) -> _T:
        return _decoded(await self._read(path, query), key, kind)

    async def _resource(self, path: str, key: str, kind: type[_R], query: Mapping[str, str] = {}) -> _R:
        reply = await self._sender.send(Request(method="GET", path=path, query=query))
        return msgspec.structs.replace(_decoded(reply.body, key, kind), etag=reply.headers["ETag"])

    async def _items(
        self,
        path: str,
        query: Mapping[str, object],
        key: str,
        items: str,
        after: int,
        *,
        per_page: int | None = PAGE_ITEMS,
    ) -> AsyncGenerator[Raw, None]:
        """The items of a list after the item `after`, page by page."""
        following: int | None = after
        while following is not None:
            page = await self._payload(path, {**query, "per_page": per_page, "after": following}, key, dict[str, Raw])
            for item in msgspec.json.decode(page[items], type=list[Raw]):
                yield item
            following = msgspec.json.decode(page["next"])

    async def _change(
        self,
        method: str,
        path: str,
        fields: Struct | Mapping[str, object],
        kind: type[_D],
        key: str | None,
        if_match: str | None = None,
    ) -> _D:
        if not isinstance(fields, Struct):
            fields = {name: value for name, value in fields.items() if value is not UNSET}
        headers = _JSON | {"Prefer": "return=minimal"}
        if if_match is not None:
            headers["If-Match"] = if_match
        body = msgspec.json.encode(fields)
        request = Request(method=method, path=path, body=body, headers=headers, key=key or new_key())
        return _made(await self._sender.send(request), kind)


class _HistoryPage(Struct, frozen=True):
    history: tuple[HistoryLine, ...]
    next: str | None


_JSON: Final = {"Content-Type": "application/json"}
_BRIEF: Final = {"omit": "competitors"}


def _path(slug: str, *parts: str | int) -> str:
    return f"/tournament/{quote(slug, safe='')}/{'/'.join(map(str, parts))}.json"


def _decoded(body: bytes, key: str, kind: type[_T]) -> _T:
    """The payload of an answer."""
    return msgspec.json.decode(msgspec.json.decode(body, type=dict[str, Raw])[key], type=kind)


def _made(reply: Reply, kind: type[_D]) -> _D:
    """The result of a change: the ids from the answer's body, and the event from its headers."""
    said: dict[str, Any] = msgspec.json.decode(reply.body)
    said["sequence"] = int(reply.headers["Tallybook-Sequence"])
    said["is_replay"] = reply.headers.get("Idempotency-Replayed") == "true"
    return msgspec.convert(said, kind)


def _given(**fields: object) -> _Fields:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _texts(query: Mapping[str, object]) -> dict[str, str]:
    """The parameters as texts, without those that are None."""
    return {name: _text(value) for name, value in query.items() if value is not None}


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return utc_text(value)
        case date():
            return value.isoformat()
        case AtVersion(unity_id, version):
            return f"{unity_id}:{version}"
        case list() | tuple():
            return ",".join(map(str, value))
    return str(value)


def _at(moment: Moment | None) -> dict[str, object]:
    return {"version" if isinstance(moment, AtVersion) else f"at_{_kind(moment)}": moment}


def _since(moment: int | datetime | None) -> dict[str, object]:
    return {"since_time" if isinstance(moment, datetime) else "since": moment}


def _kind(moment: object) -> str:
    return "time" if isinstance(moment, datetime) else "sequence"


def _window(window: Window | None) -> dict[str, object]:
    return {} if window is None else msgspec.structs.asdict(window)


def _lines(deltas: Iterable[Delta]) -> list[dict[str, object]]:
    """The deltas in the order given; consecutive ones of the same competitor are grouped."""
    return [
        {"competitor_id": competitor, "unities": [{"unity_id": one.unity_id, "delta": one.delta} for one in of_one]}
        for competitor, of_one in groupby(deltas, lambda delta: delta.competitor_id)
    ]
