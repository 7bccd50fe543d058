"""What all actions are given: the scenario, the mistake that is planted, and what a client is told."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from assurance.model.board import Board, board_of
from assurance.model.scenario import Mistake, Scenario
from assurance.model.state import Case, Client, Database, Kind, Log, Request, Told, World, with_client

Step = tuple[str, World]
"""What happened, as a sentence of a story, and the world after it."""
Steps = Iterator[Step]

ANSWERS: Final = {Told.OK: "200", Told.REFUSED: "a refusal", Told.UNAVAILABLE: "503", Told.UNKNOWN: "500"}


class Protocol:
    """The protocol in one scenario, with at most one mistake."""

    def __init__(self, scenario: Scenario, mistake: Mistake | None = None) -> None:
        self.scenario = scenario
        self.requests: tuple[Request, ...] = scenario.requests
        self.mistake = mistake

    def board(self, log: Log) -> Board:
        return board_of(self.requests, log)

    def kind(self, case: Case) -> Kind:
        return self.requests[case.request].kind

    def name(self, case: Case) -> str:
        return self.requests[case.request].name

    def names(self, cases: tuple[Case, ...]) -> str:
        return " and ".join(self.name(case) for case in cases) or "the expiry"

    def next_refusal(self, database: Database, request: int) -> int:
        """The number of this refusal. (`refuse_keys` gives those that it notes together the same.)"""
        return database.refusals + 1

    def told(
        self,
        world: World,
        case: Case,
        told: Told,
        live: Log | None = None,
        *,
        read: Log | None = None,
        outdated: bool = False,
    ) -> World:
        """The world after this attempt was answered, if its client still waits for that. `live`: what the answer was
        made from. `read`: the log that was read for it. `outdated`: the refusal was judged by a state that lacks
        something acknowledged before."""
        client = world.clients[case.request]
        if client.told is not Told.WAITS or client.attempt != case.attempt:
            return world
        broken = ""
        if told is Told.OK and live is not None:
            missing = client.floor & ~world.lost | 1 << case.request
            if missing & ~self.board(live).requests:
                broken = "current: an answer does not show what was acknowledged before it, or its own change"
            if self.board(live).due(client.since):
                broken = "expired: an answer shows what had expired before it was asked for"
            if read is not None and not self.board(read).requests & 1 << case.request:
                broken = "once: a change is acknowledged after a look at a log that does not have it"
        elif told is Told.REFUSED and outdated:
            broken = "current: a request was refused by a state that lacks what was acknowledged before it came"
        unavailable = client.unavailable
        if told is Told.UNAVAILABLE:
            unavailable |= 1 << case.attempt
        world = with_client(world, case.request, Client(told=told, attempt=client.attempt, unavailable=unavailable))
        return replace(world, broken=broken) if broken else world


def acknowledged(world: World) -> int:
    """The requests that were answered with 200 and not lost since, a bit for each."""
    found = 0
    for r, client in enumerate(world.clients):
        if client.told is Told.OK:
            found |= 1 << r
    return found & ~world.lost
