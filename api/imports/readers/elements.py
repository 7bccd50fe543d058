"""XML as a tree of elements, without entities and within bounds. Pure."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final
from xml.parsers import expat

from engine.domain.errors import Fault, Unreadable

ELEMENTS_MAX: Final = 500_000
"""Elements of an XML file that are kept at the same time."""
DEPTH_MAX: Final = 50
TOKEN_BYTES_MAX: Final = 1_048_576
"""Bytes of one tag or comment of an XML file."""
_CHUNK_BYTES: Final = 65_536


class Element:
    """An element, by its name without a namespace, on its line of the file. `text`: its own, without white space around
    it."""

    __slots__ = ("attributes", "children", "line", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.name, self.attributes, self.line = name, attributes, line
        self.children: list[Element] = []
        self.text = ""

    def each(self, *path: str) -> Iterator["Element"]:
        """The elements at the path below this one."""
        for child in self.children:
            if child.name == path[0]:
                yield from child.each(*path[1:]) if len(path) > 1 else (child,)

    def first(self, *path: str) -> "Element | None":
        return next(self.each(*path), None)

    def said(self, *path: str) -> str:
        """The text of the first element at the path; empty if there is none."""
        found = self.first(*path)
        return "" if found is None else found.text

    @property
    def where(self) -> str:
        return f"line {self.line}, {self.name}"


class _Tree:
    """Builds elements. Those with a name `handed_out` go to `ready` instead of into the tree; those `skipped` nowhere,
    with all they contain."""

    def __init__(self, handed_out: tuple[str, ...], skipped: frozenset[str]) -> None:
        self.parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        self.ready: list[Element] = []
        self._handed_out, self._skipped = handed_out, skipped
        self._open: list[tuple[Element, list[str], int]] = []
        self._within_skipped = self._count = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(" ")[2]
        if self._within_skipped or name in self._skipped:
            self._within_skipped += 1
            return
        if self._count >= ELEMENTS_MAX or len(self._open) >= DEPTH_MAX:
            raise Unreadable(f"The file has more than {ELEMENTS_MAX:,} elements, or they are nested too deeply.")
        own = {key.rpartition(" ")[2]: value for key, value in attributes.items()} if attributes else attributes
        self._open.append((Element(name, own, self.parser.CurrentLineNumber), [], self._count))
        self._count += 1

    def _text(self, text: str) -> None:
        if self._open and not self._within_skipped:
            self._open[-1][1].append(text)

    def _end(self, _name: str) -> None:
        if self._within_skipped:
            self._within_skipped -= 1
            return
        element, texts, before = self._open.pop()
        element.text = "".join(texts).strip()
        if element.name in self._handed_out or not self._open:
            self._count = before
            self.ready.append(element)
        else:
            self._open[-1][0].children.append(element)


def elements(
    content: bytes, handed_out: tuple[str, ...] = (), skipped: frozenset[str] = frozenset()
) -> Iterator[Element]:
    """Each element with a name `handed_out`, as soon as it is read; at last the root, without these. Raises
    Unreadable."""
    tree = _Tree(handed_out, skipped)
    for _ in fed(tree.parser, (content[at : at + _CHUNK_BYTES] for at in range(0, len(content), _CHUNK_BYTES))):
        yield from tree.ready
        tree.ready.clear()


def fed(parser: expat.XMLParserType, chunks: Iterable[bytes]) -> Iterator[int]:
    """Feeds the parser a file. Yields the bytes fed after each chunk, and at the end. Raises Unreadable."""
    parser.StartDoctypeDeclHandler = _refuse_doctype
    size = 0
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
            if size - parser.CurrentByteIndex > TOKEN_BYTES_MAX:
                raise Unreadable(f"The file has a tag or comment of more than {TOKEN_BYTES_MAX:,} bytes.")
            size += len(chunk)
            yield size
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Unreadable(
            "The file is not XML.", [Fault(f"line {error.lineno}", expat.ErrorString(error.code))]
        ) from error
    except (LookupError, ValueError) as error:  # of the encoding that the file names
        raise Unreadable("The file is not XML in a known encoding.") from error
    yield size


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("The file declares a document type, and could name entities; such files are not read.")


def root_of(content: bytes, skipped: frozenset[str] = frozenset()) -> Element:
    """The whole file as one tree. Raises Unreadable."""
    *_, root = elements(content, skipped=skipped)
    return root


def begins_with(content: bytes, name: str) -> bool:
    """Whether the first element of the file, which begins with these bytes, has this name."""
    found: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = lambda its_name, _: found.append(its_name.rpartition(" ")[2])
    with suppress(expat.ExpatError, LookupError, ValueError):  # what came before it decides
        parser.Parse(content, False)
    return found[:1] == [name]
