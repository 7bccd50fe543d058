"""Stored events: what was written can be read for ever, and nothing is read that was not written like that."""

from hashlib import sha256
from pathlib import Path
from typing import Final, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT, UNSET

from engine.domain import events
from engine.domain.events import CompetitionChanged, Event, Ignored, Points
from engine.domain.terms import ID_MAX, ActorId, CompetitorId, Counts, RankingId, Sort
from engine.log.codec import (
    ENTRIES,
    TOPICS,
    Undecodable,
    content_of,
    decode,
    entries_of,
    entry_of,
    join,
    join_line,
    line_of,
    line_with,
    lines_of,
    part,
    parted_lines,
    parts_of,
    tags,
    text_of,
    topics_of,
)
from tests.histories import any_event, unhurried

GOLDEN: Final = Path(__file__).parent / "golden"


def golden_bodies(tag: str) -> list[str]:
    """Bodies as they have been stored, one a line; a line never changes once it has been released."""
    return GOLDEN.joinpath(f"{tag}.json").read_text(encoding="utf-8").removesuffix("\n").split("\n")


ALL_GOLDEN: Final = [(file.stem, body) for file in sorted(GOLDEN.iterdir()) for body in golden_bodies(file.stem)]

# ── There and back ──────────────────────────────────────────────────────────────────────────────────────


@settings(unhurried, max_examples=150)
@given(any_event())
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    assert decode(event.tag, text_of(event)) == event
    assert text_of(decode(event.tag, text_of(event))) == text_of(event)


keys: Final = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
sent: Final = st.tuples(any_event(), st.integers(0, ID_MAX).map(ActorId), keys)


@settings(unhurried, max_examples=50)
@given(st.lists(sent, min_size=1, max_size=5))
def test_every_line_comes_back_as_it_was_alone_and_among_others(given: list[tuple[Event, ActorId, str | None]]) -> None:
    lines = lines_of([ENTRIES[type(event)](actor, key, event) for event, actor, key in given])
    entries = entries_of(lines)
    assert [(entry.event, entry.actor, entry.key) for entry in entries] == given
    for one, line, entry in zip(given, lines.split("\n"), entries, strict=True):
        assert line == line_of(*one) == line_with(one[0].tag, one[1], one[2], text_of(one[0]))
        assert entry_of(line) == entry
        parts = parts_of(line)
        assert (parts.kind, parts.actor, parts.key, parts.body) == (one[0].tag, one[1], one[2], text_of(one[0]))


@unhurried
@given(sent)
def test_a_line_is_one_line_that_postgresql_can_hold(given: tuple[Event, ActorId, str | None]) -> None:
    line = line_of(*given)
    assert not {character for character in line if character < " "}


@pytest.mark.parametrize("line", ["", "x", "[]", '["RankingClosed",0,null]'])
def test_the_columns_of_a_block_have_a_place_for_a_line_that_is_none(line: str) -> None:
    closed = line_of(events.RankingClosed(ranking_id=RankingId(30)), ActorId(7), "k")
    content = content_of(f"5 0\n{closed}\n{line}\n{closed}")
    first, none, last = [(parts.kind, parts.actor, parts.key, parts.body) for parts in content.parts]
    assert first == last == ("RankingClosed", 7, "k", '{"ranking_id":30}')
    assert none == ("", 0, None, line)
    with pytest.raises(Undecodable):
        entry_of(line)


@settings(unhurried, max_examples=150)
@given(any_event())
def test_points_and_changes_are_found_by_their_competition_and_nothing_else_is(event: Event) -> None:
    of = event.competition_id if isinstance(event, Points | CompetitionChanged) else None
    assert [topic for topic in topics_of(event) if topic > 0] == ([] if of is None else [of])


def test_stored_events_that_are_not_judged_can_be_found_by_a_topic() -> None:
    assert {kind for kind in get_args(Event) if not kind.judged} - {Ignored} <= TOPICS.keys()


# ── Personal fields ─────────────────────────────────────────────────────────────────────────────────────

SALT: Final = "5a" * 32
TEXT: Final = '{"competitor_id":7,"parent_id":2,"name":"Ann \\",\\"name\\":","tags":["u18"]}'
PERSONAL: Final = f"{SALT}{{{TEXT[33:]}"
COMMITMENT: Final = sha256(PERSONAL.encode()).hexdigest()
BODY: Final = f'{{"competitor_id":7,"parent_id":2,"commitment":"{COMMITMENT}"}}'


def test_personal_fields_are_stored_apart_from_a_body_that_has_a_commitment_to_them() -> None:
    event = decode("CompetitorRegistered", TEXT)
    assert part(event, TEXT, SALT) == (BODY, PERSONAL)
    assert join(BODY, PERSONAL) == TEXT
    assert decode("CompetitorRegistered", BODY) == events.CompetitorRegistered(
        competitor_id=CompetitorId(7), parent_id=CompetitorId(2), commitment=COMMITMENT
    )


@settings(unhurried, max_examples=120)
@given(st.lists(any_event(), min_size=1, max_size=3))
def test_each_event_is_joined_from_its_parts_and_no_body_has_a_personal_field(given: list[Event]) -> None:
    entries = [ENTRIES[type(event)](ActorId(0), None, event) for event in given]
    lines, personals = parted_lines(entries, [SALT] * len(given))
    for event, line, personal in zip(given, lines.split("\n"), personals, strict=True):
        kind, text, body = event.tag, text_of(event), parts_of(line).body
        assert join(body, personal or None) == text
        assert join_line(line, personal or None) == line_of(event, ActorId(0))
        assert not msgspec.json.decode(body).keys() & event.personal
        assert bool(personal) == bool(msgspec.json.decode(text).keys() & event.personal)
        assert (body == text) or decode(kind, body) != event


# ── Golden files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("tag", "body"), ALL_GOLDEN)
def test_what_was_ever_written_is_read_and_would_be_written_again(tag: str, body: str) -> None:
    event = decode(tag, body)
    assert (event.tag, text_of(event)) == (tag, body)


def test_every_tag_has_a_golden_file() -> None:
    assert {tag for tag, _ in ALL_GOLDEN} == tags()


def test_every_kind_of_event_has_a_tag() -> None:
    assert {type(decode(tag, body)) for tag, body in ALL_GOLDEN} == set(get_args(Event)) - {events.Ignored}


def test_what_stands_for_an_event_that_was_set_aside_is_never_written() -> None:
    with pytest.raises(KeyError):
        line_of(events.Ignored(), ActorId(0))


@pytest.mark.parametrize("tag", sorted(tags()))
def test_the_golden_file_shows_each_field_given_and_each_optional_one_left_out(tag: str) -> None:
    bodies = [msgspec.json.decode(body) for body in golden_bodies(tag)]
    for field in msgspec.structs.fields(type(decode(tag, golden_bodies(tag)[0]))):
        assert any(field.name in body for body in bodies)
        if not field.required:
            assert any(field.name not in body for body in bodies)


def test_what_is_left_out_means_the_same_for_ever() -> None:
    defaults = {
        (kind, field.name): field.default
        for kind in get_args(Event)
        for field in msgspec.structs.fields(kind)
        if field.default is not NODEFAULT
    }
    assert defaults == {
        (events.CompetitorRegistered, "parent_id"): None,
        (events.CompetitorRegistered, "name"): "",
        (events.CompetitorRegistered, "tags"): (),
        (events.CompetitorRegistered, "color"): "000000",
        (events.CompetitorRegistered, "key"): None,
        (events.CompetitorRegistered, "commitment"): UNSET,
        **dict.fromkeys(
            [(events.PresentationChanged, name) for name in ("zone", "language", "accent", "logo", "listed")], UNSET
        ),
        (events.CompetitorChanged, "parent_id"): UNSET,
        (events.CompetitorChanged, "name"): UNSET,
        (events.CompetitorChanged, "tags"): UNSET,
        (events.CompetitorChanged, "color"): UNSET,
        (events.CompetitorChanged, "key"): UNSET,
        (events.CompetitorChanged, "commitment"): UNSET,
        (events.CompetitionAdded, "started_at"): None,
        (events.CompetitionAdded, "location"): "",
        (events.CompetitionAdded, "participants"): (),
        (events.CompetitionAdded, "result"): None,
        (events.CompetitionAdded, "winner_id"): None,
        (events.CompetitionAdded, "scale"): "",
        (events.CompetitionAdded, "round"): None,
        (events.CompetitionAdded, "round_name"): "",
        (events.CompetitionAdded, "key"): None,
        (events.CompetitionChanged, "started_at"): UNSET,
        (events.CompetitionChanged, "location"): UNSET,
        (events.CompetitionChanged, "result"): UNSET,
        (events.CompetitionChanged, "winner_id"): UNSET,
        (events.CompetitionChanged, "participants"): UNSET,
        (events.CompetitionChanged, "group_id"): UNSET,
        (events.CompetitionChanged, "scale"): UNSET,
        (events.CompetitionChanged, "round"): UNSET,
        (events.CompetitionChanged, "round_name"): UNSET,
        (events.CompetitionChanged, "key"): UNSET,
        (events.CompetitionChanged, "scored"): False,
        (events.ScoringDeclared, "scorings"): (),
        (events.PointsScored, "competition_id"): None,
        (events.PointsScored, "reason"): None,
        (events.PointsScored, "part"): None,
        (events.PointsScored, "results"): (),
        (events.PointsScored, "instead_of"): None,
        (events.PointsScored, "since"): None,
        (events.PointsScored, "silent"): (),
        (events.PointsScored, "silent_results"): (),
        (events.PointsScored, "totals"): (),
        (events.PointsReversed, "replaced"): (),
        (events.PointsReversed, "instead_of"): None,
        (events.RankingCreated, "description"): None,
        (events.RankingCreated, "main_unity_sort"): Sort.DESC,
        (events.RankingCreated, "main_unity_decimals"): 0,
        (events.RankingCreated, "main_unity_time"): None,
        (events.RankingCreated, "main_unity_counts"): Counts.SUM,
        (events.RankingCreated, "main_unity_lasts"): None,
        (events.RankingCreated, "main_unity_expires_on"): None,
        (events.RankingCreated, "main_unity_absent"): None,
        (events.RankingModified, "name"): UNSET,
        (events.RankingModified, "description"): UNSET,
        (events.RankingInformationChanged, "name"): UNSET,
        (events.RankingInformationChanged, "description"): UNSET,
        (events.RankingInformationChanged, "zones"): UNSET,
        (events.ParticipantsChanged, "added"): (),
        (events.ParticipantsChanged, "removed"): (),
        (events.UnityAdded, "sort"): Sort.DESC,
        (events.UnityAdded, "decimals"): 0,
        (events.UnityAdded, "time"): None,
        (events.UnityAdded, "counts"): Counts.SUM,
        (events.UnityAdded, "lasts"): None,
        (events.UnityAdded, "expires_on"): None,
        (events.UnityAdded, "absent"): None,
        (events.UnityChanged, "name"): UNSET,
        (events.UnityChanged, "sort"): UNSET,
        (events.ClassificationDeclared, "criteria"): (),
        (events.PointsAdded, "competition_id"): None,
        (events.PointsAdded, "reason"): None,
        (events.PointsAdded, "part"): None,
        (events.PointsAdded, "results"): (),
        (events.PointsReversed, "competition_id"): None,
        (events.PointsReversed, "undone"): None,
        (events.PointsReversed, "struck"): None,
        (events.PointsReversed, "totals"): (),
        (events.PointsExpired, "totals"): (),
        (events.PublicationRevealed, "to"): None,
    }


# ── What is not read ────────────────────────────────────────────────────────────────────────────────────

DEEP: Final = 100_000

UNDECODABLE: Final[dict[str, tuple[str, str]]] = {
    "an unknown tag": ("PointsDoubled", "{}"),
    "an empty tag": ("", "{}"),
    "a tag in another case": ("rankingclosed", '{"ranking_id":30}'),
    "an unknown field": ("RankingClosed", '{"ranking_id":30,"reason":"over"}'),
    "a field in another case": ("RankingClosed", '{"Ranking_id":30}'),
    "a missing field": ("RankingClosed", "{}"),
    "another event's body": ("RankingClosed", '{"name":"Spring Open","slug":"spring-open"}'),
    "no body": ("RankingClosed", ""),
    "a body that is no JSON": ("RankingClosed", "{ranking_id:30}"),
    "a body cut short": ("RankingClosed", '{"ranking_id":30'),
    "a body with something behind it": ("RankingClosed", '{"ranking_id":30}{}'),
    "a body that is null": ("RankingClosed", "null"),
    "a body that is an array": ("RankingClosed", "[30]"),
    "an id that is text": ("RankingClosed", '{"ranking_id":"30"}'),
    "an id that is a fraction": ("RankingClosed", '{"ranking_id":30.0}'),
    "an id that is a truth": ("RankingClosed", '{"ranking_id":true}'),
    "an id that is null": ("RankingClosed", '{"ranking_id":null}'),
    "a name that is a number": ("TournamentOpened", '{"name":1,"slug":"a"}'),
    "a name that no UTF-8 can hold": ("TournamentOpened", '{"name":"\ud800","slug":"a"}'),
    "half a character": ("TournamentOpened", '{"name":"\\ud800","slug":"a"}'),
    "a sort that is none": ("UnityAdded", '{"ranking_id":30,"unity_id":41,"name":"a","sort":"UP"}'),
    "tags that are text": ("CompetitorRegistered", '{"competitor_id":1,"name":"Anna","tags":"u18"}'),
    "a time that is a number": ("CompetitionAdded", '{"competition_id":20,"group_id":7,"started_at":0}'),
    "a time that is none": ("CompetitionAdded", '{"competition_id":20,"group_id":7,"started_at":"noon"}'),
    "a result that is a number": ("CompetitionAdded", '{"competition_id":20,"group_id":7,"result":3}'),
    "performances by name": ("CompetitionAdded", '{"competition_id":20,"group_id":7,"result":{"Anna":"1"}}'),
    "performances that are numbers": ("CompetitionAdded", '{"competition_id":20,"group_id":7,"result":{"1":1}}'),
    "a delta too large": ("PointsAdded", '{"ranking_id":30,"deltas":[[1,40,2147483648]]}'),
    "a delta too small": ("PointsAdded", '{"ranking_id":30,"deltas":[[1,40,-2147483648]]}'),
    "a delta that is text": ("PointsAdded", '{"ranking_id":30,"deltas":[[1,40,"3"]]}'),
    "a delta of two": ("PointsAdded", '{"ranking_id":30,"deltas":[[1,40]]}'),
    "a delta of four": ("PointsAdded", '{"ranking_id":30,"deltas":[[1,40,3,4]]}'),
    "a delta that is an object": ("PointsAdded", '{"ranking_id":30,"deltas":[{"amount":3}]}'),
    "a setting aside of nothing": ("EventSetAside", f'{{"sequence":0,"digest":"{"0" * 64}"}}'),
    "a setting aside beyond its bound": ("EventSetAside", f'{{"sequence":{10**18},"digest":"{"0" * 64}"}}'),
    "a digest that is too short": ("EventSetAside", f'{{"sequence":1,"digest":"{"0" * 63}"}}'),
    "a digest in capitals": ("EventSetAside", f'{{"sequence":1,"digest":"{"A" * 64}"}}'),
    "a freeze before the beginning": ("PublicationFrozen", '{"at":0}'),
    "a freeze at no event": ("PublicationFrozen", "{}"),
    "a reveal of nothing": ("PublicationRevealed", '{"to":0}'),
    "nothing but arrays": ("RankingClosed", "[" * DEEP + "]" * DEEP),
    "a field nested without end": ("RankingClosed", '{"ranking_id":' + "[" * DEEP + "]" * DEEP + "}"),
    "an unknown field nested without end": ("RankingClosed", '{"ranking_id":30,"x":' + "[" * DEEP + "]" * DEEP + "}"),
    "a result nested without end": (
        "CompetitionAdded",
        '{"competition_id":20,"group_id":7,"result":' + '{"1":' * DEEP + "1" + "}" * DEEP + "}",
    ),
}


@pytest.mark.parametrize(("tag", "body"), UNDECODABLE.values(), ids=UNDECODABLE.keys())
def test_undecodable(tag: str, body: str) -> None:
    with pytest.raises(Undecodable) as undecodable:
        decode(tag, body)
    assert tag in str(undecodable.value)
    assert len(str(undecodable.value)) < 200
    for read in (entry_of, entries_of):
        with pytest.raises(Undecodable):
            read(line_with(tag, ActorId(0), None, body))
