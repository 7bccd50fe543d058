"""The limit of large requests: only the product's own form decoder and its msgspec decoder, over the same bodies.

One loop in one process, nothing else: no HTTP, no checks, no events. Figure: bodies a second.
"""

from pathlib import Path
from time import perf_counter
from typing import Final

from msgspec import Struct

from api.http.forms import parse_form
from api.interface.resources import points
from benchmarks.traffic import body_of, stored
from benchmarks.trials import Stopwatch, say, told

FIELD: Final = "participants_delta"


class Settings(Struct, frozen=True, kw_only=True):
    requests: str
    seconds: float


def run(settings: Settings) -> None:
    bodies = [body_of(request) for request in stored(Path(settings.requests))]
    decode = points._LINES.decode
    stopwatch = Stopwatch()
    done = 0
    with stopwatch.timing():
        until = perf_counter() + settings.seconds
        while perf_counter() < until:
            decode(parse_form(bodies[done % len(bodies)])[FIELD])
            done += 1
    say(bodies_per_second=done / stopwatch.seconds)


if __name__ == "__main__":
    run(told(Settings))
