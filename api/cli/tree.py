"""The tree of commands: their words and help, as data that `--help` prints without importing what runs them.

The tree names each command's function by its path; it is imported when somebody runs the command. A command's help
therefore stands here. The function's docstring has the help of its parameters.
"""

from typing import Final, NamedTuple

ABOUT: Final = (
    "Event-sourced rankings of tournaments.\n\n"
    "Competitors, competitions, rankings and unities are given by id or by name. A number can be either: 4 is refused "
    "if it is the id of one and the name of another, and id:4 or name:4 says which is meant; key:4 is the competitor "
    "or competition to which the organiser gave this key. A name shared by several is refused, too, and the refusal "
    "lists their ids.\n\n"
    "Every option has an environment variable: TALLYBOOK_DATA_DIR for --data-dir."
)
GROUPS: Final = ("Compete", "Watch", "Audit", "Operate", "Options")
"""The groups of commands, in the order in which the help lists them."""
OPTIONS_OF_ALL: Final = {"--help (-h)": "Display this message and exit.", "--version": "Display application version."}
PARTS: Final = {
    "tournament": ("Compete", "Create, rename, list, publish, limit, export, import and delete tournaments."),
    "competitor": ("Compete", "Register, import, list, export and erase competitors."),
    "ranking": ("Compete", "Create, rename, order, hide, close and list rankings."),
    "participants": ("Compete", "Add competitors to rankings, and remove them."),
    "unity": ("Compete", "Add unities to rankings, and change them."),
    "competition": ("Compete", "Add, import and list competitions, and record their results."),
    "import": ("Compete", "List imports of competitions, and undo them."),
    "points": ("Compete", "Add points, and undo them."),
    "classification": ("Compete", "Show and declare how rankings are classified."),
    "scoring": ("Compete", "Show and declare what results give in rankings."),
    "token": ("Operate", "Create, list and revoke tokens."),
    "webhook": ("Operate", "Add, list, resume and remove webhooks."),
    "erasures": ("Operate", "Keep a list of erasures outside the database, and apply it to a database."),
}


class Entry(NamedTuple):
    """A command: its words, the function that runs it, as "module:name" in this folder, and its help, in Markdown."""

    words: str
    function: str
    help: str
    group: str | None = None


TREE: Final = (
    # ── Tournaments ─────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "tournament create",
        "tournaments:create_tournament",
        "Create a tournament. Its slug, the name in its address, is made from NAME.",
    ),
    Entry(
        "tournament rename",
        "tournaments:rename_tournament",
        "Rename a tournament. Its slug and address stay the same.",
    ),
    Entry(
        "tournament present",
        "tournaments:present_tournament",
        "Change the time zone, language, colour and logo of a tournament. An empty text removes the value.",
    ),
    Entry(
        "tournament list",
        "tournaments:list_tournaments",
        "List all tournaments, also those deleted over HTTP whose log is still there.",
    ),
    Entry(
        "tournament archive",
        "tournaments:archive_tournament",
        "Archive a tournament: everything in it can be read, and nothing changed.",
    ),
    Entry(
        "tournament restore",
        "tournaments:restore_tournament",
        "Restore a tournament that was archived, or deleted over HTTP. The latter is unpublished.",
    ),
    Entry(
        "tournament export",
        "archives:export_tournament",
        """
        Write an archive of a tournament: its whole log as it is stored, with digests and idempotency keys, but no
        tokens.
        """,
    ),
    Entry(
        "tournament import",
        "archives:import_tournament",
        """
        Import the tournament in an archive FILE into this database, with all its ids, times and digests.

        The command verifies everything first. It refuses an altered archive, and names the alteration. It also refuses
        an archive that no service can have written, and one with a tournament, slug or id that this database already
        has. Needs a login that owns the schema.
        """,
    ),
    Entry(
        "tournament delete",
        "deletion:delete",
        """
        Delete a tournament: its log, tables, snapshots, keys and webhooks. Tokens for this tournament only are revoked.

        Export it first: the archive must match its current state. Without --yes the command only shows what would be
        deleted. The database keeps a permanent record of it: id, slug, name, last event, digest, and time of deletion.
        No other tournament can have its slug. `tallybook tournament import` restores it. Needs a login that owns the
        schema.
        """,
    ),
    Entry(
        "tournament publish",
        "publication:publish_tournament",
        """
        Let the public see a tournament: names, colours, tags, rankings, and all points with their reasons. All past
        events become visible, unless `tallybook freeze` held them back before.
        """,
    ),
    Entry(
        "tournament unpublish",
        "publication:unpublish_tournament",
        "Hide a tournament from the public again.",
    ),
    Entry(
        "tournament quota",
        "quotas:quota_of_tournament",
        """
        Show the size of a tournament, and limit it.

        Omitted bounds stay. Beyond a bound, changes over HTTP and in the console are refused (409). The quota does not
        limit the command line. Every process applies a new quota within five seconds.
        """,
    ),
    # ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "competitor add",
        "competitors:add_competitor",
        "Register a competitor.",
    ),
    Entry(
        "competitor change",
        "competitors:change_competitor",
        """
        Change a competitor. An omitted option changes nothing; an empty one clears the value: --parent ''.
        """,
    ),
    Entry(
        "competitor erase",
        "competitors:erase_competitor",
        """
        Erase all names, tags, colours and keys that a competitor ever had, and its parent. From then on it appears as
        #ID, also at past moments. Points and places stay. Names also stay in reasons and other texts, which the command
        lists, in backups, and with receivers of events. This cannot be undone. If the tournament has stopped, give the
        id.
        """,
    ),
    Entry(
        "competitor replace",
        "competitors:replace_competitor",
        """
        Replace a competitor that was registered twice BY the other registration: in its competitions, whose results
        then give the other one the points, in the rankings that it is in, and as a parent. Its key goes to the other
        one, if that has none. Then it is erased. Points that somebody gave it by hand stay with it, and are listed.

        If both took part in a competition, this is refused. If it is interrupted, run the same command again, with
        ids.
        """,
    ),
    Entry(
        "competitor withdraw",
        "competitors:withdraw_competitor",
        """
        Take out a competitor that withdrew: competitions of two are voided, so that they count for nobody, it is struck
        from competitions of more, and it leaves the open rankings. --dry-run shows who would move. With --keep-results,
        only competitions that it has not played are voided.
        """,
    ),
    Entry(
        "competitor export",
        "competitors:export_competitor",
        """
        Write everything that a tournament holds about a competitor, as one JSON document: its data, its current
        standings, and its part of each event that concerns it. Other competitors of these events are left out.
        """,
    ),
    Entry(
        "competitor import",
        "imports:import_competitors",
        """
        Register the competitors of a .csv or .ndjson FILE, in the order of the file.

        Columns: name, then optionally tags (separated by |), color, parent (a name, id or key) and key. CSV has commas
        or semicolons. If any line is wrong, the command names every wrong line and registers nobody.

        If Ctrl-C, a kill or a lost database interrupts the import, competitors already registered stay. Run the same
        command again: it registers only the rest.

        A line is done if an import into this tournament, of this file or another, registered a competitor with the same
        name, tags, color and parent, as often as the file has it. So you can add and correct lines, and import the file
        again. A line changed after its registration registers a new competitor, and the competitor of the old line
        stays. To register a namesake with the same tags, color and parent, use `tallybook competitor add`. A line with
        a key updates the competitor that has this key; empty fields change nothing.
        """,
    ),
    Entry(
        "competitor list",
        "competitors:list_competitors",
        "List the competitors of a tournament in the order of their registration.",
    ),
    # ── Rankings, their participants and unities ────────────────────────────────────────────────────────────
    Entry(
        "ranking create",
        "rankings:create_ranking",
        "Create a ranking of some competitors of the tournament, or of all.",
    ),
    Entry(
        "ranking rename",
        "rankings:rename_ranking",
        "Give a ranking another name.",
    ),
    Entry(
        "ranking describe",
        "rankings:describe_ranking",
        "Give a ranking another description.",
    ),
    Entry(
        "ranking zones",
        "rankings:set_zones",
        """
        Declare what places of a ranking's table lead to: promotion, play-off, relegation, or neutral ones. Places from
        the bottom are negative.
        """,
    ),
    Entry(
        "ranking close",
        "rankings:close_ranking",
        """
        Close a ranking. Until it is reopened, its points, list, unities, classification, name and description cannot
        change. It can still be hidden and ordered.
        """,
    ),
    Entry(
        "ranking reopen",
        "rankings:reopen_ranking",
        "Reopen a closed ranking.",
    ),
    Entry(
        "ranking hide",
        "rankings:hide_ranking",
        "Hide a ranking from the public: at once, in past views too, and even during a freeze.",
    ),
    Entry(
        "ranking show",
        "rankings:show_ranking",
        "Let the public see a hidden ranking again.",
    ),
    Entry(
        "ranking order",
        "rankings:order_rankings",
        "Order the rankings. Lists and the board show them in this order, and the board opens with the first.",
    ),
    Entry(
        "ranking list",
        "rankings:list_rankings",
        "List the rankings of a tournament and their unities.",
    ),
    Entry(
        "participants add",
        "rankings:add_participants",
        "Add competitors to a ranking, at the end of its list. Competitors already in it stay where they are.",
    ),
    Entry(
        "participants remove",
        "rankings:remove_participants",
        "Remove competitors from a ranking. A competitor who is added again gets their points back.",
    ),
    Entry(
        "unity add",
        "rankings:add_unity",
        "Add a unity to a ranking.",
    ),
    Entry(
        "unity change",
        "rankings:change_unity",
        "Change the name of a unity, or which totals are better in it. The main unity can be changed too.",
    ),
    # ── Competitions and points ─────────────────────────────────────────────────────────────────────────────
    Entry(
        "competition add",
        "competitions:add_competition",
        "Add a competition between some competitors, with or without its result.",
    ),
    Entry(
        "competition change",
        "competitions:change_competition",
        """
        Change a competition. An omitted option changes nothing; an empty one clears the value: --winner ''.
        """,
    ),
    Entry(
        "competition record",
        "competitions:record_competition",
        """
        Record a competition with its result in one step: the competition with this --key is changed, or else a new one
        is added. Prints its id.
        """,
    ),
    Entry(
        "competition result",
        "competitions:record_result",
        """
        Record the result of a competition, or correct it. Rankings with scorings give points for it; in others,
        `tallybook points add` does. --dry-run shows who would move.
        """,
    ),
    Entry(
        "competition history",
        "competitions:show_results",
        "List the results that a competition had, from the first to the current one.",
    ),
    Entry(
        "competition import",
        "imports:import_competitions",
        """
        Add the competitions of a CSV FILE (with commas or semicolons), in the order of the file, each with the points
        that it gives in RANKING.

        Columns: date (in the tournament's time zone; such as 2026-08-01 15:30 or 01/08/2026), participants (names or
        ids, separated by |) and score; then optionally winner (a participant, named as there, where the score does not
        say who won), key, group, round (a number or a name), scale, location, and unities of the ranking by id or name,
        with the points of each participant, separated by |.

        What a score such as 2:1 or ½:½ gives is declared by the scorings of the ranking (`tallybook scoring show`).
        With more than two participants, the score is a performance for each, separated by |. The points of a unity
        that has a column are those in the column. Without a score, the competition is a fixture, which a later file
        with the score completes.

        If any line is wrong, the command names every wrong line and imports nothing. If the import is interrupted, run
        the same command again: it imports only the rest.

        A line is done if an import into this ranking added a competition of the same group and round at the same time,
        as typed, between the same participants, as often as the file has it, and that import was not undone. If its
        location, score, winner or points differ now, it is refused: undo that import first, or correct that competition
        and leave the line out. A line with a key is found by its key alone, and updates all but the participants of the
        competition that has it; empty fields change nothing.

        A line that looks like another competition of the same two within two days, or has a result and a later day than
        today, is imported only with --yes.

        The command prints the name of the import, for `tallybook import undo`.
        """,
    ),
    Entry(
        "fixtures",
        "imports:fixtures",
        """
        Add the fixtures of a league: every competitor of RANKING meets every other once, or --twice, in rounds from DAY
        on, at home and away in turn. With an odd number, one has no match in each round.

        They are imported as the file of competitions that they are, so `tallybook import undo` takes them back, and a
        later file with the scores completes them. --dry-run lists them, with who has no match.
        """,
        group="Compete",
    ),
    Entry(
        "bring",
        "bring:bring",
        """
        Bring the FILE of another program into a tournament: competitors, rankings with their scoring, and competitions.

        It reads spreadsheets whose rows are competitions (XLSX, ODS, CSV), IOF XML 3.0, CLICS event feeds, srk, LENEX,
        TRF and football.json. It first says what it would make and leave out, then asks.

        Bring the next state of the same file to correct and add: competitors and competitions are known by their ids in
        the file, rankings by their names. What the file leaves empty stays. If it is interrupted, run it again.
        """,
        group="Compete",
    ),
    Entry(
        "ranking export",
        "bring:write",
        """
        Write the standings of a ranking as a file that other programs read, and `bring` as well.

        All its totals must come from results that such a file can have: those of one contest, or of games in rounds.
        What is not kept here, such as ratings and tries at unsolved problems, is left out.
        """,
    ),
    Entry(
        "competition list",
        "competitions:list_competitions",
        "List the competitions of a tournament in the order in which they were added.",
    ),
    Entry(
        "points add",
        "rankings:add_points",
        "Add points to competitors of a ranking, all in one event: for a competition, or as a free modification.",
    ),
    Entry(
        "points undo",
        "void:undo",
        """
        Undo the points that an event added to a ranking, and those that its request added to other rankings. If the
        event undid points, redo them. `tallybook history` shows the events.
        """,
    ),
    Entry(
        "import list",
        "imports:list_imports",
        "List the imports of competitions into a tournament, and whether they were undone.",
    ),
    Entry(
        "import undo",
        "imports:undo",
        """
        Undo an import: void the competitions that it added, and take back the points that it gave for others. A
        competition that also has points from elsewhere is kept. The command prints the ids of the voided competitions.

        If it is interrupted, run the same command again. The corrected file can be imported afterwards.
        """,
    ),
    # ── Classifications ─────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "classification show",
        "classifications:show_classification",
        "Show the classification of a ranking, now or at a past moment, and how it has moved.",
    ),
    Entry(
        "classification declare",
        "classifications:declare_classification",
        """
        Declare the chain of criteria by which a ranking is classified.

        Example: `tallybook classification declare premier-league 8 points "goal difference" goals`, or, with what the
        tied competitors got among themselves, `points points:among=tied "goal difference:among=tied" "goal
        difference"`.
        """,
    ),
    # ── Scorings ────────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "scoring show",
        "scorings:show_scoring",
        "Show what results give in a ranking, and which results give nothing.",
    ),
    Entry(
        "scoring declare",
        "scorings:declare_scoring",
        """
        Declare what results give in a ranking. Earlier results are scored again; --dry-run shows who would move.

        Example: `tallybook scoring declare premier-league Table football`
        """,
    ),
    # ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "token create",
        "tokens:create_token",
        "Create a token. Its text is shown only once.",
    ),
    Entry(
        "token link",
        "tokens:make_link",
        """
        Make a link with which somebody enters the results of a round or group of a tournament until a day, and can do
        nothing else. It is shown only once, and ends at once by `tallybook token revoke`.
        """,
    ),
    Entry(
        "token list",
        "tokens:list_tokens",
        "List all tokens, revoked ones included, but never their texts.",
    ),
    Entry(
        "token revoke",
        "tokens:revoke_token",
        "Revoke a token. Within five seconds every process refuses it.",
    ),
    # ── Webhooks ────────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "webhook add",
        "webhooks:add_webhook",
        """
        Send the events of a tournament to a URL, one after another, as they are committed.

        Each event is sent as a signed POST; docs/WEBHOOKS.md says how a receiver verifies it. The secret is shown only
        once. Workers send the events.
        """,
    ),
    Entry(
        "webhook list",
        "webhooks:list_webhooks",
        "List the webhooks of a tournament, or all, with the last event sent and the last failure of each.",
    ),
    Entry(
        "webhook test",
        "webhooks:send_test",
        """
        Send a webhook one test message now, from this machine, and show the reply.

        Nothing else changes. The command fails unless the receiver accepts the message.
        """,
    ),
    Entry(
        "webhook remove",
        "webhooks:remove_webhook",
        "Remove a webhook. No further events are sent to it.",
    ),
    Entry(
        "webhook resume",
        "webhooks:resume_webhook",
        """
        Resume a webhook that is parked or that its receiver switched off. If it is waiting to resend an event, it
        resends at once.
        """,
    ),
    Entry(
        "webhook rotate",
        "webhooks:rotate_secret",
        "Give a webhook a new secret, which is shown only once. For a day, messages are signed with both.",
    ),
    # ── Erasures ────────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "erasures keep",
        "erasures:keep",
        """
        Append the erasures since the last run to FILE. Keep the file on another machine. It holds no names: a line has
        tournament, slug, competitor, and the times of registration and erasure. A file with other content is refused.
        """,
    ),
    Entry(
        "erasures apply",
        "erasures:apply",
        """
        Repeat the erasures listed in FILE, after a restore or the import of an older archive.

        For each line the command says whether the competitor is erased now, was already erased, or is unknown here, or
        why the line cannot be read. It can be repeated. A competitor registered at another time is a different one, and
        stays. The command also erases from tournaments that have stopped.
        """,
    ),
    # ── The past ────────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "standings",
        "standings:standings",
        "Show the standings of a ranking, now or at a past moment, and how they have moved.",
        group="Watch",
    ),
    Entry(
        "form",
        "standings:form",
        "Show the points of each competitor of a ranking in their last competitions, in the order of the standings.",
        group="Watch",
    ),
    Entry(
        "leaders",
        "leaders:leaders",
        """
        Show who led a ranking from when to when, how long each competitor led, and where the published leaders differ
        from the leaders by the dates of competitions.

        Competitors that share the first place all lead. Nobody leads before the first points, or without a result.
        """,
        group="Watch",
    ),
    Entry(
        "expiring",
        "expiring:expiring",
        "Show what competitors will lose by a day or time because points expire: their points to defend.",
        group="Watch",
    ),
    Entry(
        "history",
        "history:history",
        "List every delta of a ranking: its time, its cause, and the total and position it led to; and every "
        "declaration of its classification.",
        group="Watch",
    ),
    Entry(
        "follow",
        "follow:follow",
        "Print the past events of a tournament, then each new one as it is committed.",
        group="Watch",
    ),
    Entry(
        "explain",
        "explain:explain",
        "Explain a competitor's place: deltas, competitions, and who passed whom.",
        group="Watch",
    ),
    # ── What counts ─────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "void",
        "void:void",
        """
        Void a competition: reverse every point it caused, in every ranking, in one step.

        Nothing is deleted: the points and their reversals stay in the history, linked to each other. The command is
        refused while one of the rankings is closed.
        """,
        group="Compete",
    ),
    Entry(
        "unvoid",
        "void:unvoid",
        "Make a voided competition count again: its points are given back, except undone ones and those of "
        "struck competitors.",
        group="Compete",
    ),
    Entry(
        "strike",
        "void:strike",
        "Strike competitors from a competition: it takes back all points it gave them, and can give them no more.",
        group="Compete",
    ),
    Entry(
        "unstrike",
        "void:unstrike",
        "Make a competition count for struck competitors again.",
        group="Compete",
    ),
    Entry(
        "what-if",
        "void:what_if",
        "Show how a ranking would look without some competitions or competitors.",
        group="Watch",
    ),
    # ── What the public sees ────────────────────────────────────────────────────────────────────────────────
    Entry(
        "freeze",
        "publication:freeze",
        """
        Freeze the public view of a tournament. It stays as it is until `tallybook reveal`.

        Events that the public has seen stay visible. A tournament that is not published yet can be frozen at any event
        that the public has not seen.
        """,
        group="Compete",
    ),
    Entry(
        "reveal",
        "publication:reveal",
        "Reveal frozen events to the public: up to an event, through the next competition, or all of them.",
        group="Compete",
    ),
    # ── Proofs and repairs ──────────────────────────────────────────────────────────────────────────────────
    Entry(
        "verify",
        "audit:verify",
        """
        Check the log against its digests, and everything derived from it against the log.

        The command checks all tournaments or one, in a consistent state, and changes nothing. It prints a line for each
        difference, with tournament, sequence and field. If there are differences, the exit code is 3.
        """,
        group="Audit",
    ),
    Entry(
        "digests",
        "audit:digests",
        """
        Note the digests of all tournaments, or of one, in a file to keep elsewhere.

        The command appends a line for each tournament, with tournament, slug, sequence, digest, recorded_at and
        noted_at.
        """,
        group="Audit",
    ),
    Entry(
        "prove",
        "audit:prove",
        """
        Print a proof, as JSON, that an event is in the log.

        `tallybook check-proof` checks the proof without the database. The proof leads to the digest of the head or,
        with --to, of an earlier event, and takes 67 bytes for each block in between. If the log itself does not verify,
        the command prints nothing and the exit code is 3.
        """,
        group="Audit",
    ),
    Entry(
        "check-proof",
        "audit:check_proof",
        """
        Check a proof of `tallybook prove`, without a database, and print the proven event as JSON.

        It proves that the log with this digest holds this event. If it does not, the exit code is 3. check_proof.py, in
        the folder projections/verification, does the same: a page of Python that you can read before you run it.
        """,
        group="Audit",
    ),
    Entry(
        "rebuild",
        "rebuild:rebuild_tables",
        """
        Rebuild the tables of all tournaments, or of one, from the log, and replace those that differ.

        The command prints a line for each difference. Tables that match the log are not touched. The service can keep
        running.
        """,
        group="Operate",
    ),
    Entry(
        "set-aside",
        "setting_aside:set_event_aside",
        """
        Set aside the event that stopped a tournament because it cannot be folded.

        The event then has no effect, now or at any past moment. The command checks all digests of the log, and sets
        aside only the first event that cannot be folded. It deletes nothing, and cannot be undone. First find out
        whether a newer version of Tallybook can read the event.
        """,
        group="Operate",
    ),
    # ── The service ─────────────────────────────────────────────────────────────────────────────────────────
    Entry(
        "serve",
        "service:serve",
        "Serve HTTP and keep the tables up to date, until SIGTERM or Ctrl-C.",
        group="Operate",
    ),
    Entry(
        "worker",
        "service:worker",
        "Keep the tables up to date, without serving HTTP, until SIGTERM or Ctrl-C.",
        group="Operate",
    ),
    Entry(
        "migrate",
        "service:migrate",
        "Bring the schema up to date, repair rights and sequences. Needs a login that may create schemas and roles.",
        group="Operate",
    ),
    Entry(
        "demo",
        "service:demo",
        "Play a season of rugby, print its table and some requests to try, and serve.",
        group="Operate",
    ),
    Entry(
        "completion",
        "completion:completion",
        """
        Print a script for shell completion of commands and options.

        Where to put it:

        - bash: `tallybook completion bash > ~/.local/share/bash-completion/completions/tallybook`
        - zsh: `tallybook completion zsh > "${fpath[1]}/_cyclopts_tallybook"`
        - fish: `tallybook completion fish > ~/.config/fish/completions/tallybook.fish`
        """,
        group="Operate",
    ),
)
