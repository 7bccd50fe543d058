"""What a client would like an answer to be: the header Prefer (RFC 7240).

Pure. A preference is never a reason to refuse: one that nobody here knows is passed over, and a header that cannot be
read counts as none.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"  # noqa: S105 # a word of HTTP
_QUOTED: Final = r'"(?:[\t !#-\[\]-~\x80-\U0010ffff]|\\[\t -~\x80-\U0010ffff])*+"'
_VALUE: Final = rf"{_TOKEN}|{_QUOTED}"
_PARAMETER: Final = rf"{_TOKEN}(?:[ \t]*+=[ \t]*+(?:{_VALUE}))?+"
_PREFERENCE: Final = rf"({_TOKEN})(?:[ \t]*+=[ \t]*+({_VALUE}))?+(?:[ \t]*+;(?:[ \t]*+{_PARAMETER})?+)*+"
_ITEM: Final = re.compile(rf"[ \t]*+(?:{_PREFERENCE})?+[ \t]*+(?:,|\Z)")
"""An item of the list, with the comma after it. It may be empty (RFC 9110, section 5.6.1). Every quantifier keeps what
it took, so the time that a text takes grows with its length, whatever it says."""
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_preferences(values: Iterable[str]) -> Mapping[str, str]:
    """The preferences that the values of Prefer state, by their names in lower case; without a value: "". What a
    preference takes beside its value is left out.

    Of a preference that is stated more than once, the first counts. Nothing if the values, as one list, cannot be read.
    """
    text = ",".join(values)
    preferences: dict[str, str] = {}
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            return {}
        name, value = item.groups()
        if name:
            preferences.setdefault(name.lower(), _unquoted(value or ""))
        position = item.end()
    return preferences


def prefers_minimal(values: Iterable[str]) -> bool:
    """Whether the values of Prefer ask for `return=minimal`: for no more than what the client cannot know."""
    return parse_preferences(values).get("return", "").lower() == "minimal"


def _unquoted(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value
