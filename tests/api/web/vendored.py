"""Fetches what others wrote and we ship, or test with, and says what it is: `make vendor`.

Each `vendor.json` lists packages of npm: name, version, licence, the registry's sha512 of the package, and of each file
where it comes from, where it lies beside the list, and its sha256. To take another version, change the version there
and run this. Nothing of a package is run.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
LISTS: Final = (ROOT / "api/web/static/vendor.json", ROOT / "tests/api/web/vendor.json")


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _fetch(package: dict[str, Any], beside: Path) -> None:
    """Fetches the files of `package`, and writes down what they are."""
    with TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--ignore-scripts", "--json", f"{package['name']}@{package['version']}"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        (said,) = json.loads(packed.stdout)
        archive = (Path(folder) / said["filename"]).read_bytes()
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        if integrity != said["integrity"]:
            sys.exit(f"{package['name']}: the registry names {said['integrity']}, the package is {integrity}.")
        package["sha512"] = integrity
        with tarfile.open(Path(folder) / said["filename"]) as files:
            package["licence"] = json.loads(_content(files, "package.json"))["license"]
            for file in package["files"]:
                content = _content(files, file["from"])
                file["sha256"] = sha256_of(content)
                target = beside / file["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _content(files: tarfile.TarFile, name: str) -> bytes:
    found = files.extractfile(f"package/{name}")
    assert found is not None
    return found.read()


if __name__ == "__main__":
    for listed in LISTS:
        packages = json.loads(listed.read_text(encoding="utf-8"))
        for package in packages:
            _fetch(package, listed.parent)
        listed.write_text(json.dumps(packages, indent=2) + "\n", encoding="utf-8")
