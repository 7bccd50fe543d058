"""What users do wrong ends with a sentence that says what it was, a code that is not 0, and nothing put out."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.api.cli.commands import ARGUMENTS, COMMANDS
from tests.api.cli.conftest import Tallybook, said_here
from tests.running import Said, said
from tests.service import Season

NO_FILE = "The file cannot be read: No such file or directory."
NOT_UTF8 = "The file is not UTF-8 (at byte 5); save it as UTF-8."
COLUMNS = "The first line must name the columns: name, then any of tags, color, parent, key."


def one_sentence(ended: Said, code: int = 1) -> str:
    """What it says."""
    assert (ended.code, ended.out) == (code, ""), ended
    (sentence,) = ended.err.splitlines()
    assert sentence.endswith("."), sentence
    return sentence


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("standings nowhere Season", "There is no tournament 'nowhere'; `tallybook tournament list` shows them."),
        ("standings {slug} Nothing", "This tournament has no ranking 'Nothing'."),
        ("standings {slug} Season --around Nobody", "This tournament has no competitor 'Nobody'."),
        ("standings {slug} Season --at-sequence 999", "The log of this tournament ends at sequence "),
        ("standings {slug} Season --at-time 1999-01-01", "At that time this tournament did not exist yet"),
        ("explain {slug} Season Twin", "2 competitors are named 'Twin'; give the id of one: "),
        ("explain {slug} Season Ada --from 9 --to 8", "There is nothing to explain from event 9 to event 8; "),
        (
            "history {slug} Season --output /nowhere/a.csv",
            "/nowhere/a.csv cannot be written: No such file or directory.",
        ),
        ("tournament export {slug} --output /nowhere/a", "/nowhere/a cannot be written: No such file or directory."),
        ("digests --output /nowhere/a", "/nowhere/a cannot be written: No such file or directory."),
        ("verify --digests /nowhere/a", "/nowhere/a cannot be read: No such file or directory."),
        ("verify --state /nowhere/a", "/nowhere/a cannot be used as the state of a verification: "),
        ("prove {slug} 999", "The log of {slug} ends at sequence "),
        ("prove {slug} 0", "There is no event 0; the first one is 1."),
        ("token revoke 99", "There is no token 99 in use; `tallybook token list` shows all tokens."),
        ("webhook remove {slug} 99", "This tournament has no webhook 99."),
        ("void {slug} 999", "This tournament has no competition 999."),
        ("follow {slug} --after x", '--after takes the id of an event, a sequence, or "head".'),
        (
            "serve --allow-origin club.example",
            "'club.example' is not an origin: write scheme and host in small letters",
        ),
        ("set-aside {slug} 1", "Every event up to the head, "),
    ],
)
async def test_what_is_not_there_or_cannot_be_done(
    tallybook: Tallybook, season: Season, command: str, sentence: str
) -> None:
    slug = season.client.tournament
    for _ in range(2):
        await tallybook.done("competitor", "add", slug, "Twin")
    ended = await tallybook(*command.format(slug=slug).split())
    assert one_sentence(ended).startswith(sentence.format(slug=slug))


def numbers(kind: type) -> Iterator[tuple[str, str, bool]]:
    """Every argument that takes a number of this kind: its command, its name, and whether the command needs it."""
    for words, arguments in ARGUMENTS.items():
        for argument in arguments:
            if kind in (argument.hint, *get_args(argument.hint)):
                yield words, argument.name, bool(argument.required)


NOT_DECIMAL = ["1e3", " 1", "1 ", "１", "0x1", "1_000", "+1", "01", "-1", ".5", "5.", "1,5", "nan", "inf", "", "one"]  # noqa: RUF001
NOT_WHOLE = ["0.5", "2.0", "1e3", " 1", "1 ", "１", "0x1", "1_000", "+1", "01", "", "one"]  # noqa: RUF001


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("words", "name", "required"), list(numbers(int)))
def test_a_number_that_is_not_whole_is_refused(words: str, name: str, required: bool) -> None:
    for text in [*NOT_WHOLE, str(2**63), str(-(2**63) - 1)]:
        arguments = [*COMMANDS[words]]
        if not required:
            arguments.append(f"{name}={text}")
        elif name.startswith("--"):
            arguments[arguments.index(name) + 1] = text
        else:
            arguments[arguments.index("1")] = text
        ended = said_here(arguments)
        assert (ended.code, ended.out) == (2, "")
        expected = "a whole number, in digits only" if text in NOT_WHOLE else "a whole number of 64 bits"
        assert f"{text!r} must be {expected}." in ended.err


@pytest.mark.parametrize(("words", "name"), [(words, name) for words, name, _ in numbers(float)])
def test_a_number_that_is_none_is_refused(words: str, name: str) -> None:
    for text in [*NOT_DECIMAL, "9" * 16]:
        ended = said_here([*COMMANDS[words], f"{name}={text}"])
        assert (ended.code, ended.out) == (2, "")
        assert f"{text!r} must be a number such as 1.5, of digits and a point only." in ended.err


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("missing.csv", None, NO_FILE),
        ("some.txt", b"name\nAnn\n", "The file must be .csv or .ndjson, or - for standard input."),
        ("latin.csv", "name\nÄnn\n".encode("latin-1"), NOT_UTF8),
        ("utf16.csv", "name\nAnn\n".encode("utf-16"), "The file is not UTF-8 (at byte 0); save it as UTF-8."),
        ("empty.csv", b"", COLUMNS),
        ("tabs.csv", b"name\ttags\nAnn\ta\n", COLUMNS),
        ("twice.csv", b"name,name\nAnn,Bob\n", COLUMNS),
        ("open.csv", b'name\n"Ann\n', "The file is not CSV: unexpected end of data (line 2)."),
        ("-", b"", COLUMNS),
    ],
)
async def test_files_of_competitors_that_cannot_be_read(
    tallybook: Tallybook, season: Season, tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    command = ("competitor", "import", season.client.tournament, name if name == "-" else str(file))
    assert one_sentence(said(*command, "--database-url", tallybook.dsn)) == sentence


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@pytest.mark.parametrize("made", [False, True])
def test_a_demo_whose_port_is_taken_says_so_before_it_plays_anything(
    taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    """Where make was called, it names the variable of make."""
    monkeypatch.delenv("MAKELEVEL", raising=False)
    if made:
        monkeypatch.setenv("MAKELEVEL", "1")
    ended = said_here(["demo", "--port", taken, "--data-dir", str(tmp_path / "data")])
    option = "PORT=, as in make demo PORT=9000" if made else "--port"
    assert one_sentence(ended) == (
        f"Cannot listen on 127.0.0.1, port {taken}: Address already in use; choose another with {option}."
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["256.0.0.1", "192.0.2.1"])
def test_a_host_that_is_not_here_is_distinguished_from_a_port_that_is_taken(tmp_path: Path, host: str) -> None:
    ended = said_here(["demo", "--host", host, "--data-dir", str(tmp_path / "data")])
    sentence = one_sentence(ended)
    assert sentence.startswith(f"Cannot listen on {host}, port 8080: ")
    assert sentence.endswith("; choose another with --host.")


def test_a_port_of_metrics_that_is_taken_is_refused_with_its_option(dsn: str, taken: str) -> None:
    ended = said("worker", "--metrics-port", taken, "--database-url", dsn)
    assert one_sentence(ended) == (
        f"Cannot serve metrics on 127.0.0.1, port {taken}: Address already in use; "
        "choose another with --metrics-port or --metrics-host."
    )


@pytest.mark.parametrize("options", [[], ["--next", "--all"], ["--to", "3", "--next"]])
def test_a_reveal_without_an_end_is_refused_with_the_forms_of_one(options: list[str]) -> None:
    ended = said_here(["reveal", "cup", *options])
    assert (ended.code, ended.out) == (2, "")
    assert "Say how far: --to SEQUENCE, --next or --all." in " ".join(ended.err.replace("│", "").split())
