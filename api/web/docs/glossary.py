"""The words that readers of the documentation meet. ARCHITECTURE defines the words of the inside."""

from typing import Final

WORDS: Final = {
    "tournament": "the unit of ordering and of isolation. It is named by a slug made from its name.",
    "competitor": "a person or a team that takes part in a tournament.",
    "competition": "a match or a race: competitors meet, and there may be a result.",
    "ranking": "a table of competitors with one or more unities.",
    "unity": "one scoring column of a ranking, such as points. The first is the main one.",
    "participants": "the competitors of a ranking, in their order. Adding one is enrolment.",
    "delta": "a signed integer credited to one competitor in one unity.",
    "undone": "of an event that added points: they do not count. They do again once it is redone.",
    "voided": "of a competition: the points that it gave do not count, and it can give no more.",
    "standing": ("one competitor's line in a unity: position and total. The standings of a unity are all its lines."),
    "classification": "a ranking's competitors in the order of a declared chain of criteria.",
    "sub-table": (
        "the lines of the competitors that have one tag, in the order of the whole standings, with positions of their "
        "own."
    ),
    "log's clock": "what had been recorded by a moment: the table as it was published.",
    "world's clock": "what had taken place by a time, by the dates of competitions, whenever it was recorded.",
    "movement": (
        "the places that a line has gained between two moments, in the tables that the same question shows at both."
    ),
    "event": "one fact of a tournament, in the past tense (`PointsAdded`). It never changes.",
    "sequence": "an event's number in its tournament: 1, 2, 3 … without gaps, in the order of commits.",
    "version": "of a unity: how many events have shaped its standing, counted from its creation as 1.",
    "published": "of a tournament: the public sees it without a token, up to its public end.",
    "public end": (
        "the last event that the public sees. It is the head of the log, unless a freeze holds it. A reveal moves it "
        "forward. It never falls while the tournament is published."
    ),
    "head": "the last sequence of a tournament, with the digest there.",
    "webhook": (
        "an address to which the events of a tournament are sent, and the last event that arrived. Parked: it waits "
        "for an operator, because its receiver does not accept the next event."
    ),
}
