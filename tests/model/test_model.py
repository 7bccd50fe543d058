"""The share of the model's searches that ordinary tests have; `make model` makes all of them."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.model.invariants import PROMISES
from tests.model.mistakes import PLANTED, Planted
from tests.model.scenario import Mistake, Scenario
from tests.model.scenarios import LATE, SCENARIOS
from tests.model.search import search


def _share(one: Scenario) -> object:
    return pytest.param(one, id=one.name, marks=() if one.short else [pytest.mark.long, pytest.mark.timeout(3600)])


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


def test_the_contract_says_which_promise_holds_which_sentence() -> None:
    contract = (Path(__file__).parents[2] / "docs" / "RELIABILITY.md").read_text(encoding="utf-8")
    assert [promise for promise in PROMISES if f"*{promise}*" not in contract] == []
