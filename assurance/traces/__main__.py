"""Plays with another seed again and again, holds each trace against the model, and some changes of each."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from assurance.faults.stage import prepare
from assurance.faults.table import Trial
from assurance.traces.changes import changes
from assurance.traces.conformance import GAVE_UP, PATIENT_STATES_MAX, STATES_MAX, misfit
from assurance.traces.facts import untruth
from assurance.traces.playing import some_faults, traces

CHANGES = 2  # of each trace


async def main(minutes: float, seed: int) -> int:
    """Prints what was found. Returns 1 if something is wrong."""
    began, wrong, accepted, lines, refused, given_up, legal = time.monotonic(), 0, 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        prepared = await prepare(Path(name, "prepared"))
        while time.monotonic() < began + 60 * minutes:
            with tempfile.TemporaryDirectory(dir=name) as folder:
                trial = Trial(prepared, Path(folder), seed=seed)
                faults = some_faults(trial.random, 4)
                played = await traces(trial, tournaments=4, clients=4, requests=12, faults=faults)
            for trace in played:
                why = misfit(trace, PATIENT_STATES_MAX)
                if why:
                    wrong += 1
                    print(f"seed {seed}: {why}", flush=True)
                    continue
                accepted, lines = accepted + 1, lines + len(trace.lines)
                for change in Random(seed).sample(list(changes(trace)), CHANGES):
                    if why := misfit(change.changed):
                        refused += 1
                        given_up += why.startswith(GAVE_UP)
                    elif why := untruth(change.changed):
                        wrong += 1
                        print(f"seed {seed}: accepted, although {why} ({change.told})", flush=True)
                    else:
                        legal += 1
            print(f"seed {seed}: {trial.figure}", flush=True)
            seed += 1
    print(
        f"{accepted} traces of {lines} lines accepted; of changed ones {refused} refused, {given_up} of them "
        f"after {STATES_MAX:,} states, {legal} legal; {wrong} wrong"
    )
    return min(wrong, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.minutes, given.seed)))
