"""The share of the campaign that runs in ordinary tests: fixed seeds, and counts and times scaled down.

The full size is `make faults`; assurance/CAMPAIGN.md says what each case injects.
"""

from collections.abc import Callable

import pytest

from assurance.faults import campaign, crashes, erasing, floods, networks, races, replaced
from assurance.faults.loads import soak
from assurance.faults.table import CASES, CONTROLS, CannotBeMade, Trial

SHARE = {11: 0.03, 27: 0.05, 28: 0.02, 30: 0.05, 31: 0.05, 32: 0.25} | {
    59: 0.02,
    60: 0.02,
    61: 0.02,
    62: 0.06,
    63: 0.06,
    76: 0.06,
    78: 0.1,
    81: 0.05,
}
"""By case, the size."""
SHORT = {11}
"""The cases that are not left to `make long`."""
QUICK_CONTROLS = [races.classic_reader, races.without_deduplication, races.changed_delta]
LONG_CONTROLS = [
    pytest.param(run, marks=pytest.mark.long)
    for run in (replaced.without_digests, replaced.without_ids, erasing.planted)
]
"""These and the quick ones are all but those that need a file system of their own."""


@pytest.mark.parametrize(
    "number", [number if number in SHORT else pytest.param(number, marks=pytest.mark.long) for number in SHARE]
)
async def test_what_must_hold_does(number: int, trial: Callable[[float], Trial]) -> None:
    one = trial(SHARE[number])
    try:
        await CASES[number].made(one)
    except CannotBeMade as error:
        pytest.skip(str(error))
    assert one.verdicts.wrong == {}, one.verdicts.told()
    assert not one.shortcoming
    assert one.outcomes


@pytest.mark.one_in(3)
@pytest.mark.parametrize("run", QUICK_CONTROLS + LONG_CONTROLS)
async def test_what_is_broken_on_purpose_is_found(
    run: Callable[[Trial], object], trial: Callable[[float], Trial]
) -> None:
    (control,) = [control for control in CONTROLS.values() if control.run is run]
    assert await control.run(trial(0.05))


@pytest.mark.long
async def test_after_faults_at_random_nothing_has_leaked(trial: Callable[[float], Trial]) -> None:
    one = trial(0.1)
    await soak(one, minutes=0.05)
    assert one.verdicts.wrong == {}, one.verdicts.told()
    assert one.resumed


def test_the_table_says_of_each_case_who_makes_it() -> None:
    assert all((crashes, erasing, floods, networks, replaced))
    assert {1, 39, *SHARE} <= CASES.keys()


def test_the_page_of_the_campaign_is_made_from_its_results() -> None:
    """`python -m assurance.faults.campaign --page` writes it."""
    assert campaign.DOCUMENT.read_text(encoding="utf-8") == campaign.page(campaign.kept())
