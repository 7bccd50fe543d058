"""Where a process spends its time under load: sampled from outside by py-spy, totalled by function and by part.

Shares are of the samples in which the process was at work, not waiting. Functions in C are seen as part of the Python
function that called them.
"""

import asyncio
import re
import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchmarks.setting import Setting
from benchmarks.table import HotSpot, Profile

SAMPLES_PER_SECOND: Final = 250
SECONDS: Final = 20
QUICK_SECONDS: Final = 4
_WAITING: Final = "_worker (futures/thread.py)"
"""A thread of a pool without work, which py-spy takes for one at work."""
_FRAME: Final = re.compile(r"(?P<function>.+) \((?P<file>.+?)(?::\d+)?\)")


async def recorded(name: str, pid: int, load: Callable[..., Awaitable[object]], setting: Setting) -> list[Profile]:
    """The profile of a process under the load `name`; `load(seconds=…)` makes it for that long.

    No profile without py-spy, or where it is not allowed.
    """
    seconds = setting.scaled(SECONDS, quick=QUICK_SECONDS)
    py_spy = _py_spy()
    if py_spy is None:
        setting.say("py-spy is not installed: there is no profile")
        return []
    file = setting.directory / "profile.raw"
    sampling = await asyncio.create_subprocess_exec(
        *(py_spy, "record", "--pid", str(pid), "--duration", str(seconds), "--rate", str(SAMPLES_PER_SECOND)),
        *("--format", "raw", "--output", str(file)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    await load(seconds=seconds)
    _, said = await sampling.communicate()
    if sampling.returncode != 0:
        setting.say(f"py-spy failed, there is no profile: {said.decode(errors='replace').strip()[-300:]}")
        return []
    return [Profile(name=name, spots=summed_up(file.read_text()))]


def summed_up(raw: str) -> list[HotSpot]:
    """The hot spots of stacks in py-spy's raw format: frames joined by `;`, outermost first, and how often they were
    seen."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        places = [_place(frame) for frame in stack.split(";")]
        if places[-1] == _WAITING:
            continue
        own[places[-1]] += int(count)
        for place in set(places):
            whole[place] += int(count)
    total = own.total()
    return [HotSpot(place, own[place] / total, count / total) for place, count in whole.most_common()]


def _place(frame: str) -> str:
    """`function (package/module.py)`, without the directories of this machine."""
    found = _FRAME.fullmatch(frame)
    if found is None:
        return frame
    path = Path(found["file"])
    return f"{found['function']} ({'/'.join(path.parts[-2:])})"


def _py_spy() -> str | None:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")
