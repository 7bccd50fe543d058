"""The terms used in the documentation. ARCHITECTURE defines the internal terms."""

from typing import Final

WORDS: Final = {
    "tournament": "the unit of ordering and of isolation. It is named by a slug made from its name.",
    "competitor": "a person or a team that takes part in a tournament.",
    "competition": "a match or a race: competitors meet, and there may be a result.",
    "ranking": "a table of competitors with one or more unities.",
    "unity": "one scoring column of a ranking, such as points. The first is the main one.",
    "participants": "the competitors of a ranking, in their order. Adding one is enrolment.",
    "delta": "a signed integer credited to one competitor in one unity.",
    "undone": "of an event that added points: its points do not count until it is redone.",
    "voided": "of a competition: the points it gave do not count, and it can give no more.",
    "standing": ("one competitor's line in a unity: position and total. The standings of a unity are all its lines."),
    "classification": "a ranking's competitors in the order of a declared chain of criteria.",
    "sub-table": (
        "the lines of the competitors with a given tag, in the order of the whole standings, with their own positions."
    ),
    "log's clock": "everything recorded by a moment: the table as it was published.",
    "world's clock": "everything that took place by a time, by the dates of competitions, whenever it was recorded.",
    "movement": (
        "the places that a line gained or lost between two moments, in the tables that the same query shows at both."
    ),
    "event": "one fact of a tournament, in the past tense: points were added, a ranking was closed. It never changes.",
    "sequence": "an event's number in its tournament: 1, 2, 3 … without gaps, in the order of commits.",
    "version": "of a unity: the number of events that have shaped its standings; its creation is 1.",
    "published": "of a tournament: the public sees it without a token, up to its public end.",
    "public end": (
        "the last event that the public sees. It is the head of the log, unless a freeze holds it back. A reveal moves "
        "it forward. It never falls while the tournament is published."
    ),
    "head": "the last sequence of a tournament, with its digest.",
    "webhook": (
        "an address to which the events of a tournament are sent, and the last event delivered. A parked webhook waits "
        "for an operator, because its receiver does not accept the next event."
    ),
}
