"""Fail points: a process dies where it was told to, the n-th time it comes there, and only there."""

import signal
import subprocess
import sys

import pytest

from engine.domain.errors import StartupRefused
from engine.process import failpoints
from engine.process.failpoints import VARIABLE, Point

_PROGRAM = """
import sys
from engine.process import failpoints
from engine.process.failpoints import Point
failpoints.arm()
for n in range(5):
    failpoints.reached(Point.APPEND)
    failpoints.reached(Point.FOLD_READ)
    print(n, flush=True)
"""


def ended(setting: str) -> tuple[int, int]:
    """How a process ended that comes to two points five times, and how often it came past both."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env={VARIABLE: setting}, check=False, capture_output=True, text=True
    )
    return done.returncode, len(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("setting", "passed"),
    [("", 5), ("append", 0), ("append:3", 2), ("fold-read:5", 4), ("fold-read:6", 5), ("fold-claimed", 5)],
)
def test_a_process_dies_at_the_named_point(setting: str, passed: int) -> None:
    assert ended(setting) == (0 if passed == 5 else -signal.SIGKILL, passed)


@pytest.mark.parametrize("setting", ["nowhere", "append:often", "append:0", "append:-1"])
def test_a_setting_that_names_no_point_is_refused(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, setting)
    with pytest.raises(StartupRefused, match="must be one of append, "):
        failpoints.arm()
    monkeypatch.delenv(VARIABLE)
    failpoints.arm()
    failpoints.reached(Point.APPEND)
