"""What gets a tag, and what whoever publishes it is told to do."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from tests.upgrades import dumped
from tests.wheel.sbom import ROOT
from tests.wheel.test_wheel import CLIENT

VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
WHO: Final = {f"GIT_{whose}_{what}": "a@b" for whose in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def test_the_version_is_the_newest_of_the_changelog_with_a_dump_and_a_client_of_its_own() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == VERSION
    assert set(headings) <= set(dumped.versions())
    client = tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert client["version"] == VERSION


def test_a_clean_main_without_the_tag_is_told_how_to_publish_and_anything_else_is_refused(tmp_path: Path) -> None:
    def said(*command: str, code: int = 0) -> str:
        environment = os.environ | {"GIT_CONFIG_GLOBAL": str(ROOT / "no such file"), **WHO}
        done = subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done
        return done.stdout

    def released(code: int = 0) -> str:
        """What `make release` says after its tests."""
        return said(
            "make",
            "--no-print-directory",
            "release",
            *("--old-file=test", "--old-file=long", "--old-file=wheel"),
            code=code,
        )

    def committed(**files: str) -> str:
        for name, text in files.items():
            (tmp_path / f"{name}.md").write_text(text)
        said("git", "add", ".")
        said("git", "commit", "--quiet", "--message=One")
        return said("git", "rev-parse", "--short", "HEAD").strip()

    for name in "Makefile", "pyproject.toml":
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for folder in "dist", "engine":
        (tmp_path / folder).mkdir()
    ZipFile(tmp_path / "dist" / "tallybook.whl", "w").writestr("engine/log.py", "")
    (tmp_path / ".gitignore").write_text(".venv\ndist\n")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    said("git", "init", "--quiet", "--initial-branch=other")
    first = committed(README="Made.")
    (tmp_path / "engine" / "log.py").write_text("")
    second = committed(OLD=f"Measured at commit {first}.")
    committed(NEW=f"Measured at commit {second}.")

    assert released(code=2) == "Only the branch main gets a tag.\n"
    said("git", "branch", "--move", "main")
    (tmp_path / "NEW.md").write_text("changed")
    assert released(code=2) == "This is not in the commit:\n M NEW.md\n"
    said("git", "checkout", "--quiet", "NEW.md")
    listing, *rest = released().splitlines()[-5:]
    assert listing.startswith("engine/log.py")
    assert rest == [
        f"OLD.md has figures of commit {first}, and the product is newer.",
        f'git tag --annotate {VERSION} --message "Tallybook {VERSION}"',
        f"git push origin main {VERSION}",
        "twine upload dist/tallybook.whl",
    ]
    said(*shlex.split(rest[1]))
    assert released(code=2) == f"There is a tag {VERSION} already.\n"
