"""A history for the checkers of others.

Porcupine (github.com/anishathalye/porcupine) takes a slice of `porcupine.Operation`. Its fields are those of the
objects here, so `json.Unmarshal` reads them. Input holds action and value, Output what was shown, as `sequential.py`
means them. An operation of unknown outcome ends after all others, with the Output null, which a model must accept.

Elle (github.com/jepsen-io/elle; elle-cli reads files) takes a history of transactions, as EDN. An append to a list, and
a read of it, are transactions of one step, for its model `list-append`. Each client is a process; after an operation of
unknown outcome it continues as another process, as in Jepsen's histories.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from tests.outside.operations import Operation


def porcupine(operations: Iterable[Operation]) -> bytes:
    """The operations on one object, as JSON."""
    every = sorted(operations, key=lambda one: one.call)
    after_all = max([one.end or one.call for one in every], default=0) + 1
    return msgspec.json.encode(
        [
            {
                "ClientId": one.client,
                "Input": {"action": one.action, "value": one.value},
                "Call": one.call,
                "Output": one.shown,
                "Return": after_all if one.end is None else one.end,
            }
            for one in every
        ]
    )


def elle(operations: Iterable[Operation]) -> str:
    """Operations on lists, as EDN: a map a line, in the order of time."""
    lines: list[tuple[int, str]] = []
    keys: dict[str, int] = {}
    lives: dict[int, int] = {}
    for one in sorted(operations, key=lambda one: one.call):
        key = keys.setdefault(one.object, len(keys) + 1)
        process = one.client + lives.get(one.client, 0) * _CLIENTS_MAX
        asked = f"[:append {key} {one.value}]" if one.action == "append" else f"[:r {key} nil]"
        lines.append((one.call, _line(process, ":invoke", asked, one.call)))
        if one.end is None:
            lives[one.client] = lives.get(one.client, 0) + 1
            lines.append((one.call + 1, _line(process, ":info", asked, one.call + 1)))
        else:
            done = asked if one.action == "append" else f"[:r {key} {_vector(one.shown)}]"
            lines.append((one.end, _line(process, ":ok", done, one.end)))
    ordered = sorted(lines, key=lambda line: line[0])
    return "".join(line.replace("{", f"{{:index {n}, ", 1) + "\n" for n, (_, line) in enumerate(ordered))


_CLIENTS_MAX = 1_000


def _line(process: int, kind: str, step: str, time: int) -> str:
    return f"{{:type {kind}, :f :txn, :process {process}, :time {time}, :value [{step}]}}"


def _vector(numbers: Any) -> str:
    return f"[{' '.join(map(str, numbers))}]"
