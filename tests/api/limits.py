"""The tables of docs/LIMITS.md, made from the constants that enforce the limits. `make docs` writes them."""

import re
from pathlib import Path
from typing import Final

from api.access import auth, granting, sessions
from api.cli import explanation_text
from api.desk import conditions, desk, docket, opening
from api.http import body, compression, connections, forms, outgoing, throttle, turned_away
from api.http import limits as http_limits
from api.imports import competitions as imported_competitions
from api.imports import competitors as imported_competitors
from api.imports import fixtures
from api.imports import written as written_files
from api.imports.readers import archives as brought_archives
from api.imports.readers import brought, cells, elements, sheets
from api.interface import paging
from api.interface.public import view
from api.interface.resources import (
    competitor_exports,
    competitor_standings,
    tournaments,
)
from api.interface.resources.webhooks import TESTS_AT_ONCE_MAX
from api.service import app, health, settings, supervisor
from api.stream import followers, pace, tickets
from api.web import board, board_page, explanation_part, picture, pictured
from api.web.console import (
    access_pages,
    beginnings,
    bring_import_page,
    change_page,
    classification_page,
    competition_import_pages,
    history_page,
    import_page,
    lists_pages,
    overview_page,
    ranking_page,
    sheet_handlers,
    sheet_page,
    tournaments_page,
)
from api.webhooks import addresses, deliverer, message, sending, webhooks
from engine.database import distribution, migrator
from engine.database import pool as database
from engine.domain import notation, presentation, table_zones, terms, tiebreaking
from engine.log import quotas
from engine.process import pace as waiting_pace
from projections.answers import (
    about_competition,
    about_competitor,
    around,
    board_table,
    contest,
    cross_table,
    explainer,
    foreseen,
    form,
    history,
    leaders,
    races,
    rounds,
    searching,
    windows,
)
from projections.answers import explanation as answered_explanation
from projections.answers import scoring as answered_scoring
from projections.answers import tables as answered_tables
from projections.board import board as board_of_fold
from projections.board import classified_lines, competition_sums, games
from projections.live import pool
from projections.past import folds, mentions, past, searches, series
from projections.past import leaders as past_leaders
from projections.past import moments as past_moments
from projections.tables import sizes
from projections.verification import all_tournaments, archives, findings
from tallybook_client import sending as client_sending
from tallybook_client import stream as client_stream
from tallybook_client import webhooks as client_webhooks

PAGE: Final = Path(__file__).parents[2] / "docs" / "LIMITS.md"
_HEAD: Final = "| what | limit |\n|---|---|\n"

Row = tuple[str, str, str]
"""What is limited, to what, and what happens beyond that."""


def tables() -> dict[str, tuple[Row, ...]]:
    """The rows of each table, by the heading that it stands under."""
    assert terms.PARTICIPANTS_MAX == terms.DELTAS_MAX  # they share a row
    return {
        "Time": (
            ("a request's head", _seconds(connections.HEAD_SECONDS_MAX), "408, closed"),
            ("a request's body", _seconds(body.BODY_SECONDS_MAX), "408, closed"),
            (
                "reading an answer",
                f"{_seconds(connections.UNREAD_SECONDS_MAX)}, a long one 1 s more per "
                f"{_bytes(connections.READ_BYTES_PER_SECOND_MIN)}",
                "closed",
            ),
            ("a connection without a request", _seconds(connections.KEEPALIVE_SECONDS), "closed"),
            (
                "a write",
                _seconds(desk.SUBMIT_SECONDS_MAX + desk.COMMAND_WATCH_SECONDS),
                "[contract](RELIABILITY.md#the-contract)",
            ),
            (
                "a read",
                _seconds(pool.READ_SECONDS_MAX + desk.COMMAND_WATCH_SECONDS + outgoing.ROOM_SECONDS_MAX),
                "[contract](RELIABILITY.md#the-contract)",
            ),
            ("waiting for expiring points", _seconds(desk.EXPIRY_SECONDS_MAX), "503"),
            ("life of a token", f"{auth.EXPIRES_IN_DAYS_MAX:,} days", "refused"),
            ("use of a revoked token", _seconds(auth.KEPT_SECONDS_MAX + 1), "401"),
        ),
        "Requests": (
            ("headers", f"{connections.HEADERS_MAX} of {connections.HEADER_BYTES_MAX:,} bytes each", "431, closed"),
            ("headers in pieces", _bytes(connections.HEAD_BYTES_MAX), "431, closed"),
            ("the address", f"{connections.TARGET_BYTES_MAX:,} bytes", "414, closed"),
            ("a body", _bytes(forms.BODY_BYTES_MAX), "413, closed"),
            ("fields of a form or JSON", f"{forms.FORM_FIELDS_MAX:,}", "400, closed"),
            ("ETags of `If-Match`", f"{conditions.IF_MATCH_TAGS_MAX}", "400"),
            ("a name", f"{terms.NAME_CHARACTERS_MAX} characters, one of which can be seen", "422"),
            ("a description", f"{terms.DESCRIPTION_CHARACTERS_MAX:,} characters", "422"),
            (
                "zones of a ranking, and what each is",
                f"{table_zones.ZONES_MAX}, {table_zones.ZONE_CHARACTERS_MAX} characters",
                "422",
            ),
            (
                "a slug",
                f"{terms.SLUG_CHARACTERS_MAX} characters, {opening.STEM_CHARACTERS_MAX} from a name",
                "422",
            ),
            ("tournaments named for a new token", f"{granting.TOKEN_TOURNAMENTS_MAX}", "422"),
            ("tournaments listed at once", f"{tournaments.TOURNAMENTS_LISTED_MAX:,}", "400"),
            ("tags of a competitor", f"{terms.TAGS_MAX}", "422"),
            ("former names that name a competitor", f"{board_of_fold.FORMER_NAMES_MAX}", "the last ones"),
            ("parts of `lasts`", "9,999 W, 99,999 D, 999,999 H, 99,999,999 M", "422"),
            ("a delta", f"±{terms.DELTA_MAX:,}", "422"),
            ("a result", f"±{terms.RESULT_MAX:,}", "422"),
            ("decimals of a unity", f"{notation.DECIMALS_MAX}", "422"),
            (
                "a logo",
                f"{presentation.LOGO_BYTES_MAX:,} bytes, {presentation.LOGO_PIXELS_MAX:,} pixels each way",
                "422",
            ),
            ("bodies under way, per process", _bytes(body.AWAITED_BYTES_MAX), "503"),
            ("events of a ranking undone at the same time", f"{terms.UNDONE_MAX:,}", "422"),
            ("lines that a void, strike or opposite reverses", f"{terms.REVERSED_LINES_MAX:,}", "422"),
            ("lines that the results of a request change", f"{terms.SCORED_LINES_MAX:,}", "422"),
            ("lines that a new scoring changes", f"{terms.RESCORED_LINES_MAX:,}", "422"),
            ("results without points in an answer", f"{answered_scoring.UNSCORED_MAX:,}", "the first"),
            ("participants or deltas in a request", f"{terms.DELTAS_MAX:,}", "422"),
            ("competitors or competitions of a request", f"{terms.ITEMS_MAX:,}", "422"),
            (
                f"answers above {_bytes(compression.AT_ONCE_BYTES_MAX)} compressed at once, per process",
                f"{compression.COMPRESSING_MAX}",
                "others uncompressed",
            ),
        ),
        "Waiting": (
            (
                "expected wait of a change or read",
                _seconds(waiting_pace.EXPECTED_SECONDS_MAX),
                "503",
            ),
            (
                "wait of a question about the past, expected or actual",
                _seconds(past.PAST_WAIT_SECONDS_MAX),
                "503",
            ),
            (
                f"actual wait, with over {docket.BLOCK_REQUESTS_MAX} others behind it",
                _seconds(waiting_pace.WAITED_SECONDS_MAX),
                "503, unjudged",
            ),
            (
                "refusals of a process in a second",
                f"{turned_away.HELD_FROM}",
                f"their connections are unread for {turned_away.HELD_SECONDS_MIN:g} to "
                f"{_seconds(turned_away.HELD_SECONDS_MAX)}",
            ),
            ("bodies of the changes waiting in a process", _bytes(desk.WAITING_BYTES_MAX), "503"),
        ),
        "Connections": (
            (
                "connections of a process",
                f"{http_limits.CLIENT_CONNECTIONS_MAX:,}, and its open files less 128",
                "one that asked nothing is closed, else the new one",
            ),
            (
                "connections not yet accepted",
                f"{http_limits.UNACCEPTED_MAX:,}, and `net.core.somaxconn`",
                "the client's system retries after a second",
            ),
            (
                "failed authentications of an address",
                f"{settings.FAILURES_AT_ONCE_MAX} at once, then {throttle.FAILURES_PER_SECOND_MAX:g} a second",
                "429, not for those already let in",
            ),
            (
                "requests of a token, or an address without one",
                f"`serve --requests-per-second`, up to {settings.REQUESTS_PER_SECOND_MAX:,}",
                f"429, for {_seconds(throttle.WAIT_SECONDS_MAX)} at most after the last",
            ),
            ("believed entries of `X-Forwarded-For`", f"{settings.PROXIES_MAX}", "`--proxies` is refused"),
        ),
        "Processes": (
            ("processes of `serve`", f"{supervisor.PROCESSES_MAX}", "refused"),
            ("shards of a distributed database", f"{distribution.SHARDS_MAX:,}", "refused"),
            ("start of a process", _seconds(supervisor.READY_SECONDS_MAX), "`serve` ends, or tries again"),
            ("requests under way at a stop", _seconds(app.SHUTDOWN_SECONDS_MAX), "cut off"),
            ("stopping a process", _seconds(supervisor.STOP_SECONDS_MAX), "killed"),
            (
                "a process's connections to PostgreSQL",
                f"{database.POOL_CONNECTIONS_MAX}",
                f"others wait for {_seconds(database.ACQUIRE_SECONDS_MAX)}, then 503",
            ),
            ("one statement", _seconds(database.STATEMENT_SECONDS_MAX), "503"),
            ("connecting to PostgreSQL", _seconds(migrator.CONNECT_SECONDS_MAX), "503"),
            ("`migrate` waiting for another", _seconds(migrator.LOCK_SECONDS_MAX), "refused"),
            (
                "memory of a process for tournaments",
                f"{_bytes(sizes.MEMORY_BYTES)}; `--memory` from {settings.MEMORY_MIB_MIN} to "
                f"{settings.MEMORY_MIB_MAX:,} MiB",
                "the least recently used goes",
            ),
            ("tournaments and defects that `/readyz` names", f"{health.TROUBLED_MAX} each", ""),
            ("a quota", f"{quotas.BOUND_MAX:,}", "refused"),
            (
                "differences of a tournament that `verify` names",
                f"{findings.TOURNAMENT_DIFFERENCES_MAX:,}",
                "",
            ),
            ("tournaments that `verify` checks at once", f"{all_tournaments.PARALLEL_MAX}", "refused"),
            (
                "names searched in texts before an erasure",
                f"the last {mentions.NAMES_MAX}",
                "",
            ),
            ("an archive's last time ahead of the clock", f"{archives.AHEAD_SECONDS_MAX // 3_600} h", "refused"),
        ),
        "Tournaments": (
            ("competitors of a tournament", f"{terms.COMPETITORS_MAX:,}", "422"),
            ("competitions of a tournament", f"{terms.COMPETITIONS_MAX:,}", "422"),
            ("rankings of a tournament", f"{terms.RANKINGS_MAX:,}", "422"),
            (
                "events, competitors, bytes of a tournament",
                "their [quota](OPERATIONS.md#quotas), by default none",
                "409",
            ),
            ("competitors of a ranking", f"{terms.ENROLLED_MAX:,}", "422"),
            ("unities of a ranking", f"{terms.UNITIES_MAX}", "422"),
            ("criteria of a classification", f"{terms.CRITERIA_MAX}", "422"),
            ("scorings of a ranking", f"{terms.SCORINGS_MAX}", "422"),
            ("awards of a scoring", f"{terms.AWARDS_MAX}", "422"),
            ("amounts of a table, statuses, words, groups of a scoring", f"{terms.SCORING_TABLE_MAX:,}", "422"),
            ("competitions that `best` or `drop` counts", f"{terms.BEST_MAX:,}", "422"),
            ("pairs of a `drop`", f"{terms.DROPS_MAX}", "422"),
            ("cuts, medians and limits of a tie-break", f"{terms.CUTS_MAX}", "422"),
            (
                "competitions searched for the edition of tie-breaks",
                f"{tiebreaking.DATES_LOOKED_AT_MAX:,}",
                "",
            ),
            ("competitions that tie-breaks read", f"{games.GAMES_READ_MAX:,}", "503"),
            (
                "sums of competitions for a classification, twice for a preview",
                f"{classified_lines.CLASSIFIED_SUMS_MAX:,}",
                "503",
            ),
            ("tournaments on the page at `/`", f"{view.LISTED_MAX}", ""),
            ("lines of a public answer", f"{windows.WINDOW_LINES_MAX:,}, and pages of history and explanations", "400"),
            (
                "memory of a process for frozen public views",
                _bytes(view.FROZEN_BYTES_MAX),
                "the least recently used goes",
            ),
        ),
        "Long answers": (
            ("questions about the past at once, per process", f"{past.PAST_REQUESTS_MAX}", "others wait"),
            (
                "lines of points dated otherwise than recorded (`on`, `since_on`)",
                f"{past_moments.DATED_LINES_MAX:,}",
                "503",
            ),
            ("events, or lines of a unity, read for leaders", f"{folds.LEADERS_EVENTS_MAX:,}", "503"),
            ("events read for `expiring.json`", f"{past_moments.DATED_LINES_MAX:,}", "503"),
            ("competitors that lead together", f"{past_leaders.SHARED_MAX}", "nobody leads"),
            ("competitors or differences listed with leaders", f"{leaders.TOLD_MAX}", "only their number"),
            ("competitors with a sub-table's tag", f"{answered_tables.SUB_TABLE_COMPETITORS_MAX:,}", "422"),
            ("recent results of a competitor", f"{form.LAST_MAX}", "400"),
            ("sums of competitions for recent results", f"{form.FORM_SUMS_MAX:,}", "422"),
            ("overtakings on a page of an explanation", f"{explainer.OVERTAKINGS_MAX:,}", ""),
            (
                "overtakings listed of a step",
                f"{explainer.OVERTAKINGS_MAX:,}",
                "",
            ),
            (
                "unread bytes that a process holds",
                _bytes(outgoing.UNSENT_BYTES_MAX),
                "the one unread longest is closed",
            ),
            (
                "waiting for room among the unread bytes",
                _seconds(outgoing.ROOM_SECONDS_MAX),
                "503 for a list; 500 for a change, which is made",
            ),
        ),
        "Windows, filters and previews": (
            ("lines of a window, ids it names", f"{windows.WINDOW_LINES_MAX:,}", "400"),
            ("lines each side of `around`", f"{windows.SPAN_MAX}", "400"),
            ("items on a list's page", f"{paging.PER_PAGE_MAX}", ""),
            ("lines on a page of history", f"{history.LINES_MAX:,}", ""),
            ("steps on a page of an explanation", f"{answered_explanation.STEPS_MAX}", ""),
            ("reigns on a page of leaders", f"{leaders.REIGNS_MAX:,}", "400"),
            (
                "lines on a page of a competitor's standings",
                f"{competitor_standings.COMPETITOR_LINES_MAX}",
                "",
            ),
            ("events on a page of a competitor's export", f"{competitor_exports.EXPORTED_MAX:,}", ""),
            ("lines that a preview compares", f"{foreseen.PREVIEW_LINES_MAX:,}", "422"),
        ),
        "Streams": (
            ("streams of a process", f"{followers.LISTENERS_SHARE:.0%} of its connections", "503"),
            (
                "streams of a tournament in a process",
                f"{followers.LISTENERS_OF_TOURNAMENT_MAX:,}, and as many public ones",
                "503",
            ),
            (
                "public streams of a process",
                f"{followers.VISITORS_SHARE:.0%} of its streams",
                "503; boards ask again",
            ),
            ("public streams of an address in a process", f"{followers.LISTENERS_OF_VISITOR_MAX}", "503"),
            ("unused tickets of a tournament in a process", f"{tickets.TICKETS_MAX:,}", "503"),
            ("life of a ticket", _seconds(tickets.TICKET_SECONDS), "401"),
            ("life of a [session](CONSOLE.md#sessions)", f"{sessions.SESSION_HOURS} hours", "sign in again"),
            ("sessions of a token", f"{sessions.SESSIONS_MAX}", "the oldest ends"),
            ("a stream's time without look-ups of its token", _seconds(followers.UNCONFIRMED_SECONDS_MAX), "it ends"),
            ("`speed`", f"{pace.SPEED_MAX:,}", "400"),
            ("pause between events with `speed`", _seconds(pace.PAUSE_SECONDS_MAX), "the next one comes"),
        ),
        "Webhooks": (
            ("webhooks of a database", f"{webhooks.WEBHOOKS_MAX:,}", "refused"),
            ("the address of a webhook", f"{addresses.URL_CHARACTERS_MAX:,} characters", "refused"),
            (
                "an answer",
                f"{_seconds(sending.ANSWER_SECONDS_MAX)}, {_seconds(sending.CONNECTING_SECONDS_MAX)} to connect",
                "a failure",
            ),
            (
                "attempts to send an event",
                f"{len(deliverer.PAUSES_SECONDS) + 1}, after pauses of "
                f"{', '.join(map(_pause, deliverer.PAUSES_SECONDS))}; or after `Retry-After`, up to "
                f"{_pause(deliverer.RETRY_AFTER_SECONDS_MAX)}",
                "parked, until `webhook resume`",
            ),
            ("requests under way", f"1 per webhook, {deliverer.DELIVERED_AT_ONCE_MAX} in all", "others wait"),
            ("lines of a message of points", f"{message.MESSAGE_LINES_MAX}", "only their number"),
            ("test messages over HTTP", f"{TESTS_AT_ONCE_MAX} at once per process", "503"),
            ("life of a replaced secret", f"{webhooks.OLD_SECRET_HOURS} h", "signs no longer"),
        ),
        "Boards": (
            ("lines of a page", f"{board_table.BOARD_LINES}", ""),
            ("lines of `/embed`", f"{board_page.EMBED.lines}", ""),
            ("lines of `/tv`", f"{board_page.TV_LINES}", ""),
            ("a page of `/tv`", _seconds(board_page.TV_SECONDS), "the next page"),
            ("lines for a script at once", f"{board.LINES_ASKED_MAX}", "400"),
            ("lines of a CSV", f"{board.CSV_LINES_MAX:,}", "more with `offset=`"),
            (
                "teams and problems on a page of problems",
                f"the first {contest.CONTEST_TEAMS_MAX} and {contest.PROBLEMS_MAX}",
                "",
            ),
            ("competitors of a cross table", f"the first {cross_table.CROSS_COMPETITORS_MAX}", ""),
            ("matches of a calendar", f"the last {rounds.CALENDAR_MATCHES_MAX:,}", ""),
            ("participants of a match in a calendar", f"{rounds.CALENDAR_NAMES_MAX}", "not named"),
            ("lines of a picture", f"the first {pictured.PICTURE_LINES}", ""),
            (
                "pictures that a process draws (of a past moment once)",
                f"{picture.PICTURES_AT_ONCE_MAX} at once, then {picture.PICTURES_PER_SECOND_MAX:g} a second",
                "429",
            ),
            ("rankings with a tab", f"{board_page.TABS_MAX}", "a list to choose from"),
            ("tags to choose from", f"{searching.TAGS_OFFERED_MAX}", "others with `tag=`"),
            (
                "columns of unities that decide nothing",
                f"{board_table.OTHER_COLUMNS_MAX}",
                "others have their own tables",
            ),
            ("competitors of a searched ranking", f"{searching.SEARCHED_COMPETITORS_MAX:,}", "no search"),
            ("lines that a search finds", f"{searching.FOUND_MAX:,}", "422"),
            ("steps on a page of an explanation", f"{about_competitor.STEPS_SHOWN}", ""),
            ("overtakings shown of a step", f"{explanation_part.OVERTAKINGS_SHOWN_MAX}", ""),
            (
                "participants on the page of a competition",
                f"{about_competition.TAKING_PART_SHOWN_MAX}",
                "others counted; not said what points were for",
            ),
            ("matches of a competitor on their page", f"{about_competitor.MET_MAX}", ""),
            ("results shown", f"{around.RESULTS_SHOWN}", ""),
            ("fixtures shown", f"{around.FIXTURES_SHOWN}", ""),
            (
                "competitions searched for results and fixtures",
                f"the newest {around.COMPETITIONS_LOOKED_AT_MAX:,}",
                "",
            ),
            (
                "participants shown, if more than two",
                f"the first {around.SIDES_SHOWN} by points",
                "",
            ),
            ("events searched for the last competition", f"{searches.LOOKED_BACK_EVENTS_MAX:,}", "no movement"),
            (
                "events, for movement by date",
                f"{board_table.MOVED_BY_DATE_EVENTS_MAX:,}",
                "movement by recording",
            ),
            (
                "competitions of a round or day whose points are added up",
                f"{board_table.GAINED_TOGETHER_MAX}",
                "only the last one's",
            ),
            (
                "deductions in a ranking, and on a page",
                f"{competition_sums.DEDUCTIONS_KEPT_MAX}, {board_table.FOOTNOTES_MAX}",
                "no footnotes",
            ),
            ("sums of competitions, for a page's recent results", f"{board_table.FORM_SUMS_SHOWN_MAX:,}", "not shown"),
            (
                "events before a past moment, for a page's recent results",
                f"{board_table.FORM_EVENTS_MAX:,}",
                "not shown",
            ),
            (
                "events of points or the log, for *to defend*",
                f"{board_table.DEFENDED_EVENTS_MAX:,}",
                "not shown",
            ),
            (
                "events, for a slider by dates or the explanation of a day",
                f"{folds.TIMELINE_EVENTS_MAX:,}",
                "a slider by events; 422 or 503",
            ),
            (
                "deltas, for a slider by dates or the explanation of a day",
                f"{folds.TIMELINE_DELTAS_MAX:,}",
                "a slider by events; 422 or 503",
            ),
            ("events, for a race", f"{races.SERIES_EVENTS_MAX:,}", "no race; `race.json`: 422"),
            ("competitors of a ranking, for a race", f"{races.SERIES_COMPETITORS_MAX}", "no race; `race.json`: 422"),
            ("competitors that a race shows", f"{races.RACERS_MAX}", ""),
            ("moments of a race", f"{series.SERIES_POINTS_MAX}", "every second is left out"),
        ),
        "The console": (
            ("tournaments on a page", f"{tournaments_page.TOURNAMENTS_SHOWN}", ""),
            ("competitors, competitions, lines on a page", f"{lists_pages.ITEMS_SHOWN}", ""),
            ("rankings on a tournament's page", f"{overview_page.RANKINGS_SHOWN}", ""),
            (
                "competitions that a form offers",
                f"the newest {ranking_page.COMPETITIONS_SUGGESTED}",
                "see the lists",
            ),
            ("competitors that a form offers", f"{beginnings.CHOSEN_MAX}", "it asks for names"),
            ("matches of a round on the page of a match day", f"{rounds.ROUND_MATCHES_MAX}", ""),
            (
                "competitions among which its rounds are sought",
                f"the newest {rounds.ROUND_COMPETITIONS_MAX:,}",
                "use the list",
            ),
            (
                "tables next to the matches",
                f"{sheet_handlers.TABLES_SHOWN}, of {sheet_page.LINES_SHOWN} lines",
                "see the rankings",
            ),
            ("lines shown before an import, or its undoing", f"{import_page.ROWS_SHOWN}", ""),
            (
                "a file that is brought",
                f"{_bytes(bring_import_page.BROUGHT_BYTES_MAX)}, and as many competitions as an import",
                "the command that brings it",
            ),
            (
                "lines of CSV in an import of competitions",
                f"{competition_import_pages.PASTED_COMPETITIONS_MAX:,}",
                "several imports, or the command line",
            ),
            ("events on a page of history", f"{history_page.HISTORY_EVENTS}", ""),
            ("lines on a page of history", f"{history_page.HISTORY_LINES}", "HTTP and command line show all"),
            (
                "lines that a preview compares",
                f"{foreseen.PREVIEW_AT_ONCE_MAX:,}",
                "HTTP and command line show all",
            ),
            ("moves that a preview shows", f"{change_page.MOVES_SHOWN}", "HTTP and command line show all"),
            (
                "lines of a classification beyond those declared",
                f"{classification_page.FREE_CRITERIA}, and {terms.CRITERIA_MAX} in all",
                "declare, and open again",
            ),
            ("tokens listed", f"the newest {access_pages.TOKENS_SHOWN}", "the command line lists all"),
            ("sessions listed", f"{sessions.SESSIONS_LISTED_MAX}", ""),
        ),
        "The command line": (
            ("an import's competitors", f"{imported_competitors.IMPORT_COMPETITORS_MAX:,}", "refused"),
            ("an import's competitions", f"{imported_competitions.IMPORT_COMPETITIONS_MAX:,}", "refused"),
            ("competitors whose fixtures are made", f"{fixtures.FIXTURE_TEAMS_MAX}", "refused"),
            ("a brought file, unpacked", f"{_bytes(brought_archives.UNPACKED_BYTES_MAX)}", "refused"),
            ("a brought file as it is", f"{_bytes(brought.FILE_BYTES_MAX)}", "refused"),
            ("its XML elements", f"{elements.ELEMENTS_MAX:,} at the same time", "refused"),
            ("its rows, if it is a sheet", f"{sheets.SHEET_ROWS_MAX:,}", "refused"),
            ("columns of a sheet", f"{cells.COLUMNS_MAX}", ""),
            ("competitors of a ranking exported as a file", f"{written_files.LINES_WRITTEN_MAX:,}", "refused"),
            ("steps of an explanation", f"{explanation_text.STEPS_TOLD_MAX}", "`--json` has all"),
            ("overtakings of a step", f"{explanation_text.OVERTAKINGS_TOLD_MAX}", "`--json` has all"),
        ),
        "The Python client": (
            (
                "connecting",
                _seconds(client_sending.CONNECT_SECONDS_MAX),
                "sent again, then `Unavailable` or `OutcomeUnknown`",
            ),
            (
                "silence of the service",
                _seconds(client_sending.SILENCE_SECONDS_MAX),
                "sent again, then `Unavailable` or `OutcomeUnknown`",
            ),
            ("one event of a stream", _bytes(client_stream.LINE_BYTES_MAX), "the stream ends with an error"),
            ("age of a message's signature", _seconds(client_webhooks.TOLERANCE_SECONDS), "refused"),
        ),
    }


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def _bytes(count: int) -> str:
    return f"{count >> 20} MiB" if count % (1 << 20) == 0 else f"{count >> 10} KiB"


def _pause(seconds: int) -> str:
    units = ((3_600, "h"), (60, "min"), (1, "s"))
    return next(f"{seconds // size} {unit}" for size, unit in units if seconds % size == 0)


def written(text: str) -> str:
    """The page, with its tables as they are to be. Raises LookupError if a heading has no table in it."""
    for heading, rows in tables().items():
        table = _HEAD + "".join(map(_line, rows))
        beginning = rf"^## {re.escape(heading)}\n(?:(?!## ).*\n)*?"
        found = re.search(rf"{beginning}({re.escape(_HEAD)}(?:\|.*\n)*)", text, re.MULTILINE)
        if found is None:
            raise LookupError(heading)
        text = text[: found.start(1)] + table + text[found.end(1) :]
    return text


def _line(row: Row) -> str:
    what, limit, then = row
    return f"| {what} | {limit} ({then}) |\n" if then else f"| {what} | {limit} |\n"


def write() -> None:
    """Writes the tables into the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
