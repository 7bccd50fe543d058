"""Where a command's data goes: to standard output, or to a file that appears only when it is whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from api.cli import plain
from engine.domain.errors import Unacceptable


@contextmanager
def written_to(file: Path | None) -> Iterator[Callable[[str], None]]:
    """Yields a function that writes text to `file`, or to standard output if it is None.

    The file is written next to its final place and moved there at the end. So it is always complete, and an older file
    stays until then. Devices and pipes are written to directly. Raises Unacceptable if the file cannot be written.
    """
    if file is None:
        yield plain.write
        return
    in_place = file.exists() and not file.is_file()
    partial = file if in_place else file.with_name(f".{file.name}.partial")
    with _refusing(file):
        opened = partial.open("w", encoding="utf-8", newline="")

    def write(text: str) -> None:
        with _refusing(file):
            opened.write(text)

    whole = False
    try:
        yield write
        with _refusing(file):
            opened.close()
            if not in_place:
                partial.replace(file)
        whole = True
    finally:
        if not whole:
            with suppress(OSError):
                opened.close()
            if not in_place:
                partial.unlink(missing_ok=True)


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unacceptable(f"{file} cannot be written: {error.strerror}.") from error
