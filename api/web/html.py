"""HTML, safe by construction: text becomes HTML only here, and is escaped when it does.

A template engine escapes everything that its author does not exempt. This module has no exemptions, and mypy checks it.
It has only what our few pages need. `Html` comes only from `element` and `joined`. Anything else is text: a name that
contains `<script>` is shown as it was written.
"""

from collections.abc import Iterable
from html import escape
from typing import Final

HTML_TYPE: Final = "text/html; charset=utf-8"
_VOID: Final = frozenset({"br", "circle", "col", "hr", "img", "input", "link", "meta", "path", "rect", "wbr"})
"""Elements without content."""
_RAW: Final = frozenset({"script", "style"})
"""Elements whose text is not escaped by the rules of HTML, so they may have none here."""


class Html(str):
    """Text that is HTML. Do not call it: use `element`."""

    __slots__ = ()


Child = Html | str | int | None
"""The content of an element. Text is escaped; None is left out."""
Value = str | int | bool | None
"""The value of an attribute. True: without a value; False and None: no such attribute."""


def element(name: str, /, *children: Child, **attributes: Value) -> Html:
    """The element, with its children in order. An attribute `class_` is written class, `aria_label` aria-label.

    Raises ValueError for a script or style with content.
    """
    if name in _RAW and children:
        raise ValueError(f"a {name} of ours comes from a file")
    start = f"<{name}{''.join([_attribute(key, value) for key, value in attributes.items()])}>"
    return Html(start) if name in _VOID else Html(f"{start}{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """The children, one after another."""
    return Html("".join([_escaped(child) for child in children]))


def document(head: Html, body: Html, *, language: str = "en") -> bytes:
    """A whole page, encoded."""
    return f"<!DOCTYPE html>{element('html', element('head', head), body, lang=language)}".encode()


def _escaped(child: Child) -> str:
    if child is None:
        return ""
    return child if isinstance(child, Html) else escape(str(child))


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
