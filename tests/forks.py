"""Commands run in forks of a process that has imported Tallybook: the imports take longer than most commands.

Forks import this module, and so it imports nothing of pytest.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterable, Mapping
from multiprocessing.reduction import DupFd
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryFile
from typing import IO, Final

import api.cli
from tallybook_command import main

_FORKING: Final = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__, *(found.name for found in walk_packages(api.cli.__path__, "api.cli."))])


def ended(
    argv: list[str], *, cwd: Path, environment: Mapping[str, str], stdin: IO[bytes], seconds: float
) -> tuple[int, str, str]:
    """The exit code of a command, and what it said on standard output and on standard error. Raises TimeoutError if it
    takes longer than `seconds`."""
    with TemporaryFile() as out, TemporaryFile() as err:
        streams = [DupFd(stream.fileno()) for stream in (stdin, out, err)]
        command = _FORKING.Process(target=_run, args=(argv, cwd, environment, streams))
        command.start()
        command.join(seconds)
        if command.exitcode is None:
            command.kill()
            raise TimeoutError(f"{' '.join(argv)} went on for {seconds} seconds")
        out.seek(0)
        err.seek(0)
        return command.exitcode, out.read().decode(), err.read().decode()


def _run(argv: list[str], cwd: Path, environment: Mapping[str, str], streams: Iterable[DupFd]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.detach(), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = argv
    main()
