"""The tables of docs/LIMITS.md, made from the constants that enforce the limits. `make docs` writes them."""

import re
from pathlib import Path
from typing import Final

from api.access import auth, sessions
from api.cli import explanation_text
from api.cli import setting_aside as setting_aside_cli
from api.desk import conditions, desk, docket, opening
from api.desk import quotas as desk_quotas
from api.http import body, compression, connections, forms, outgoing, reply, throttle, turned_away
from api.http import limits as http_limits
from api.imports import competitions as imported_competitions
from api.imports import competitors as imported_competitors
from api.imports import importer
from api.interface import names, paging
from api.interface.public import view
from api.interface.resources import (
    competitor_exports,
    competitor_standings,
    standings,
)
from api.interface.resources.webhooks import TESTS_AT_ONCE_MAX
from api.service import app, health, settings, supervisor
from api.stream import followers, listeners, pace, tickets
from api.web import board, board_page, explanation_page, picture, pictured
from api.web.console import (
    access_pages,
    change_page,
    changes,
    classification_page,
    competition_import_pages,
    history_page,
    import_page,
    lists_pages,
    overview_page,
    ranking_page,
    tournaments_page,
)
from api.webhooks import addresses, deliverer, message, sending, totals, webhooks
from engine.database import distribution, migrator
from engine.database import pool as database
from engine.domain import notation, presentation, terms
from engine.log import quotas, reading
from engine.process import pace as waiting_pace
from projections.answers import (
    around,
    board_table,
    explainer,
    foreseen,
    form,
    history,
    leaders,
    passages,
    races,
    searching,
    windows,
    zones,
)
from projections.answers import explanation as answered_explanation
from projections.answers import tables as answered_tables
from projections.board import classified_lines
from projections.live import cache, classifications, orders, pool, selections
from projections.past import folds, mentions, pages, passage, past, searches, series
from projections.past import leaders as past_leaders
from projections.past import moments as past_moments
from projections.tables import defects, rebuild, sizes, sweep
from projections.verification import all_tournaments, archives, erasures, progress, setting_aside
from tallybook_client import sending as client_sending
from tallybook_client import stream as client_stream
from tallybook_client import webhooks as client_webhooks

PAGE: Final = Path(__file__).parents[2] / "docs" / "LIMITS.md"
_HEAD: Final = "| what | limit | then |\n|---|---|---|\n"

Row = tuple[str, str, str]
"""What is limited, to what, and what happens beyond that."""


def tables() -> dict[str, tuple[Row, ...]]:
    """The rows of each table, by the heading that it stands under."""
    assert terms.PARTICIPANTS_MAX == terms.DELTAS_MAX  # they share a row
    return {
        "Time": (
            (
                "a request's head, from its first byte; its body",
                f"{_seconds(connections.HEAD_SECONDS_MAX)}; {_seconds(body.BODY_SECONDS_MAX)}",
                "408, closed",
            ),
            (
                "reading an answer; a connection without a request",
                f"{_seconds(connections.UNREAD_SECONDS_MAX)}, a long one 1 s more per "
                f"{_bytes(connections.READ_BYTES_PER_SECOND_MIN)}; {_seconds(connections.KEEPALIVE_SECONDS)}",
                "closed",
            ),
            (
                "closing a connection",
                f"{_seconds(connections.LINGER_SECONDS_MAX)}, {_bytes(connections.LINGER_BYTES_MAX)} still arriving",
                "the rest is dropped",
            ),
            (
                "a write; a read",
                f"{_seconds(desk.SUBMIT_SECONDS_MAX + desk.COMMAND_WATCH_SECONDS)}; "
                f"{_seconds(pool.READ_SECONDS_MAX + desk.COMMAND_WATCH_SECONDS + outgoing.ROOM_SECONDS_MAX)}",
                "see [RELIABILITY](RELIABILITY.md#the-contract)",
            ),
            ("waiting for expiring points", _seconds(desk.EXPIRY_SECONDS_MAX), "503"),
            ("life of a token", f"{auth.EXPIRES_IN_DAYS_MAX:,} days", "refused"),
            ("use of a revoked token", _seconds(auth.KEPT_SECONDS_MAX + 1), "401"),
        ),
        "Requests": (
            (
                "headers",
                f"{connections.HEADERS_MAX} of {connections.HEADER_BYTES_MAX:,} bytes each; "
                f"{_bytes(connections.HEAD_BYTES_MAX)} if in pieces",
                "431, closed",
            ),
            (
                "the address; a body",
                f"{connections.TARGET_BYTES_MAX:,} bytes; {_bytes(forms.BODY_BYTES_MAX)}",
                "414, closed; 413, closed",
            ),
            ("a body left unread by a refusal", _bytes(reply.LEFT_UNREAD_BYTES_MAX), "closed"),
            (
                "fields of a form or JSON; ETags of `If-Match`",
                f"{forms.FORM_FIELDS_MAX:,}; {conditions.IF_MATCH_TAGS_MAX}",
                "400, closed; 400",
            ),
            (
                "a name; a description; a slug",
                f"{terms.NAME_CHARACTERS_MAX}; {terms.DESCRIPTION_CHARACTERS_MAX:,}; {terms.SLUG_CHARACTERS_MAX} "
                f"characters, {opening.STEM_CHARACTERS_MAX} from a name",
                "422",
            ),
            ("tags of a competitor", f"{terms.TAGS_MAX}", "422"),
            ("parts of `lasts`", "9,999 W, 99,999 D, 999,999 H, 99,999,999 M", "422"),
            (
                "a delta; a result; decimals of a unity",
                f"±{terms.DELTA_MAX:,}; ±{terms.RESULT_MAX:,}; {notation.DECIMALS_MAX}",
                "422",
            ),
            (
                "names; ids; time zones that a refusal suggests",
                f"{names.SIMILAR_MAX}, of at most {names.COMPARED_MAX:,} names, for {names.UNKNOWN_COMPARED_MAX} "
                f"unknown ones; {names.IDS_LISTED_MAX}; "
                f"{zones.NEAR_ZONES_MAX}",
                "others not named",
            ),
            (
                "a logo",
                f"{presentation.LOGO_BYTES_MAX:,} bytes, {presentation.LOGO_PIXELS_MAX:,} pixels each way",
                "422",
            ),
            ("announced bytes of bodies under way, per process", _bytes(body.AWAITED_BYTES_MAX), "503"),
            (
                "events of a ranking undone at the same time; lines that a void, strike or opposite reverses",
                f"{terms.UNDONE_MAX:,}; {terms.REVERSED_LINES_MAX:,}",
                "422",
            ),
            (
                "participants or deltas in a request; competitors or competitions created",
                f"{terms.DELTAS_MAX:,}; {terms.ITEMS_MAX:,}",
                "422",
            ),
            (
                f"whole answers above {_bytes(compression.AT_ONCE_BYTES_MAX)} compressed at once, per process",
                f"{compression.COMPRESSING_MAX}",
                "others uncompressed",
            ),
        ),
        "Waiting": (
            (
                "expected wait of a change or read in its tournament; wait, expected or actual, of a question about "
                "the past",
                f"{_seconds(waiting_pace.EXPECTED_SECONDS_MAX)}; {_seconds(past.PAST_WAIT_SECONDS_MAX)}",
                "503",
            ),
            (
                f"actual wait, with over {docket.BLOCK_REQUESTS_MAX} changes of its tournament, or other reads, behind "
                "it",
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
                "one that asked nothing gives way, else the new one",
            ),
            (
                "connections not yet accepted",
                f"{http_limits.UNACCEPTED_MAX:,}, and `net.core.somaxconn` (128 before Linux 5.4)",
                "the client's system retries after a second",
            ),
            (
                "failed authentications of an address",
                f"{settings.FAILURES_AT_ONCE_MAX} at once, then {throttle.FAILURES_PER_SECOND_MAX:g} a second",
                "429; clients already let in do not notice",
            ),
            (
                "requests of a token, or an address without one",
                f"`serve --requests-per-second`, up to {settings.REQUESTS_PER_SECOND_MAX:,}",
                f"429, for {_seconds(throttle.WAIT_SECONDS_MAX)} at most after the last",
            ),
            ("believed entries of `X-Forwarded-For`", f"{settings.PROXIES_MAX}", "`--proxies` is refused"),
        ),
        "Processes": (
            (
                "processes of `serve`; shards of a distributed database",
                f"{supervisor.PROCESSES_MAX}; {distribution.SHARDS_MAX:,}",
                "refused",
            ),
            ("start of a process", _seconds(supervisor.READY_SECONDS_MAX), "`serve` ends, or tries again"),
            (
                "requests under way at a stop; the stop",
                f"{_seconds(app.SHUTDOWN_SECONDS_MAX)}; {_seconds(supervisor.STOP_SECONDS_MAX)}",
                "cut off; killed",
            ),
            (
                "a process's connections to PostgreSQL; those reading logs",
                f"{database.POOL_CONNECTIONS_MAX}; {pool.READERS_MAX}",
                f"others wait for {_seconds(database.ACQUIRE_SECONDS_MAX)}, then 503",
            ),
            (
                "judgings of a change that others overtake; one statement",
                f"{docket.JUDGED_MAX}; {_seconds(database.STATEMENT_SECONDS_MAX)}",
                "503",
            ),
            (
                "connecting to PostgreSQL; `migrate` waiting for another",
                f"{_seconds(migrator.CONNECT_SECONDS_MAX)}; {_seconds(migrator.LOCK_SECONDS_MAX)}",
                "503; refused",
            ),
            (
                "memory of a process, API or worker, for tournaments",
                f"{_bytes(sizes.MEMORY_BYTES)}, estimated; `--memory` from {settings.MEMORY_MIB_MIN} to "
                f"{settings.MEMORY_MIB_MAX:,} MiB",
                "the least recently used goes; the last one stays",
            ),
            (
                "rendered answers; boards' past tables; classified lines, per tournament",
                f"{_bytes(cache.RENDERED_BYTES_MAX)}, of {_bytes(cache.KEPT_BYTES_MAX)} each; "
                f"{_bytes(cache.MOMENTS_BYTES_MAX)}; {classifications.KNOWN_LINES_MAX:,}, of "
                f"{classifications.KNOWN_RANKINGS_MAX} rankings",
                "made again",
            ),
            (
                "compressed answers of a process",
                f"{_bytes(compression.COMPRESSED_BYTES_MAX)}, of {_bytes(compression.STREAM_BYTES_MAX)} each",
                "made again",
            ),
            (
                "pause before a stopped tournament is tried again: request; worker",
                f"{_seconds(pool.STOPPED_SECONDS)}; {_seconds(sweep.STOPPED_RETRY_SECONDS)}",
                "503 meanwhile",
            ),
            (
                "tournaments, and defects, that health names; time that it shows a defect",
                f"{health.TROUBLED_MAX} each; {_seconds(defects.SHOWN_SECONDS)}",
                "others not named; only in the logs",
            ),
            (
                "a quota; age of a process's sums",
                f"{quotas.BOUND_MAX:,}; {_seconds(desk_quotas.QUOTAS_SECONDS)}",
                "refused; writes meanwhile may exceed a quota",
            ),
            (
                "a tournament's differences named by `verify`; `rebuild`; an archive's import",
                f"{progress.TOURNAMENT_DIFFERENCES_MAX:,}; {rebuild.REBUILD_DIFFERENCES_MAX:,}; {archives.NAMED_MAX}",
                "others counted; left out; counted",
            ),
            (
                "attempts to erase; to set aside, while others append",
                f"{erasures.ERASE_ATTEMPTS_MAX}; {setting_aside.SET_ASIDE_ATTEMPTS_MAX}",
                "refused",
            ),
            (
                "texts listed that name somebody to erase; names searched",
                f"{mentions.MENTIONS_MAX}; the last {mentions.NAMES_MAX}",
                "others counted; not searched",
            ),
            (
                "unreadable lines named in a list of erasures",
                f"{erasures.FAULTS_SHOWN_MAX}",
                "refused; others not named",
            ),
            (
                "tournaments `verify` checks at once; an archive's last time, ahead of the clock",
                f"{all_tournaments.PARALLEL_MAX}; {archives.AHEAD_SECONDS_MAX // 3_600} h",
                "refused",
            ),
        ),
        "Tournaments": (
            (
                "competitors; competitions; rankings of a tournament",
                f"{terms.COMPETITORS_MAX:,}; {terms.COMPETITIONS_MAX:,}; {terms.RANKINGS_MAX:,}",
                "422",
            ),
            (
                "events, competitors, bytes of a tournament; of a token",
                "their [quota](OPERATIONS.md#quotas), by default none",
                "409; 429",
            ),
            ("competitors; unities of a ranking", f"{terms.ENROLLED_MAX:,}; {terms.UNITIES_MAX}", "422"),
            (
                "criteria of a classification; competitions that `best` counts",
                f"{terms.CRITERIA_MAX}; {terms.BEST_MAX:,}",
                "422",
            ),
            (
                "sums of competitions for a classification; a preview makes two",
                f"{classified_lines.CLASSIFIED_SUMS_MAX:,}",
                "503",
            ),
            ("tournaments on the service's first page", f"{view.LISTED_MAX}", "others not listed"),
            ("lines of a public answer", f"{windows.WINDOW_LINES_MAX:,}, and pages of history and explanations", "400"),
            (
                "memory of a process for frozen public views",
                f"{_bytes(view.FROZEN_BYTES_MAX)}, estimated; the last one stays",
                "the least recently used is made again",
            ),
        ),
        "Long answers": (
            ("questions about the past at once, per process", f"{past.PAST_REQUESTS_MAX}", "others wait"),
            (
                "lines of points on which the clocks differ (`on`, `since_on`)",
                f"{past_moments.DATED_LINES_MAX:,}",
                "503",
            ),
            ("events, or lines of a unity, read for leaders", f"{folds.LEADERS_EVENTS_MAX:,}", "503"),
            ("events while expiring points took place (`expiring.json`)", f"{past_moments.DATED_LINES_MAX:,}", "503"),
            ("competitors that lead together", f"{past_leaders.SHARED_MAX}", "nobody leads"),
            ("competitors, and clock differences, listed with leaders", f"{leaders.TOLD_MAX}", "only their number"),
            (
                "competitors with a sub-table's tag; sums of competitions for recent results",
                f"{answered_tables.SUB_TABLE_COMPETITORS_MAX:,}; {form.FORM_SUMS_MAX:,}",
                "422",
            ),
            ("recent results of a competitor", f"{form.LAST_MAX}", "400"),
            ("overtakings on a page of an explanation", f"{explainer.OVERTAKINGS_MAX:,}", "further pages"),
            (
                "overtakings in a step of competitors whose totals stay",
                f"{explainer.OVERTAKINGS_MAX:,}",
                "the nearest, and the number of others",
            ),
            (
                "lines of a ranking or unity whose answers share JSON",
                f"{standings.MADE_LINES_MAX:,}",
                "each answer makes its own",
            ),
            ("rendered competitors, per tournament", _bytes(cache.PIECES_BYTES_MAX), "made again"),
            (
                "unread bytes that a process holds",
                _bytes(outgoing.UNSENT_BYTES_MAX),
                "the connection unread longest is closed",
            ),
            (
                "waiting for room in these",
                _seconds(outgoing.ROOM_SECONDS_MAX),
                "503 for a list; 500 for a change, which is made",
            ),
        ),
        "Windows, filters and previews": (
            (
                "lines of a window, ids it names; lines each side of `around`; items on a list's page",
                f"{windows.WINDOW_LINES_MAX:,}; {windows.SPAN_MAX}; {paging.PER_PAGE_MAX}",
                "400",
            ),
            (
                "a page's lines of history; explanation steps; leaders' reigns",
                f"{history.LINES_MAX:,}; {answered_explanation.STEPS_MAX}; {leaders.REIGNS_MAX:,}",
                "400",
            ),
            ("points of a series", f"{series.SERIES_POINTS_MAX}", "every second is left out"),
            (
                "events; deltas of a passage",
                f"{passage.PASSAGE_EVENTS_MAX:,}; {passage.PASSAGE_DELTAS_MAX:,}, or one larger event",
                "the next passage",
            ),
            (
                "a page of a competitor's standings; of their export",
                f"{competitor_standings.COMPETITOR_LINES_MAX} lines; {competitor_exports.EXPORTED_MAX:,} events, found "
                f"in {pages.SCANNED_EVENTS_MAX:,}",
                "further pages",
            ),
            ("lines that a preview compares", f"{foreseen.PREVIEW_LINES_MAX:,}", "422"),
            (
                "orders of unities (some 9 bytes a competitor); filtered lists, per tournament",
                f"{orders.ORDERS_MAX:,}, or {_bytes(orders.ORDERS_BYTES_MAX)}; {selections.SELECTIONS_MAX}, or "
                f"{_bytes(selections.SELECTIONS_BYTES_MAX)}",
                "the least recently used goes",
            ),
            ("windows kept until a change", _bytes(cache.WINDOWS_BYTES_MAX), "made again"),
        ),
        "Streams": (
            ("streams of a process", f"{followers.LISTENERS_SHARE:.0%} of its connections", "503"),
            (
                "streams of a tournament in a process; its unused tickets",
                f"{followers.LISTENERS_OF_TOURNAMENT_MAX:,}, and as many public ones; {tickets.TICKETS_MAX:,}",
                "503",
            ),
            (
                "public streams of a process",
                f"{followers.VISITORS_SHARE:.0%} of its streams",
                "503; boards look every few seconds",
            ),
            ("public streams of an address in a process", f"{followers.LISTENERS_OF_VISITOR_MAX}", "503"),
            (
                "events in a tournament's ring; rings of a process",
                f"{followers.RING_EVENTS_MAX:,}, {_bytes(followers.RING_BYTES_MAX)}; "
                f"{_bytes(followers.RINGS_BYTES_MAX)}",
                "older ones are read from the log",
            ),
            (
                "a chunk for a listener",
                f"{reading.CHUNK_EVENTS_MAX:,} events of {_bytes(reading.CHUNK_BYTES_MAX)}; if behind, "
                f"{followers.READ_EVENTS_MAX} of {_bytes(followers.READ_BYTES_MAX)}; or one larger event",
                "the next chunk",
            ),
            (
                "bytes of a stream held by the system",
                f"{_bytes(listeners.UNSENT_BYTES_OF_SYSTEM_MAX)}, doubled by Linux",
                "one more chunk is held, as unread",
            ),
            ("a client that does not read", _seconds(connections.UNREAD_SECONDS_MAX), "its stream is closed"),
            ("a process's connections reading logs for listeners", f"{followers.LOG_READERS_MAX}", "others wait"),
            (
                "life of a ticket; of a [session](CONSOLE.md#sessions)",
                f"{_seconds(tickets.TICKET_SECONDS)}; {sessions.SESSION_HOURS} hours",
                "401; sign in again",
            ),
            ("sessions of a token", f"{sessions.SESSIONS_MAX}", "the oldest ends"),
            ("time without an event", _seconds(followers.SILENT_SECONDS), "a sign of life"),
            ("events that a filter skips without a sign", f"{listeners.PASSED_EVENTS_MAX:,}", "the position is sent"),
            ("time without look-ups of stream tokens", _seconds(followers.UNCONFIRMED_SECONDS_MAX), "the streams end"),
            (
                "`speed`; pause between events with it",
                f"{pace.SPEED_MAX:,}; {_seconds(pace.PAUSE_SECONDS_MAX)}",
                "400; the next one comes",
            ),
        ),
        "Webhooks": (
            (
                "webhooks of a database; the address of one",
                f"{webhooks.WEBHOOKS_MAX:,}; {addresses.URL_CHARACTERS_MAX:,} characters",
                "refused",
            ),
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
            (
                "events totalled for messages at once",
                f"{totals.WINDOW_EVENTS_MAX:,}, with {totals.WINDOW_DELTAS_MAX:,} deltas; kept for "
                f"{deliverer.WINDOWS_KEPT_MAX} webhooks",
                "found again",
            ),
            (
                "a webhook's turn",
                f"{_seconds(deliverer.SERVED_SECONDS_MAX)}, {deliverer.SERVED_EVENTS_MAX} events, "
                f"{_bytes(deliverer.SERVED_BYTES_MAX)} of bodies; or one larger event",
                "others come first",
            ),
            ("stored reason of a failure", f"{webhooks.PROBLEM_CHARACTERS_MAX} characters", "cut off"),
            ("test messages over HTTP", f"{TESTS_AT_ONCE_MAX} at once per process", "503"),
            ("life of a replaced secret", f"{webhooks.OLD_SECRET_HOURS} h", "signs no longer"),
        ),
        "Boards": (
            (
                "lines of a page; of `/embed`; of `/tv`; steps of an explanation",
                f"{board_table.BOARD_LINES}; {board_page.EMBED.lines}; {board_page.TV_LINES}; {board.STEPS_SHOWN}",
                "further pages",
            ),
            ("lines for a script at once", f"{board.LINES_ASKED_MAX}", "400"),
            (
                "lines of a CSV; tags to choose from",
                f"{board.CSV_LINES_MAX:,}; {searching.TAGS_OFFERED_MAX}",
                "more with `offset=`; with `tag=`",
            ),
            ("rankings with a tab", f"{board_page.TABS_MAX}", "a list to choose from"),
            (
                "lines without a search, if no tag can be chosen",
                f"{board_page.SEARCHED_LINES_MIN}",
                "a search is offered",
            ),
            ("a page of `/tv`", _seconds(board_page.TV_SECONDS), "the next page"),
            (
                "participants shown, if more than two; competitors that a race shows",
                f"the first {around.SIDES_SHOWN} by points; {races.RACERS_MAX}",
                "others not shown",
            ),
            (
                "overtakings shown of a step; lines of a picture",
                f"{explanation_page.OVERTAKINGS_SHOWN_MAX}; the first {pictured.PICTURE_LINES}",
                "others counted",
            ),
            (
                "columns of unities that decide nothing",
                f"{board_table.OTHER_COLUMNS_MAX}",
                "others have their own tables",
            ),
            (
                "results; fixtures; competitions searched for them",
                f"{around.RESULTS_SHOWN}; {around.FIXTURES_SHOWN}; the newest {around.COMPETITIONS_LOOKED_AT_MAX:,}",
                "others not shown",
            ),
            (
                "competitors of a searched ranking; lines found",
                f"{searching.SEARCHED_COMPETITORS_MAX:,}; {searching.FOUND_MAX:,}",
                "no search; 422",
            ),
            ("events searched for the last competition", f"{searches.LOOKED_BACK_EVENTS_MAX:,}", "no movement"),
            (
                "events, for movement by date",
                f"{board_table.MOVED_BY_DATE_EVENTS_MAX:,}",
                "movement since before the last recorded competition",
            ),
            (
                "for a page's recent results, sums of competitions; events before a past moment; events of points or "
                "the log, for *to defend*",
                f"{board_table.FORM_SUMS_SHOWN_MAX:,}; {board_table.FORM_EVENTS_MAX:,}; "
                f"{board_table.DEFENDED_EVENTS_MAX:,}",
                "not shown",
            ),
            (
                "events; deltas of a ranking, for a slider by dates and the explanation of a day's line",
                f"{folds.TIMELINE_EVENTS_MAX:,}; {folds.TIMELINE_DELTAS_MAX:,}",
                "a slider by events, a field for a day; 422 or 503",
            ),
            (
                "totals (competitors times unities) added up in browsers",
                f"{passages.PASSAGE_TOTALS_MAX:,}",
                "each moment is asked for; `passage.json`: 422",
            ),
            (
                "events; competitors of a race",
                f"{races.SERIES_EVENTS_MAX:,}; {races.SERIES_COMPETITORS_MAX}",
                "no race; `race.json`: 422",
            ),
            (
                "pictures that a process draws (of a past moment once)",
                f"{picture.PICTURES_AT_ONCE_MAX} at once, then {picture.PICTURES_PER_SECOND_MAX:g} a second",
                "429",
            ),
        ),
        "The console": (
            (
                "tournaments; competitors, competitions, lines of a page",
                f"{tournaments_page.TOURNAMENTS_SHOWN}; {lists_pages.ITEMS_SHOWN}",
                "further pages",
            ),
            ("rankings on a tournament's page", f"{overview_page.RANKINGS_SHOWN}", "others not shown"),
            (
                "competitions; competitors that a form offers",
                f"the newest {ranking_page.COMPETITIONS_SUGGESTED}; {changes.CHOSEN_MAX}",
                "see the lists; it asks for ids",
            ),
            ("lines shown before an import, or its undoing", f"{import_page.ROWS_SHOWN}", "others counted"),
            (
                "lines of CSV in an import of competitions",
                f"{competition_import_pages.PASTED_COMPETITIONS_MAX:,}",
                "several imports, or the command line",
            ),
            (
                "events; lines of a page of history",
                f"{history_page.HISTORY_EVENTS}; {history_page.HISTORY_LINES}",
                "further pages; interface and command line show all",
            ),
            (
                "lines that a preview compares; moves it shows",
                f"{foreseen.PREVIEW_AT_ONCE_MAX:,}; {change_page.MOVES_SHOWN}",
                "interface and command line show all",
            ),
            (
                "lines of a classification beyond those declared",
                f"{classification_page.FREE_CRITERIA}, and {terms.CRITERIA_MAX} in all",
                "declare, and open again",
            ),
            (
                "tournaments of a new token",
                f"{access_pages.TOKEN_TOURNAMENTS_MAX}; all of the admin's, if none is named",
                "a fault at the field",
            ),
            (
                "tokens; sessions listed",
                f"the newest {access_pages.TOKENS_SHOWN}; {sessions.SESSIONS_LISTED_MAX}",
                "the command line lists all tokens",
            ),
        ),
        "The command line": (
            (
                "an import's competitors; competitions; requests under way",
                f"{imported_competitors.IMPORT_COMPETITORS_MAX:,}; {imported_competitions.IMPORT_COMPETITIONS_MAX:,}; "
                f"{importer.IMPORT_REQUESTS_MAX}",
                "refused; refused; others wait",
            ),
            (
                "steps of an explanation; overtakings of a step; characters of an event set aside",
                f"{explanation_text.STEPS_TOLD_MAX}; {explanation_text.OVERTAKINGS_TOLD_MAX}; "
                f"{setting_aside_cli.SHOWN_MAX:,}",
                "others counted; `--json` has all",
            ),
        ),
        "The Python client": (
            (
                "connecting; silence of the service",
                f"{_seconds(client_sending.CONNECT_SECONDS_MAX)}; {_seconds(client_sending.SILENCE_SECONDS_MAX)}",
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
        table = _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
        beginning = rf"^## {re.escape(heading)}\n(?:(?!## ).*\n)*?"
        found = re.search(rf"{beginning}({re.escape(_HEAD)}(?:\|.*\n)*)", text, re.MULTILINE)
        if found is None:
            raise LookupError(heading)
        text = text[: found.start(1)] + table + text[found.end(1) :]
    return text


def write() -> None:
    """Writes the tables into the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
