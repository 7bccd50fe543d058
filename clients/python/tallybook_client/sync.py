"""The synchronous client: the same methods, which wait for their answers; generators become iterators."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from tallybook_client.client import Client
from tallybook_client.sending import Patience

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _waiting(
    method: Callable[Concatenate[Client, _P], Coroutine[Any, Any, _T]],
) -> "Callable[Concatenate[SyncClient, _P], _T]":
    @wraps(method)
    def call(self: "SyncClient", /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._runner.run(method(self._client, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[Client, _P], AsyncGenerator[_T, None]],
) -> "Callable[Concatenate[SyncClient, _P], Iterator[_T]]":
    @wraps(method)
    def call(self: "SyncClient", /, *args: _P.args, **kwargs: _P.kwargs) -> Iterator[_T]:
        items = method(self._client, *args, **kwargs)

        async def following() -> tuple[()] | tuple[_T]:
            async for item in items:
                return (item,)
            return ()

        try:
            while found := self._runner.run(following()):
                yield found[0]
        finally:
            if self._client.is_open:  # otherwise, the loop has closed it
                self._runner.run(items.aclose())

    return call


class SyncClient:
    """Use within `with`, in one thread, where no event loop is running. Otherwise as Client."""

    def __init__(self, address: str, token: str, *, patience: Patience = Patience()) -> None:  # noqa: B008 - frozen
        self._client = Client(address, token, patience=patience)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._client.__aexit__(kind, error, trace))
        self._runner.close()

    list_competitors = _iterating(Client.list_competitors)
    show_competitor = _waiting(Client.show_competitor)
    register_competitor = _waiting(Client.register_competitor)
    register_competitors = _waiting(Client.register_competitors)
    change_competitor = _waiting(Client.change_competitor)
    erase_competitor = _waiting(Client.erase_competitor)
    preview_erase_competitor = _waiting(Client.preview_erase_competitor)
    export_competitor = _iterating(Client.export_competitor)
    show_competitor_standings = _iterating(Client.show_competitor_standings)
    list_competitions = _iterating(Client.list_competitions)
    show_competition = _waiting(Client.show_competition)
    add_competition = _waiting(Client.add_competition)
    add_competitions = _waiting(Client.add_competitions)
    change_competition = _waiting(Client.change_competition)
    record_result = _waiting(Client.record_result)
    record_results = _waiting(Client.record_results)
    list_results = _waiting(Client.list_results)
    preview_change_competition = _waiting(Client.preview_change_competition)
    void_competition = _waiting(Client.void_competition)
    unvoid_competition = _waiting(Client.unvoid_competition)
    strike_competitors = _waiting(Client.strike_competitors)
    unstrike_competitors = _waiting(Client.unstrike_competitors)
    preview_strike_competitors = _waiting(Client.preview_strike_competitors)
    preview_unstrike_competitors = _waiting(Client.preview_unstrike_competitors)
    preview_void_competition = _waiting(Client.preview_void_competition)
    preview_unvoid_competition = _waiting(Client.preview_unvoid_competition)
    list_rankings = _waiting(Client.list_rankings)
    list_kinds = _waiting(Client.list_kinds)
    show_ranking = _waiting(Client.show_ranking)
    create_ranking = _waiting(Client.create_ranking)
    modify_ranking = _waiting(Client.modify_ranking)
    change_ranking_information = _waiting(Client.change_ranking_information)
    change_visibility = _waiting(Client.change_visibility)
    order_rankings = _waiting(Client.order_rankings)
    change_participants = _waiting(Client.change_participants)
    preview_change_participants = _waiting(Client.preview_change_participants)
    add_unity = _waiting(Client.add_unity)
    change_unity = _waiting(Client.change_unity)
    close_ranking = _waiting(Client.close_ranking)
    reopen_ranking = _waiting(Client.reopen_ranking)
    preview_reopen_ranking = _waiting(Client.preview_reopen_ranking)
    show_scoring = _waiting(Client.show_scoring)
    declare_scoring = _waiting(Client.declare_scoring)
    preview_declare_scoring = _waiting(Client.preview_declare_scoring)
    declare_classification = _waiting(Client.declare_classification)
    add_points = _waiting(Client.add_points)
    add_points_to_rankings = _waiting(Client.add_points_to_rankings)
    reverse_points = _waiting(Client.reverse_points)
    preview_reverse_points = _waiting(Client.preview_reverse_points)
    show_standings = _waiting(Client.show_standings)
    iterate_standings = _iterating(Client.iterate_standings)
    show_classification = _waiting(Client.show_classification)
    show_form = _waiting(Client.show_form)
    show_expiring = _waiting(Client.show_expiring)
    show_leaders = _waiting(Client.show_leaders)
    list_history = _iterating(Client.list_history)
    explain = _waiting(Client.explain)
    follow = _iterating(Client.follow)
    create_ticket = _waiting(Client.create_ticket)
    show_presentation = _waiting(Client.show_presentation)
    change_presentation = _waiting(Client.change_presentation)
    rename_tournament = _waiting(Client.rename_tournament)
    archive_tournament = _waiting(Client.archive_tournament)
    restore_tournament = _waiting(Client.restore_tournament)
    delete_tournament = _waiting(Client.delete_tournament)
    show_tournament = _waiting(Client.show_tournament)
    test_webhook = _waiting(Client.test_webhook)
    show_publication = _waiting(Client.show_publication)
    change_publication = _waiting(Client.change_publication)
