"""Runs commands. The command line is the second front door; it uses the same desk as HTTP.

Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 refused with a reason, 2 wrong
usage, 3 disproved (`verify`, `prove` or `check-proof` found a difference), 130 interrupted.
"""

import re
import sys
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Final, get_args

import cyclopts
from cyclopts import App, ArgumentCollection, Group, Parameter

from api.cli import printing
from api.cli.tree import ABOUT, GROUPS, PARTS, TREE
from engine.domain.errors import LogDisproved, TallybookError
from engine.process.version import version

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of SIGINT."""


_WHOLE: Final = re.compile("0|-?[1-9][0-9]*")
_DECIMAL: Final = re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
_OF_64_BITS: Final = range(-(2**63), 2**63)


def _refuse_what_is_no_number(_app: App, _words: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuses malformed numbers, and whole numbers of more than 64 bits. Cyclopts would round 0.5 to 0."""
    for argument in arguments:
        kinds = (argument.hint, *get_args(argument.hint))
        if int not in kinds and float not in kinds:
            continue
        for token in argument.tokens:
            if float in kinds and not _DECIMAL.fullmatch(token.value):
                kind = "a number such as 1.5, of digits and a point only"
            elif int in kinds and not _WHOLE.fullmatch(token.value):
                kind = "a whole number, in digits only"
            elif int in kinds and (len(token.value) > 20 or int(token.value) not in _OF_64_BITS):
                kind = "a whole number of 64 bits"
            else:
                continue
            named = "" if token.keyword else f"{argument.name}: "
            message = f"{named}{token.value!r} must be {kind}."
            raise cyclopts.CoercionError(message, argument=argument, token=token)


app = App(
    name="tallybook",
    help=ABOUT,
    version=version,
    help_format="plaintext",  # lists of commands need no more; importing rich.markdown takes 0.07 s
    config=[cyclopts.config.Env("TALLYBOOK_", command=False), _refuse_what_is_no_number],
    default_parameter=Parameter(show_env_var=False),  # the help of all commands says it once, above
    result_action="return_value",
)
_GROUPS: Final = {name: Group(name, sort_key=place) for place, name in enumerate(GROUPS)}
app["--help"].group = app["--version"].group = _GROUPS["Options"]
for _name, (_group, _about) in PARTS.items():
    app.command(App(name=_name, group=_GROUPS[_group], help=_about))
for _entry in TREE:
    *_part, _name = _entry.words.split()
    _above = app[_part[0]] if _part else app
    _function = f"api.cli.{_entry.function}"
    _above.command(
        _function, name=_name, group=_entry.group and _GROUPS[_entry.group], help=_entry.help, help_format="markdown"
    )


# ── Running one ─────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Runs the command of `sys.argv` and exits with its code."""
    printing.in_any_encoding()
    try:
        _, parts, _ = app.parse_commands()
        if iscoroutinefunction(parts[-1].default_command):  # a command, and not --help, which logs nothing
            import_module("engine.process.telemetry").log_to()
            import_module("engine.process.collector").begin()
        app(exit_on_error=False)
    except cyclopts.CycloptsError:
        sys.exit(2)
    except TallybookError as error:
        printing.refused(error)
        sys.exit(code_of(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def code_of(error: TallybookError) -> int:
    """The exit code of a command that raised this."""
    match error.code:
        case LogDisproved.code:
            return 3
        case "interrupted":  # the code of `Interrupted` in api/imports, without importing that
            return INTERRUPTED
    return 1
