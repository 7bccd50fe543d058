"""The command line: the other front door, through the same desk. Here is the tree of its commands.

A command is named by the path of its function, which is imported when the command is asked for: so `tallybook --help`
imports none of them. That is why its help stands here; the help of its parameters is in the function's docstring.

Data goes to standard output, talk to standard error. Exit codes: 0 done, 1 refused with a reason, 2 usage,
3 what is stored was disproved: `verify` or `prove` found a difference, 130 interrupted.
"""

import sys
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Final

import cyclopts
from cyclopts import App

from api.cli import printing
from engine.domain.errors import LogDisproved, TallybookError

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""


def _version() -> str:
    """Tallybook's version; what finds it is large, and imported when it is asked for."""
    number: str = import_module("importlib.metadata").version("tallybook")
    return number


app = App(
    name="tallybook",
    help="Event-sourced rankings of tournaments.",
    version=_version,
    help_format="plaintext",  # lists of commands need no more; importing rich.markdown takes 0.07 s
    config=cyclopts.config.Env("TALLYBOOK_", command=False),
    result_action="return_value",
)
tournament = App(name="tournament", help="Open and list tournaments.")
competitor = App(name="competitor", help="Register, import and list competitors.")
unity = App(name="unity", help="Add unities to rankings.")
ranking = App(name="ranking", help="Close, reopen and list rankings.")
token = App(name="token", help="Make, list and revoke tokens.")
for part in (tournament, competitor, unity, ranking, token):
    app.command(part)


def _command(part: App, function: str, *, name: str | None = None, help: str) -> None:  # noqa: A002 - as cyclopts has it
    """Adds the command that runs `function`, a path of the form "module:name". Its own help is Markdown."""
    part.command(function, name=name, help=help, help_format="markdown")


# ── Tournaments ─────────────────────────────────────────────────────────────────────────────────────────

_command(
    tournament,
    "api.cli.tournaments:create_tournament",
    name="create",
    help="Open a tournament. Its slug, the name in its address, is made from NAME.",
)
_command(tournament, "api.cli.tournaments:list_tournaments", name="list", help="List all tournaments.")


# ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────

_command(competitor, "api.cli.competitors:add_competitor", name="add", help="Register a competitor.")
_command(
    competitor,
    "api.cli.competitors:import_competitors",
    name="import",
    help="""
    Register the competitors of a .csv or .ndjson FILE, in its order.

    Columns: name, then optionally tags (separated by |), color, parent (a name or id). Where a line is wrong, every
    such line is named and nobody is registered.

    Where it is cut off, by Ctrl-C, a kill or a lost database, those who are registered stay, and the same command again
    registers the others: nobody twice. A line counts as registered if an import into this tournament, of this file or
    another, has registered one of the same name, tags, color and parent; lines of a file that say the same are as many
    competitors. So lines may be added and corrected, and the file imported again; but whoever was registered by a line
    that says something else now stays as they are, beside whom the new line registers. Somebody else of the same name,
    tags, color and parent is registered by `tallybook competitor add`.
    """,
)
_command(
    competitor,
    "api.cli.competitors:list_competitors",
    name="list",
    help="List the competitors of a tournament in the order of their registration.",
)


# ── Rankings and unities ────────────────────────────────────────────────────────────────────────────────

_command(unity, "api.cli.rankings:add_unity", name="add", help="Add a unity to a ranking.")
_command(
    ranking,
    "api.cli.rankings:close_ranking",
    name="close",
    help="Close a ranking: every change is refused until it is reopened.",
)
_command(ranking, "api.cli.rankings:reopen_ranking", name="reopen", help="Reopen a closed ranking.")
_command(
    ranking,
    "api.cli.rankings:list_rankings",
    name="list",
    help="List the rankings of a tournament and their unities.",
)


# ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────

_command(token, "api.cli.tokens:create_token", name="create", help="Make a token and show it, once.")
_command(
    token,
    "api.cli.tokens:list_tokens",
    name="list",
    help="List all tokens, the revoked ones too; never their texts.",
)
_command(
    token,
    "api.cli.tokens:revoke_token",
    name="revoke",
    help="Take a token out of use, within five seconds everywhere.",
)


# ── The past ────────────────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.past:standings",
    help="Show who stands where in a ranking, or who stood where at a moment of the past.",
)
_command(
    app,
    "api.cli.past:history",
    help="Tell every delta of a ranking: when, by whom, why, and what it led to.",
)
_command(
    app,
    "api.cli.past:explain",
    help="Tell how the competitor with the id COMPETITOR came to where they stand: deltas, competitions, who passed "
    "whom.",
)
_command(
    app,
    "api.cli.past:chart",
    help="Draw positions and totals over time as an SVG picture, a line for each competitor.",
)


# ── What counts ─────────────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.void:void",
    help="""
    Void a competition: every point it caused, in whichever ranking, is reversed in one step.

    Nothing is deleted: the points and their reversals stay in the history, linked to each other. It is refused while
    one of the rankings is closed.
    """,
)
_command(
    app,
    "api.cli.void:unvoid",
    help="Have a voided competition count again: the reversals of its points are reversed.",
)
_command(
    app,
    "api.cli.void:what_if",
    help="Show how a ranking would stand, had some competitions or competitors not been.",
)


# ── Proofs and repairs ──────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.audit:verify",
    help="""
    Hold the log against its digests, and everything that is made of it against the log.

    Of one moment, of all tournaments or of one; nothing is changed. Each difference is a line that names tournament,
    sequence and field; with any, the exit code is 3.
    """,
)
_command(
    app,
    "api.cli.audit:digests",
    help="""
    Note the heads of all tournaments, or of one, in a file to be kept elsewhere.

    Appends a line for each: tournament, slug, sequence, digest, recorded_at, noted_at.
    """,
)
_command(
    app,
    "api.cli.audit:prove",
    help="""
    Print a proof, as JSON, that an event is in the log; docs/audit/check_proof.py checks it without the database.

    It leads to the digest of the head, and takes 67 bytes for each block in between. Where the log itself does not
    verify, nothing is printed and the exit code is 3.
    """,
)
_command(
    app,
    "api.cli.rebuild:rebuild_tables",
    name="rebuild",
    help="""
    Fold the tables of a tournament, or of all, anew from the log; tell what was different, and replace it.

    The service goes on meanwhile. Tables that are as the log has them are left as they are.
    """,
)
_command(
    app,
    "api.cli.setting_aside:set_event_aside",
    name="set-aside",
    help="""
    Set aside the event that a stopped tournament cannot be folded past. It has no effect any more, at no moment.

    Only the first event that cannot be folded can be set aside, after all digests of the log have been checked.
    Nothing is deleted, and it cannot be undone. First look whether a newer version of Tallybook can read the event.
    """,
)


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────

_command(app, "api.cli.service:serve", help="Answer the interface over HTTP until SIGTERM or Ctrl-C.")
_command(app, "api.cli.service:worker", help="Keep the tables, and nothing else, until SIGTERM or Ctrl-C.")
_command(
    app,
    "api.cli.service:migrate",
    help="Bring the database's schema up to date. Needs a login that may create schemas and roles.",
)
_command(
    app,
    "api.cli.service:demo",
    help="Play a season of rugby, show its table and how to ask for it, and serve.",
)


# ── Running one ─────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Runs the command of `sys.argv` and exits with its code."""
    printing.in_any_encoding()
    try:
        _, parts, _ = app.parse_commands()
        if iscoroutinefunction(parts[-1].default_command):  # a command, and not --help, which logs nothing
            import_module("engine.process.telemetry").log_json()
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
        case "interrupted":  # `Interrupted` of imports.py, which is not imported for a name
            return INTERRUPTED
    return 1
