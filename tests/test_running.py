"""What tests start ends with them."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.desks import until
from tests.running import drop_settings, lives

_STARTS_A_WORKER = """
import signal, sys
from pathlib import Path
from tests.running import started
with started(Path(sys.argv[1]), "worker", TALLYBOOK_DATABASE_URL=sys.argv[2]) as worker:
    print(worker.pid, flush=True)
    signal.pause()
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
async def test_a_command_does_not_outlive_the_test_run_that_was_killed(dsn: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS_A_WORKER, str(tmp_path), dsn]
    run = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert run.stdout is not None
    pid = int(await run.stdout.readline())
    # Before setpriv has made way for the command, nothing ends it.
    await until(lambda: b"setpriv" not in Path(f"/proc/{pid}/cmdline").read_bytes())
    assert lives(pid)
    run.kill()
    await run.wait()
    await until(lambda: not lives(pid))


def test_what_a_user_has_set_reaches_no_test() -> None:
    kept = {"PATH": "/bin", "HOME": "/home/me", "TALLYBOOK_TEST_EXAMPLES": "500", "TALLYBOOK_CHROMIUM": "/bin/chromium"}
    variables = kept | {
        "TALLYBOOK_DATABASE_URL": "postgresql://db.example/tallybook",
        "PGHOST": "db.example",
        "PGPASSWORD": "secret",
        "OTEL_TRACES_EXPORTER": "otlp",
    }
    drop_settings(variables)
    assert variables == kept
