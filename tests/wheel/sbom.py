"""docs/sbom/tallybook.cdx.json: what the wheel holds of others, and what it runs with, at the versions of the lock.

In the form of CycloneDX 1.6. `make docs` writes it, from requirements.lock and `vendor.json`. What requires
what, and under which licence, the installed packages say. The wheel has it in `dist-info/sboms`, where PEP 770 has
people look. Digests of packages stand in the lock: each has as many as there are files that it can be installed from.
"""

import base64
import json
import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "docs" / "sbom" / "tallybook.cdx.json"
VENDORED: Final = ROOT / "api/web/static/vendor.json"
_LOCKED: Final = re.compile(r"^([a-z0-9-]+)==([^\s;]+)", re.MULTILINE)
_NAMED: Final = re.compile(r"[A-Za-z0-9._-]+")
_WORDS: Final = {
    "Apache 2.0": "Apache-2.0",
    "Artistic License": "Artistic-1.0-Perl",  # of text-unidecode, or the GPL
    "BSD License": "BSD-3-Clause",  # of segno
    "MIT License": "MIT",
    "SIL OFL V1.1": "OFL-1.1",
}
"""How packages without an expression of SPDX name their licence."""
Component = dict[str, Any]


def sbom() -> str:
    """The document. It has no time and no random number, so that it is always the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = dict(_LOCKED.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    requires = {"tallybook": _named(project["dependencies"], locked)}
    while missing := set(chain(*requires.values())) - requires.keys():
        requires |= {name: _named(_stated(name), locked) for name in missing}
    bundled = [_vendored(one) for one in json.loads(VENDORED.read_text(encoding="utf-8"))]
    itself = _component("tallybook", project["version"], project["license"]) | {"type": "application"}
    packages = [_component(name, locked[name], _licence(name)) for name in sorted(requires.keys() - {"tallybook"})]
    reference = {one["name"]: one["bom-ref"] for one in (itself, *packages)}
    graph = [
        {"ref": reference[name], "dependsOn": [reference[other] for other in others]}
        for name, others in sorted(requires.items())
    ]
    graph[[one["ref"] for one in graph].index(itself["bom-ref"])]["dependsOn"] += [one["bom-ref"] for one in bundled]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": [*bundled, *packages],
        "dependencies": [*graph, *({"ref": one["bom-ref"]} for one in bundled)],
    }
    return f"{json.dumps(document, indent=1)}\n"


def _component(name: str, version: str, licence: str | None) -> Component:
    purl = f"pkg:pypi/{name}@{version}"
    component: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return component | ({"licenses": [{"expression": licence}]} if licence else {})


def _vendored(one: Component) -> Component:
    """A package of npm of which files stand in the wheel; the digest is that of the package."""
    algorithm, _, digest = one["sha512"].partition("-")
    assert algorithm == "sha512"
    purl = f"pkg:npm/{quote(one['name'])}@{one['version']}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": one["name"],
        "version": one["version"],
        "hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}],
        "licenses": [{"expression": one["licence"]}],
        "purl": purl,
    }


def _stated(name: str) -> list[str]:
    """What a package requires; nothing where it is for another platform, and so not installed."""
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return []


def _licence(name: str) -> str | None:
    """As SPDX has it; older packages state it in words, or only by their classifiers."""
    try:
        stated = distribution(name).metadata
    except PackageNotFoundError:
        return None
    classified = (one.rpartition(" :: ")[2] for one in stated.get_all("Classifier", ()) if one.startswith("License"))
    words = stated.get("License-Expression") or stated.get("License") or next(classified, None)
    return _WORDS.get(words, words) if words else None


def _named(requirements: Iterable[str], locked: dict[str, str]) -> list[str]:
    """The packages of the lock that are required, without those of extras."""
    names = set()
    for requirement in requirements:
        named = _NAMED.match(requirement)
        assert named
        name = re.sub("[-_.]+", "-", named[0]).lower()
        if name in locked and not re.search(r"\bextra\s*==", requirement):
            names.add(name)
    return sorted(names)


def main() -> None:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(sbom(), encoding="utf-8")


if __name__ == "__main__":
    main()
