"""The share of the model's searches that ordinary tests have; `make model` makes all of them."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from assurance.model.invariants import PROMISES
from assurance.model.mistakes import PLANTED, Planted
from assurance.model.scenario import Mistake, Scenario
from assurance.model.scenarios import LATE, SCENARIOS
from assurance.model.search import search

ROOT = Path(__file__).parents[3]
RELIABILITY = ROOT / "docs" / "RELIABILITY.md"


def _share(one: Scenario) -> object:
    return pytest.param(one, id=one.name, marks=() if one.short else [pytest.mark.long, pytest.mark.timeout(3600)])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scenario", [_share(one) for one in SCENARIOS])
def test_no_order_of_what_can_happen_breaks_a_promise(scenario: Scenario) -> None:
    found = search(scenario)
    assert not found.broken, found.story_told()
    assert (found.states, found.depth) == (scenario.states, scenario.depth)


def _planted(one: Planted) -> object:
    marks = [pytest.mark.long, pytest.mark.timeout(3600)] if one.long else []
    return pytest.param(one, id=one.mistake.name, marks=marks)


@pytest.mark.parametrize("planted", [_planted(one) for one in PLANTED])
def test_a_planted_mistake_is_found(planted: Planted) -> None:
    found = search(planted.scenario, planted.mistake)
    assert found.promise == planted.promise, found.story_told()
    assert len(found.story) == planted.steps, found.story_told()


def _without_mistakes() -> dict[Scenario, Scenario]:
    """The scenarios of the mistakes that are found soon, each once, and by what they are without their names."""
    searched = {_unnamed(one) for one in SCENARIOS}
    found = {_unnamed(one.scenario): one.scenario for one in PLANTED if not one.long}
    return {what: one for what, one in found.items() if what not in searched}


def _unnamed(scenario: Scenario) -> Scenario:
    return replace(scenario, name="", states=0, depth=0, short=False)


@pytest.mark.parametrize("scenario", [pytest.param(one, id=one.name) for one in _without_mistakes().values()])
def test_without_the_mistake_nothing_is_found_in_its_place(scenario: Scenario) -> None:
    found = search(scenario)
    assert not found.broken, found.story_told()


def test_every_mistake_is_planted_somewhere() -> None:
    assert {one.mistake for one in PLANTED} == set(Mistake)


def test_a_refusal_does_not_settle_what_had_not_reached_the_service_yet() -> None:
    assert search(LATE).promise == "refused"


def test_each_sentence_of_the_contract_names_what_holds_it_and_each_of_these_is_named() -> None:
    contract, how = RELIABILITY.read_text(encoding="utf-8").split("## How it is tested")
    held = dict(re.findall(r"^\| ([^|]+?\.) \| ([^|]+) \|$", how.partition("| sentence of the contract |")[2], re.M))
    flowing = " ".join([line.strip() for line in contract.splitlines() if not line.startswith("|")])
    sentences = {re.sub(r" \([\d, ]+\)", "", one) for one in re.findall(r"\*\*([A-Z][^*]+\.)\*\*", flowing)}
    assert len(sentences) > 5
    assert sentences - held.keys() == set()
    named = " ".join(held.values())
    assert set(re.findall(r"\*(\w+)\*", named)) == set(PROMISES)
    assert set(re.findall(r"\bI\d+", named)) == set(re.findall(r"^\| (I\d+) \|", how, re.M))
    cases = {int(number) for numbers in re.findall(r"cases ([\d, ]+)", named) for number in numbers.split(", ")}
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "assurance" / "CAMPAIGN.md").read_text(encoding="utf-8"), re.M)
    assert cases <= {int(number) for number in rows}
    tests = "".join([path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")])
    assert [one for one in re.findall(r"`(test_\w+)`", named) if f"def {one}(" not in tests] == []
    assert [one for one in re.findall(r"`(tests/[\w/.]+)`", named) if not (ROOT / one).exists()] == []
    assert [what for what, by in held.items() if not re.search(r"\*|I\d|`tests?[/_]|cases \d", by)] == []
