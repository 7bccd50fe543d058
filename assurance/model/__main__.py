"""Searches every scenario, or tells the stories of the planted mistakes that are named."""

import sys

from assurance.model.mistakes import PLANTED
from assurance.model.scenarios import SCENARIOS
from assurance.model.search import Found, search


def main(names: list[str]) -> int:
    """Prints what was found. Returns 1 if it is not what it must be."""
    wrong = states = 0
    for scenario in SCENARIOS if not names else ():
        found = search(scenario)
        states += found.states
        is_right = not found.broken and (found.states, found.depth) == (scenario.states, scenario.depth)
        wrong += not is_right
        _tell(found, scenario.name, "" if is_right else f"  — {scenario.states:,} and {scenario.depth} were expected")
    if not names:
        print(f"{len(SCENARIOS)} searches, {states:,} states", flush=True)
    for planted in PLANTED:
        if not names or planted.mistake.name in names:
            found = search(planted.scenario, planted.mistake)
            wrong += found.promise != planted.promise
            _tell(found, planted.mistake.name, f": {planted.mistake.value}", with_story=bool(names))
    return min(wrong, 1)


def _tell(found: Found, name: str, remark: str, *, with_story: bool = True) -> None:
    print(found.told(name) + remark, flush=True)
    if found.broken and with_story:
        print(found.story_told(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
