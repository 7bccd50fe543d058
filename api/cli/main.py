"""The tree of commands. The command line is the second front door; it uses the same desk as HTTP.

The tree names each command's function by its path and imports it when somebody runs the command, so `tallybook --help`
imports none. A command's help therefore stands here. The function's docstring has the help of its parameters.

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
from engine.domain.errors import LogDisproved, TallybookError

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of SIGINT."""


def _version() -> str:
    """Tallybook's version. Imports importlib.metadata, which is large, only now."""
    number: str = import_module("importlib.metadata").version("tallybook")
    return number


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
    help="Event-sourced rankings of tournaments.\n\n"
    "Competitors, competitions, rankings and unities are given by id or by name. A number is an id if that id "
    "exists, else a name. An ambiguous name is refused, and the refusal lists ids that have it.\n\n"
    "Every option has an environment variable: TALLYBOOK_DATA_DIR for --data-dir.",
    version=_version,
    help_format="plaintext",  # lists of commands need no more; importing rich.markdown takes 0.07 s
    config=[cyclopts.config.Env("TALLYBOOK_", command=False), _refuse_what_is_no_number],
    default_parameter=Parameter(show_env_var=False),  # the help of all commands says it once, above
    result_action="return_value",
)
_COMPETE: Final = Group("Compete", sort_key=1)
_WATCH: Final = Group("Watch", sort_key=2)
_AUDIT: Final = Group("Audit", sort_key=3)
_OPERATE: Final = Group("Operate", sort_key=4)
app["--help"].group = app["--version"].group = Group("Options", sort_key=5)
tournament = App(
    name="tournament",
    group=_COMPETE,
    help="Create, rename, list, publish, limit, export, import and delete tournaments.",
)
competitor = App(name="competitor", group=_COMPETE, help="Register, import, list, export and erase competitors.")
unity = App(name="unity", group=_COMPETE, help="Add unities to rankings, and change them.")
ranking = App(name="ranking", group=_COMPETE, help="Create, rename, order, hide, close and list rankings.")
participants = App(name="participants", group=_COMPETE, help="Add competitors to rankings, and remove them.")
classification = App(name="classification", group=_COMPETE, help="Show and declare how rankings are classified.")
points = App(name="points", group=_COMPETE, help="Add points, and undo them.")
competition = App(
    name="competition", group=_COMPETE, help="Add, import and list competitions, and record their results."
)
imports = App(name="import", group=_COMPETE, help="List imports of competitions, and undo them.")
token = App(name="token", group=_OPERATE, help="Create, list, limit and revoke tokens.")
webhook = App(name="webhook", group=_OPERATE, help="Add, list, resume and remove webhooks.")
erasures = App(
    name="erasures", group=_OPERATE, help="Keep a list of erasures outside the database, and apply it to a database."
)
_COMPETING: Final = (tournament, competitor, ranking, participants, unity, competition, imports, points, classification)
for part in (*_COMPETING, token, webhook, erasures):
    app.command(part)


def _command(
    part: App,
    function: str,
    *,
    name: str | None = None,
    group: Group | None = None,
    help: str,  # noqa: A002 - as cyclopts has it
) -> None:
    """Adds the command that runs `function`, a path of the form "module:name". Its own help is Markdown."""
    part.command(function, name=name, group=group, help=help, help_format="markdown")


# ── Tournaments ─────────────────────────────────────────────────────────────────────────────────────────

_command(
    tournament,
    "api.cli.tournaments:create_tournament",
    name="create",
    help="Create a tournament. Its slug, the name in its address, is made from NAME.",
)
_command(
    tournament,
    "api.cli.tournaments:rename_tournament",
    name="rename",
    help="Rename a tournament. Its slug and address stay the same.",
)
_command(
    tournament,
    "api.cli.tournaments:present_tournament",
    name="present",
    help="Change the time zone, language, colour and logo of a tournament. An empty text removes the value.",
)
_command(tournament, "api.cli.tournaments:list_tournaments", name="list", help="List all tournaments.")
_command(
    tournament,
    "api.cli.archives:export_tournament",
    name="export",
    help="""
    Write an archive of a tournament: its whole log as it is stored, with digests and idempotency keys, but no tokens.
    """,
)
_command(
    tournament,
    "api.cli.archives:import_tournament",
    name="import",
    help="""
    Import the tournament in an archive FILE into this database, with all its ids, times and digests.

    The command verifies everything first. It refuses an altered archive, and names the alteration. It also refuses an
    archive that no service can have written, and one with a tournament, slug or id that this database already has.
    Needs a login that owns the schema.
    """,
)
_command(
    tournament,
    "api.cli.deletion:delete",
    name="delete",
    help="""
    Delete a tournament: its log, tables, snapshots, keys and webhooks. Tokens for this tournament only are revoked.

    Export it first: the archive must match its current state. Without --yes the command only shows what would be
    deleted. The database keeps a permanent record of it: id, slug, name, last event, digest, and time of deletion. No
    other tournament can have its slug. `tallybook tournament import` restores it. Needs a login that owns the schema.
    """,
)
_command(
    tournament,
    "api.cli.publication:publish_tournament",
    name="publish",
    help="""
    Let the public see a tournament: names, colours, tags, rankings, and all points with their reasons. All past events
    become visible, unless `tallybook freeze` held them back before.
    """,
)
_command(
    tournament,
    "api.cli.publication:unpublish_tournament",
    name="unpublish",
    help="Hide a tournament from the public again.",
)
_command(
    tournament,
    "api.cli.quotas:quota_of_tournament",
    name="quota",
    help="""
    Limit the size of a tournament, and show how much of its quota is used.

    Omitted bounds stay. Beyond a bound, changes over HTTP and in the console are refused (409). The quota does not
    limit the command line. Every process applies a new quota within five seconds.
    """,
)


# ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────

_command(competitor, "api.cli.competitors:add_competitor", name="add", help="Register a competitor.")
_command(
    competitor,
    "api.cli.competitors:change_competitor",
    name="change",
    help="""
    Change a competitor. An omitted option changes nothing; an empty one clears the value: --parent ''.
    """,
)
_command(
    competitor,
    "api.cli.competitors:erase_competitor",
    name="erase",
    help="""
    Erase all names, tags and colours that a competitor ever had, and its parent. From then on it appears as #ID, also
    at past moments. Points and places stay. Names also stay in reasons and other texts, which the command lists, in
    backups, and with receivers of events. This cannot be undone. If the tournament has stopped, give the id.
    """,
)
_command(
    competitor,
    "api.cli.competitors:export_competitor",
    name="export",
    help="""
    Write everything that a tournament holds about a competitor, as one JSON document: its data, its current standings,
    and its part of each event that concerns it. Other competitors of these events are left out.
    """,
)
_command(
    competitor,
    "api.cli.competitors:import_competitors",
    name="import",
    help="""
    Register the competitors of a .csv or .ndjson FILE, in the order of the file.

    Columns: name, then optionally tags (separated by |), color and parent (a name or an id). CSV has commas or
    semicolons. If any line is wrong, the command names every wrong line and registers nobody.

    If Ctrl-C, a kill or a lost database interrupts the import, competitors already registered stay. Run the same
    command again: it registers the rest, and nobody twice.

    A line is done if an import into this tournament, of this file or another, registered a competitor with the same
    name, tags, color and parent, as often as the file has it. So you can add and correct lines, and import the file
    again. A line changed after its registration registers a new competitor, and the competitor of the old line stays.
    To register a namesake with the same tags, color and parent, use `tallybook competitor add`.
    """,
)
_command(
    competitor,
    "api.cli.competitors:list_competitors",
    name="list",
    help="List the competitors of a tournament in the order of their registration.",
)


# ── Rankings, their participants and unities ────────────────────────────────────────────────────────────

_command(
    ranking,
    "api.cli.rankings:create_ranking",
    name="create",
    help="Create a ranking of some competitors of the tournament, or of all.",
)
_command(ranking, "api.cli.rankings:rename_ranking", name="rename", help="Give a ranking another name.")
_command(ranking, "api.cli.rankings:describe_ranking", name="describe", help="Give a ranking another description.")
_command(
    ranking,
    "api.cli.rankings:close_ranking",
    name="close",
    help="""
    Close a ranking. Until it is reopened, its points, list, unities, classification, name and description cannot
    change. It can still be hidden and ordered.
    """,
)
_command(ranking, "api.cli.rankings:reopen_ranking", name="reopen", help="Reopen a closed ranking.")
_command(
    ranking,
    "api.cli.rankings:hide_ranking",
    name="hide",
    help="Hide a ranking from the public: at once, in past views too, and even during a freeze.",
)
_command(ranking, "api.cli.rankings:show_ranking", name="show", help="Let the public see a hidden ranking again.")
_command(
    ranking,
    "api.cli.rankings:order_rankings",
    name="order",
    help="Order the rankings. Lists and the board show them in this order, and the board opens with the first.",
)
_command(
    ranking,
    "api.cli.rankings:list_rankings",
    name="list",
    help="List the rankings of a tournament and their unities.",
)
_command(
    participants,
    "api.cli.rankings:add_participants",
    name="add",
    help="Add competitors to a ranking, at the end of its list. Competitors already in it stay where they are.",
)
_command(
    participants,
    "api.cli.rankings:remove_participants",
    name="remove",
    help="Remove competitors from a ranking. A competitor who is added again gets their points back.",
)
_command(unity, "api.cli.rankings:add_unity", name="add", help="Add a unity to a ranking.")
_command(
    unity,
    "api.cli.rankings:change_unity",
    name="change",
    help="Change the name of a unity, or which totals are better in it. The main unity can be changed too.",
)


# ── Competitions and points ─────────────────────────────────────────────────────────────────────────────

_command(
    competition,
    "api.cli.competitions:add_competition",
    name="add",
    help="Add a competition between some competitors, with or without its result.",
)
_command(
    competition,
    "api.cli.competitions:change_competition",
    name="change",
    help="""
    Change a competition. An omitted option changes nothing; an empty one clears the value: --winner ''.
    """,
)
_command(
    competition,
    "api.cli.competitions:record_result",
    name="result",
    help="Record the result of a competition, or correct it. This gives no points; `tallybook points add` does.",
)
_command(
    competition,
    "api.cli.competitions:import_competitions",
    name="import",
    help="""
    Add the competitions of a CSV FILE (with commas or semicolons), in the order of the file, each with the points that
    it gives in RANKING.

    Columns: date (in the tournament's time zone), participants (names or ids, separated by |) and score; then
    optionally group, location, and unities of the ranking by id or name, with the points of each participant,
    separated by |.

    A score of two numbers, such as 2:1 or ½:½, gives points in the main unity (3 for a win, 1 for a draw, 0 for a
    loss), unless there is a column for it, and goals in the unities that the options name. With more than two
    participants, the score is a performance for each, separated by |, and columns give the points.

    If any line is wrong, the command names every wrong line and imports nothing. If the import is interrupted, run the
    same command again: it imports the rest, and nothing twice.

    A line is done if an import into this ranking added a competition at the same time between the same participants, as
    often as the file has it, and that import was not undone. If its group, location, score or points differ now, it is
    refused: undo that import first, or correct that competition and leave the line out.

    The command prints the name of the import, for `tallybook import undo`.
    """,
)
_command(
    competition,
    "api.cli.competitions:list_competitions",
    name="list",
    help="List the competitions of a tournament in the order in which they were added.",
)
_command(
    points,
    "api.cli.rankings:add_points",
    name="add",
    help="Add points to competitors of a ranking, all in one event: for a competition, or as a free modification.",
)
_command(
    points,
    "api.cli.void:undo",
    name="undo",
    help="""
    Undo the points that an event added to a ranking, and those that its request added to other rankings. If the event
    undid points, redo them. `tallybook history` shows the events.
    """,
)
_command(
    imports,
    "api.cli.import_runs:list_imports",
    name="list",
    help="List the imports of competitions into a tournament, and whether they were undone.",
)
_command(
    imports,
    "api.cli.import_runs:undo",
    name="undo",
    help="""
    Undo an import: void the competitions that it added, and take back the points that it gave for others. A competition
    that also has points from elsewhere is kept. The command prints the ids of the voided competitions.

    If it is interrupted, run the same command again. The corrected file can be imported afterwards.
    """,
)


# ── Classifications ─────────────────────────────────────────────────────────────────────────────────────

_command(
    classification,
    "api.cli.classifications:show_classification",
    name="show",
    help="Show the classification of a ranking, now or at a past moment, and how it has moved.",
)
_command(
    classification,
    "api.cli.classifications:declare_classification",
    name="declare",
    help="""
    Declare the chain of criteria by which a ranking is classified.

    Example: `tallybook classification declare premier-league 8 points "goal difference" goals`, or, with what the tied
    competitors got among themselves, `points points:among=tied "goal difference:among=tied" "goal difference"`.
    """,
)


# ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────

_command(token, "api.cli.tokens:create_token", name="create", help="Create a token. Its text is shown only once.")
_command(
    token,
    "api.cli.tokens:list_tokens",
    name="list",
    help="List all tokens, revoked ones included, but never their texts.",
)
_command(
    token,
    "api.cli.tokens:revoke_token",
    name="revoke",
    help="Revoke a token. Within five seconds every process refuses it.",
)
_command(
    token,
    "api.cli.quotas:quota_of_token",
    name="quota",
    help="""
    Limit what a token may write in all tournaments combined, and show how much of its quota is used.

    Omitted bounds stay. Beyond a bound, changes are refused (429). In each tournament, counting begins with the first
    change that the token makes under the quota. Every process applies a new quota within five seconds.
    """,
)


# ── Webhooks ────────────────────────────────────────────────────────────────────────────────────────────

_command(
    webhook,
    "api.cli.webhooks:add_webhook",
    name="add",
    help="""
    Send the events of a tournament to a URL, one after another, as they are committed.

    Each event is sent as a signed POST; docs/WEBHOOKS.md says how a receiver verifies it. The secret is shown only
    once. Workers send the events.
    """,
)
_command(
    webhook,
    "api.cli.webhooks:list_webhooks",
    name="list",
    help="List the webhooks of a tournament, or all, with the last event sent and the last failure of each.",
)
_command(
    webhook,
    "api.cli.webhooks:send_test",
    name="test",
    help="""
    Send a webhook one test message now, from this machine, and show the reply.

    Nothing else changes. The command fails unless the receiver accepts the message.
    """,
)
_command(
    webhook,
    "api.cli.webhooks:remove_webhook",
    name="remove",
    help="Remove a webhook. No further events are sent to it.",
)
_command(
    webhook,
    "api.cli.webhooks:resume_webhook",
    name="resume",
    help="""
    Resume a webhook that is parked or that its receiver switched off. If it is waiting to resend an event, it resends
    at once.
    """,
)
_command(
    webhook,
    "api.cli.webhooks:rotate_secret",
    name="rotate",
    help="Give a webhook a new secret, which is shown only once. For a day, messages are signed with both.",
)


# ── Erasures ────────────────────────────────────────────────────────────────────────────────────────────

_command(
    erasures,
    "api.cli.erasures:keep",
    name="keep",
    help="""
    Append the erasures since the last run to FILE. Keep the file on another machine. It holds no names: a line has
    tournament, slug, competitor, and the times of registration and erasure. A file with other content is refused.
    """,
)
_command(
    erasures,
    "api.cli.erasures:apply",
    name="apply",
    help="""
    Repeat the erasures listed in FILE, after a restore or the import of an older archive.

    For each line the command says whether the competitor is erased now, was erased already, or is unknown here, or why
    the line cannot be read. It can be repeated. A competitor registered at another time is a different one, and stays.
    The command also erases from tournaments that have stopped.
    """,
)


# ── The past ────────────────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.past:standings",
    group=_WATCH,
    help="Show the standings of a ranking, now or at a past moment, and how they have moved.",
)
_command(
    app,
    "api.cli.past:form",
    group=_WATCH,
    help="Show the points of each competitor of a ranking in their last competitions, in the order of the standings.",
)
_command(
    app,
    "api.cli.leaders:leaders",
    group=_WATCH,
    help="""
    Show who led a ranking from when to when, how long each competitor led, and where the published leaders differ from
    the leaders by the dates of competitions.

    Competitors that share the first place all lead. Nobody leads before the first points, or without a result.
    """,
)
_command(
    app,
    "api.cli.expiring:expiring",
    group=_WATCH,
    help="Show what competitors will lose by a day or time because points expire: their points to defend.",
)
_command(
    app,
    "api.cli.past:history",
    group=_WATCH,
    help="List every delta of a ranking: its time, its cause, and the total and position it led to; and every "
    "declaration of its classification.",
)
_command(
    app,
    "api.cli.follow:follow",
    group=_WATCH,
    help="Print the past events of a tournament, then each new one as it is committed.",
)
_command(
    app,
    "api.cli.past:explain",
    group=_WATCH,
    help="Explain a competitor's place: deltas, competitions, and who passed whom.",
)
_command(
    app,
    "api.cli.past:chart",
    group=_WATCH,
    help="Draw positions and totals over time as an SVG picture, with a line for each competitor.",
)


# ── What counts ─────────────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.void:void",
    group=_COMPETE,
    help="""
    Void a competition: reverse every point it caused, in every ranking, in one step.

    Nothing is deleted: the points and their reversals stay in the history, linked to each other. The command is refused
    while one of the rankings is closed.
    """,
)
_command(
    app,
    "api.cli.void:unvoid",
    group=_COMPETE,
    help="Make a voided competition count again: its points are given back, except undone ones and those of "
    "struck competitors.",
)
_command(
    app,
    "api.cli.void:strike",
    group=_COMPETE,
    help="Strike competitors from a competition: it takes back all points it gave them, and can give them no more.",
)
_command(
    app,
    "api.cli.void:unstrike",
    group=_COMPETE,
    help="Make a competition count for struck competitors again.",
)
_command(
    app,
    "api.cli.void:what_if",
    group=_WATCH,
    help="Show how a ranking would look without some competitions or competitors.",
)


# ── What the public sees ────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.publication:freeze",
    group=_COMPETE,
    help="""
    Freeze the public view of a tournament. It stays as it is until `tallybook reveal`.

    Events that the public has seen stay visible. A tournament that is not published yet can be frozen at any event that
    the public has not seen.
    """,
)
_command(
    app,
    "api.cli.publication:reveal",
    group=_COMPETE,
    help="Reveal frozen events to the public: up to an event, through the next competition, or all of them.",
)


# ── Proofs and repairs ──────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.audit:verify",
    group=_AUDIT,
    help="""
    Check the log against its digests, and everything derived from it against the log.

    The command checks all tournaments or one, in a consistent state, and changes nothing. It prints a line for each
    difference, with tournament, sequence and field. If there are differences, the exit code is 3.
    """,
)
_command(
    app,
    "api.cli.audit:digests",
    group=_AUDIT,
    help="""
    Note the digests of all tournaments, or of one, in a file to keep elsewhere.

    The command appends a line for each tournament, with tournament, slug, sequence, digest, recorded_at and noted_at.
    """,
)
_command(
    app,
    "api.cli.audit:prove",
    group=_AUDIT,
    help="""
    Print a proof, as JSON, that an event is in the log.

    `tallybook check-proof` checks the proof without the database. The proof leads to the digest of the head or, with
    --to, of an earlier event, and takes 67 bytes for each block in between. If the log itself does not verify, the
    command prints nothing and the exit code is 3.
    """,
)
_command(
    app,
    "api.cli.audit:check_proof",
    group=_AUDIT,
    help="""
    Check a proof of `tallybook prove`, without a database, and print the proven event as JSON.

    It proves that the log with this digest holds this event. If it does not, the exit code is 3. check_proof.py, in the
    folder projections/verification, does the same: a page of Python that you can read before you run it.
    """,
)
_command(
    app,
    "api.cli.rebuild:rebuild_tables",
    group=_OPERATE,
    name="rebuild",
    help="""
    Rebuild the tables of all tournaments, or of one, from the log, and replace those that differ.

    The command prints a line for each difference. Tables that match the log are not touched. The service can keep
    running.
    """,
)
_command(
    app,
    "api.cli.setting_aside:set_event_aside",
    group=_OPERATE,
    name="set-aside",
    help="""
    Set aside the event that stopped a tournament because it cannot be folded.

    The event then has no effect, now or at any past moment. The command checks all digests of the log, and sets aside
    only the first event that cannot be folded. It deletes nothing, and cannot be undone. First find out whether a newer
    version of Tallybook can read the event.
    """,
)


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────

_command(
    app,
    "api.cli.service:serve",
    group=_OPERATE,
    help="Serve HTTP and keep the tables up to date, until SIGTERM or Ctrl-C.",
)
_command(
    app,
    "api.cli.service:worker",
    group=_OPERATE,
    help="Keep the tables up to date, without serving HTTP, until SIGTERM or Ctrl-C.",
)
_command(
    app,
    "api.cli.service:migrate",
    group=_OPERATE,
    help="Bring the schema up to date, repair rights and sequences. Needs a login that may create schemas and roles.",
)
_command(
    app,
    "api.cli.service:demo",
    group=_OPERATE,
    help="Play a season of rugby, print its table and some requests to try, and serve.",
)
_command(
    app,
    "api.cli.completion:completion",
    group=_OPERATE,
    help="""
    Print a script for shell completion of commands and options.

    Where to put it:

    - bash: `tallybook completion bash > ~/.local/share/bash-completion/completions/tallybook`
    - zsh: `tallybook completion zsh > "${fpath[1]}/_cyclopts_tallybook"`
    - fish: `tallybook completion fish > ~/.config/fish/completions/tallybook.fish`
    """,
)


# ── Running one ─────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Runs the command of `sys.argv` and exits with its code."""
    printing.in_any_encoding()
    try:
        _, parts, _ = app.parse_commands()
        if iscoroutinefunction(parts[-1].default_command):  # a command, and not --help, which logs nothing
            import_module("engine.process.telemetry").log_to()
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
