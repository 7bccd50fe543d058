"""docs/TOUR.md: its blocks, pasted into a shell, run to the end and show what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.running import free_port

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "TOUR.md").read_text(encoding="utf-8")
BLOCKS: Final = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.long
def test_the_blocks_of_the_tour_run_to_the_end_and_show_what_it_points_out(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    script = BLOCKS.replace("PORT=8181", f"PORT={free_port()}")
    command = ["timeout", "--kill-after=5", "60", "bash", "-m", "-c", script]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TALLYBOOK_")}
    shown = subprocess.run(command, check=False, cwd=tmp_path, env=variables, capture_output=True, text=True)

    assert shown.returncode == 0, shown.stderr
    assert "Tallybook-Sequence: 6\nIdempotency-Replayed: true" in shown.stdout.replace("\r", "")
    assert re.search(r"event 9\n +-3 because event 6, .* was reversed", shown.stdout)
    assert [line.split(",")[0::13] for line in shown.stdout.splitlines() if re.match(r"(9|11),", line)] == [
        ["9", "6"],
        ["11", "6"],
    ]
    assert "No difference was found." in shown.stdout
    assert '"message": "The ranking \'Ladder\' is closed; reopen it first."' in shown.stdout
