"""What others wrote and we ship is what its list says, byte for byte."""

import json
from pathlib import Path

import pytest

from tests.api.web.vendored import LISTS, sha256_of


@pytest.mark.parametrize("listed", LISTS, ids=lambda path: path.parent.name)
def test_each_file_of_others_is_the_one_that_was_fetched(listed: Path) -> None:
    for package in json.loads(listed.read_text(encoding="utf-8")):
        assert package["name"]
        assert package["version"]
        assert package["licence"] in {
            "BSD-3-Clause",
            "MIT",
            "MIT AND OFL-1.1",
            "MPL-2.0",
            "SEE LICENSE IN README.md AND LICENSE",  # of DejaVu: that of Bitstream Vera
        }
        assert package["sha512"].startswith("sha512-")
        for file in package["files"]:
            assert sha256_of((listed.parent / file["path"]).read_bytes()) == file["sha256"], file["path"]


@pytest.mark.parametrize("listed", LISTS, ids=lambda path: path.parent.name)
def test_no_file_of_others_is_missing_in_the_list(listed: Path) -> None:
    packages = json.loads(listed.read_text(encoding="utf-8"))
    named = {listed.parent / file["path"] for package in packages for file in package["files"]}
    folders = {path.relative_to(listed.parent).parts[0] for path in named}
    there = {path for folder in folders for path in (listed.parent / folder).rglob("*") if path.is_file()}
    assert there == named
