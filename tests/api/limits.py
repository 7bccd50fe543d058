"""The tables of docs/LIMITS.md, made from the constants that enforce the limits. `make docs` writes them."""

import re
from pathlib import Path
from typing import Final

from api.cli import charts, explanation_text, imports, lines
from api.cli import setting_aside as setting_aside_cli
from api.desk import conditions, desk, docket, opening
from api.desk import quotas as desk_quotas
from api.http import (
    auth,
    body,
    compression,
    connections,
    forms,
    outgoing,
    reply,
    sessions,
    settings,
    throttle,
    turned_away,
    zones,
)
from api.imports import competition_files, outcomes
from api.interface import names, paging, questions, windows
from api.interface.public import view
from api.interface.resources import (
    competitor_exports,
    competitor_standings,
    history,
    leaders,
    recent_results,
    standings,
    voiding,
)
from api.interface.resources.webhooks import TESTS_AT_ONCE_MAX
from api.service import app, health, supervisor
from api.stream import followers, listeners, pace, tickets
from api.web import board, board_page, competitions, explanation_page, moments, picture, search, table, table_lines
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
from engine.domain import expiry, notation, presentation, terms
from engine.log import quotas, reading
from engine.process import pace as waiting_pace
from projections.board import classified_lines
from projections.live import cache, classifications, orders, pool, selections
from projections.past import explanation, folds, mentions, pages, passage, past, searches, series
from projections.past import leaders as past_leaders
from projections.past import moments as past_moments
from projections.tables import defects, rebuild, sizes, sweep
from projections.verification import all_tournaments, archives, erasures, progress, setting_aside
from tallybook_client import sending as client_sending
from tallybook_client import stream as client_stream
from tallybook_client import webhooks as client_webhooks

PAGE: Final = Path(__file__).parents[2] / "docs" / "LIMITS.md"
_HEAD: Final = "| what | at most | then |\n|---|---|---|\n"

Row = tuple[str, str, str]
"""What is limited, to what, and what happens beyond that."""


def tables() -> dict[str, tuple[Row, ...]]:
    """The rows of each table, by the heading that it stands under."""
    assert terms.PARTICIPANTS_MAX == terms.DELTAS_MAX  # they share a row
    closed = "connection closed"
    return {
        "Time": (
            ("a request's head, from its first byte", _seconds(connections.HEAD_SECONDS_MAX), f"408, {closed}"),
            ("a request's body", _seconds(body.BODY_SECONDS_MAX), f"408, {closed}"),
            (
                "a client reading its answer",
                f"{_seconds(connections.UNREAD_SECONDS_MAX)}, and for a long answer a second more for each "
                f"{_bytes(connections.READ_BYTES_PER_SECOND_MIN)}",
                closed,
            ),
            ("a connection without a request", _seconds(app.KEEPALIVE_SECONDS), closed),
            (
                "the close of a connection",
                f"{_seconds(connections.LINGER_SECONDS_MAX)}, {_bytes(connections.LINGER_BYTES_MAX)} that still arrive",
                "its rest is thrown away",
            ),
            (
                "a write",
                _seconds(desk.SUBMIT_SECONDS_MAX + desk.COMMAND_WATCH_SECONDS),
                "see [RELIABILITY](RELIABILITY.md#the-contract)",
            ),
            ("a read", "20 s", "see there"),
            ("a wait for points that expire", _seconds(docket.EXPIRY_SECONDS_MAX), "503"),
            ("life of a token", f"{auth.EXPIRES_IN_DAYS_MAX:,} days", "refused"),
            ("use of a revoked token", _seconds(auth.KEPT_SECONDS_MAX + 1), "401"),
        ),
        "Requests": (
            (
                "headers of a request",
                f"{connections.HEADERS_MAX} headers of {connections.HEADER_BYTES_MAX:,} bytes each; "
                f"{_bytes(connections.HEAD_BYTES_MAX)}, if they arrive in pieces",
                f"431, {closed}",
            ),
            ("the address", f"{connections.TARGET_BYTES_MAX:,} bytes", f"414, {closed}"),
            ("a body", _bytes(forms.BODY_BYTES_MAX), f"413, {closed}"),
            ("a body that a refusal leaves unread", _bytes(reply.LEFT_UNREAD_BYTES_MAX), closed),
            ("ETags of `If-Match`", f"{conditions.IF_MATCH_TAGS_MAX}", "400"),
            ("fields of a form or of JSON", f"{forms.FORM_FIELDS_MAX:,}", f"400, {closed}"),
            (
                "a name; a description; a slug",
                f"{terms.NAME_CHARACTERS_MAX}; {terms.DESCRIPTION_CHARACTERS_MAX:,}; {terms.SLUG_CHARACTERS_MAX} "
                f"characters, of which a name gives {opening.STEM_CHARACTERS_MAX}",
                "422",
            ),
            ("tags of a competitor", f"{terms.TAGS_MAX}", "422"),
            (
                "a delta; a result; decimals of a unity",
                f"±{terms.DELTA_MAX:,}; ±{terms.RESULT_MAX:,}; {notation.DECIMALS_MAX}",
                "422",
            ),
            ("the time that points last", f"{expiry.LASTS_MAX.days:,} days", "422"),
            (
                "names; ids; time zones that a refusal suggests",
                f"{names.SIMILAR_MAX}, if there are at most {names.COMPARED_MAX:,} names; {names.IDS_LISTED_MAX}; "
                f"{zones.NEAR_ZONES_MAX}",
                "no others are named",
            ),
            (
                "a logo",
                f"{presentation.LOGO_BYTES_MAX:,} bytes, {presentation.LOGO_PIXELS_MAX:,} pixels wide and high, "
                f"{presentation.LOGO_DEPTH_MAX} bits a colour",
                "422",
            ),
            ("announced bytes of bodies under way in a process", _bytes(body.AWAITED_BYTES_MAX), "503"),
            ("events of one ranking that are undone at the same time", f"{terms.UNDONE_MAX:,}", "422"),
            (
                "lines of points that a voiding or striking, or its opposite, reverses",
                f"{terms.REVERSED_LINES_MAX:,}",
                "422",
            ),
            ("participants or deltas that one request names", f"{terms.DELTAS_MAX:,}", "422"),
            ("competitors or competitions that one request creates", f"{terms.ITEMS_MAX:,}", "422"),
            (
                f"answers above {_bytes(compression.AT_ONCE_BYTES_MAX)} being compressed in a process, not streamed",
                f"{compression.COMPRESSING_MAX}",
                "further ones are sent uncompressed",
            ),
        ),
        "Waiting": (
            (
                "expected wait of a change, for those of its tournament",
                _seconds(waiting_pace.EXPECTED_SECONDS_MAX),
                "503",
            ),
            (
                "expected wait of a read, for those of its tournament",
                _seconds(waiting_pace.EXPECTED_SECONDS_MAX),
                "503",
            ),
            (
                f"actual wait, if more than {docket.BLOCK_REQUESTS_MAX} changes of its tournament, or further reads, "
                "wait behind it",
                _seconds(waiting_pace.WAITED_SECONDS_MAX),
                "503, unjudged",
            ),
            (
                "expected or actual wait of a question about the past",
                _seconds(past.PAST_WAIT_SECONDS_MAX),
                "503",
            ),
            (
                "refusals of a process within a second",
                f"{turned_away.HELD_FROM}",
                f"their connections are not read for {turned_away.HELD_SECONDS_MIN:g} s or longer, "
                f"{_seconds(turned_away.HELD_SECONDS_MAX)} at most",
            ),
            ("bodies of the changes that wait in a process, together", _bytes(desk.WAITING_BYTES_MAX), "503"),
        ),
        "Connections": (
            (
                "connections of a process",
                f"{settings.CLIENT_CONNECTIONS_MAX:,}, or its open files less 128, if that is less",
                "a connection that has asked nothing gives way; if all have asked, the new one is closed",
            ),
            (
                "connections that wait for a process to accept them",
                f"{settings.UNACCEPTED_MAX:,}, and `net.core.somaxconn`",
                "the client's system tries again, first after a second",
            ),
            (
                "failed authentications of an address",
                f"{settings.FAILURES_AT_ONCE_MAX} at once, then {throttle.FAILURES_PER_SECOND_MAX:g} a second",
                "429. Clients that were let in before do not notice",
            ),
            (
                "requests of a token; of an address without a token",
                f"`serve --requests-per-second N` each, N up to {settings.REQUESTS_PER_SECOND_MAX:,}",
                f"429, for {_seconds(throttle.WAIT_SECONDS_MAX)} at most after the last one",
            ),
            ("entries of `X-Forwarded-For` that are believed", f"{settings.PROXIES_MAX}", "`--proxies` is refused"),
        ),
        "Processes": (
            ("processes of `serve`", f"{supervisor.PROCESSES_MAX}", "refused"),
            ("the start of a process", _seconds(supervisor.READY_SECONDS_MAX), "`serve` ends, or tries again"),
            (
                "requests under way when a process stops; the stop",
                f"{_seconds(app.SHUTDOWN_SECONDS_MAX)}; {_seconds(supervisor.STOP_SECONDS_MAX)}",
                "cut off; killed",
            ),
            (
                "connections of a process to PostgreSQL; of these, connections that read logs",
                f"{database.POOL_CONNECTIONS_MAX}; {pool.READERS_MAX}",
                f"others wait, {_seconds(database.ACQUIRE_SECONDS_MAX)} at most, then 503",
            ),
            ("judgings of a change that other processes overtake", f"{docket.JUDGED_MAX}", "503"),
            ("one statement", _seconds(database.STATEMENT_SECONDS_MAX), "503"),
            (
                "connecting to PostgreSQL; the wait of `migrate` for another",
                f"{_seconds(migrator.CONNECT_SECONDS_MAX)}; {_seconds(migrator.LOCK_SECONDS_MAX)}",
                "503; refused",
            ),
            ("shards of a distributed database", f"{distribution.SHARDS_MAX:,}", "refused"),
            (
                "memory that a process, API or worker, fills with tournaments",
                f"{_bytes(sizes.MEMORY_BYTES)}, estimated; the last one used stays; `--memory`, from "
                f"{settings.MEMORY_MIB_MIN} to {settings.MEMORY_MIB_MAX:,} MiB",
                "the least recently used is loaded again",
            ),
            (
                "rendered answers, and past tables of boards, kept of one tournament",
                f"{_bytes(cache.RENDERED_BYTES_MAX)}, of {_bytes(cache.KEPT_BYTES_MAX)} each; "
                f"{_bytes(cache.MOMENTS_BYTES_MAX)}",
                "made again on demand",
            ),
            (
                "classified lines kept of one tournament",
                f"{classifications.KNOWN_LINES_MAX:,}, of {classifications.KNOWN_RANKINGS_MAX} rankings",
                "made again on demand",
            ),
            (
                "compressed answers kept by a process",
                f"{_bytes(compression.COMPRESSED_BYTES_MAX)}, of {_bytes(compression.STREAM_BYTES_MAX)} each",
                "compressed again",
            ),
            (
                "time between two attempts with a stopped tournament, by a request; by a worker",
                f"{_seconds(pool.STOPPED_SECONDS)}; {_seconds(sweep.STOPPED_RETRY_SECONDS)}",
                "503 meanwhile",
            ),
            ("tournaments, and defects, that health names", f"{health.TROUBLED_MAX} each", "the others are not named"),
            ("time for which health shows a defect", _seconds(defects.SHOWN_SECONDS), "only the logs have it"),
            (
                "a quota; how old a process's sums may be",
                f"{quotas.BOUND_MAX:,}; {_seconds(desk_quotas.QUOTAS_SECONDS)}",
                "refused; a quota is exceeded by what was written meanwhile",
            ),
            (
                "differences of one tournament that `verify` names; `rebuild`; an import of an archive",
                f"{progress.TOURNAMENT_DIFFERENCES_MAX:,}; {rebuild.REBUILD_DIFFERENCES_MAX:,}; {archives.NAMED_MAX}",
                "the others are counted; left out; counted",
            ),
            (
                "attempts to erase, and to set aside, while others append",
                f"{erasures.ERASE_ATTEMPTS_MAX}; {setting_aside.SET_ASIDE_ATTEMPTS_MAX}",
                "refused",
            ),
            (
                "texts listed that name a competitor to be erased; names looked for",
                f"{mentions.MENTIONS_MAX}; the last {mentions.NAMES_MAX}",
                "the rest are counted; older names are not looked for",
            ),
            (
                "unreadable lines named of a list of erasures",
                f"{erasures.FAULTS_SHOWN_MAX}",
                "refused; the rest are not named",
            ),
            ("tournaments that `verify` checks at a time", f"{all_tournaments.PARALLEL_MAX}", "refused"),
            (
                "how far an archive's last time may be ahead of the clock",
                f"{archives.AHEAD_SECONDS_MAX // 3_600} h",
                "the import is refused",
            ),
        ),
        "Tournaments": (
            ("competitors of a tournament", f"{terms.COMPETITORS_MAX:,}", "422"),
            (
                "events, competitors, bytes of a tournament; of a token",
                "their [quota](OPERATIONS.md#quotas); by default there is none",
                "409; 429",
            ),
            ("competitions of a tournament", f"{terms.COMPETITIONS_MAX:,}", "422"),
            ("rankings of a tournament", f"{terms.RANKINGS_MAX:,}", "422"),
            ("competitors of a ranking", f"{terms.ENROLLED_MAX:,}", "422"),
            ("unities of a ranking", f"{terms.UNITIES_MAX}", "422"),
            (
                "criteria of a classification; competitions that `best` counts",
                f"{terms.CRITERIA_MAX}; {terms.BEST_MAX:,}",
                "422",
            ),
            (
                "sums of competitions examined for one classification; a preview makes two",
                f"{classified_lines.CLASSIFIED_SUMS_MAX:,}",
                "503",
            ),
            (
                "tournaments on the first page of the service",
                f"{view.LISTED_MAX}",
                "the others are not listed",
            ),
            (
                "lines of one public answer",
                f"{windows.WINDOW_LINES_MAX:,}, and the pages of history and explanations",
                "400",
            ),
            (
                "memory of a process for public views of frozen tournaments",
                f"{_bytes(view.FROZEN_BYTES_MAX)}, estimated; the last one asked for stays",
                "the least recently asked for is made again on demand, from a snapshot and the log",
            ),
        ),
        "Long answers": (
            ("questions about the past that a process computes at once", f"{past.PAST_REQUESTS_MAX}", "others wait"),
            (
                "lines of points on which the two clocks differ, for an answer with `on` or `since_on`",
                f"{past_moments.DATED_LINES_MAX:,}",
                "503",
            ),
            (
                "events of a log, and lines of points of a unity, that are read for its leaders",
                f"{folds.LEADERS_EVENTS_MAX:,}",
                "503",
            ),
            (
                "events, when points took place that expire in the time of `expiring.json`",
                f"{past_moments.DATED_LINES_MAX:,}",
                "503",
            ),
            ("competitors that lead together", f"{past_leaders.SHARED_MAX}", "nobody leads"),
            (
                "competitors, and differences between the clocks, that an answer about leaders lists",
                f"{leaders.TOLD_MAX}",
                "their number is given",
            ),
            ("competitors with the tag of a sub-table", f"{questions.SUB_TABLE_COMPETITORS_MAX:,}", "422"),
            ("recent results of each competitor", f"{recent_results.LAST_MAX}", "400"),
            ("sums of competitions examined for recent results", f"{recent_results.FORM_SUMS_MAX:,}", "422"),
            (
                "overtakings on a page of an explanation",
                f"{explanation.OVERTAKINGS_MAX:,}",
                "the page ends, with `next` as always",
            ),
            (
                "overtakings in a step with competitors whose totals stay",
                f"{explanation.OVERTAKINGS_MAX:,}",
                "the nearest are listed, with the number of the rest",
            ),
            (
                "lines of a ranking or unity whose JSON is shared by its answers",
                f"{standings.MADE_LINES_MAX:,}",
                "each answer makes its own",
            ),
            (
                "rendered competitors that a process keeps of one tournament",
                _bytes(cache.PIECES_BYTES_MAX),
                "the others are rendered on demand",
            ),
            (
                "bytes that a process holds because clients have not read them",
                _bytes(outgoing.UNSENT_BYTES_MAX),
                "the connection unread for longest is closed",
            ),
            (
                "waiting for room in these bytes",
                _seconds(outgoing.ROOM_SECONDS_MAX),
                "503 for a list; 500 for the long answer to a change, because the change has been made",
            ),
        ),
        "Windows, filters and previews": (
            ("lines of a window, ids that it names", f"{windows.WINDOW_LINES_MAX:,}", "400"),
            ("lines on each side of `around`", f"{windows.SPAN_MAX}", "400"),
            ("items on a page of a list", f"{paging.PER_PAGE_MAX}", "400"),
            (
                "lines of a page of history; steps of one of an explanation; reigns of one of leaders",
                f"{history.LINES_MAX:,}; {history.STEPS_MAX}; {leaders.REIGNS_MAX:,}",
                "400",
            ),
            ("points of a series", f"{series.SERIES_POINTS_MAX}", "every second one is left out"),
            (
                "events, and deltas, of a passage",
                f"{passage.PASSAGE_EVENTS_MAX:,}; {passage.PASSAGE_DELTAS_MAX:,}, or one larger event",
                "the next passage",
            ),
            (
                "lines of a competitor's standings on one page",
                f"{competitor_standings.COMPETITOR_LINES_MAX}",
                "the page ends, with `next`",
            ),
            (
                "events on one page of a competitor's export",
                f"{competitor_exports.EXPORTED_MAX:,}, found in {pages.SCANNED_EVENTS_MAX:,}",
                "the page ends, with `next`",
            ),
            ("lines that a preview compares", f"{voiding.PREVIEW_LINES_MAX:,}", "422"),
            (
                "orders of unities kept of one tournament",
                f"{orders.ORDERS_MAX:,}, or {_bytes(orders.ORDERS_BYTES_MAX)}",
                "the least recently used is dropped; one takes some 9 bytes a competitor",
            ),
            (
                "filtered lists kept of one tournament",
                f"{selections.SELECTIONS_MAX}, or {_bytes(selections.SELECTIONS_BYTES_MAX)}",
                "the least recently used is dropped",
            ),
            (
                "windows kept as they are, until something changes",
                _bytes(cache.WINDOWS_BYTES_MAX),
                "the others are made on demand",
            ),
        ),
        "Streams": (
            (
                "streams of a process",
                f"{followers.LISTENERS_SHARE:.0%} of its connections",
                "503; the others are left to requests",
            ),
            (
                "streams of one tournament in a process",
                f"{followers.LISTENERS_OF_TOURNAMENT_MAX:,}, and as many of the public",
                "503",
            ),
            (
                "public streams of a process",
                f"{followers.VISITORS_SHARE:.0%} of its streams",
                "503; boards then look every few seconds",
            ),
            (
                "public streams of one address in a process",
                f"{followers.LISTENERS_OF_VISITOR_MAX}",
                "the same. Behind a proxy, say `--proxies`, or all share its address",
            ),
            (
                "events of one tournament in the ring",
                f"{followers.RING_EVENTS_MAX:,}, {_bytes(followers.RING_BYTES_MAX)}",
                "older ones are read from the log",
            ),
            (
                "rings of all tournaments of a process",
                _bytes(followers.RINGS_BYTES_MAX),
                "the same, where the next event comes",
            ),
            (
                "a chunk for a listener",
                f"{reading.CHUNK_EVENTS_MAX:,} events of {_bytes(reading.CHUNK_BYTES_MAX)}; one that is behind "
                f"fetches {followers.READ_EVENTS_MAX} of {_bytes(followers.READ_BYTES_MAX)}; or one larger event",
                "the next chunk",
            ),
            (
                "bytes of a stream that the system holds for a client",
                f"{_bytes(listeners.UNSENT_BYTES_OF_SYSTEM_MAX)}, which Linux doubles",
                "the process holds one more chunk, which counts as unread",
            ),
            ("a client that does not read", _seconds(connections.UNREAD_SECONDS_MAX), "its stream is closed"),
            ("connections of a process that read logs for listeners", f"{followers.LOG_READERS_MAX}", "others wait"),
            ("unused tickets of a tournament", f"{tickets.TICKETS_MAX:,}", "503"),
            ("life of a ticket", _seconds(tickets.TICKET_SECONDS), "401"),
            ("life of a [session](CONSOLE.md#sessions)", f"{sessions.SESSION_HOURS} hours", "sign in again"),
            ("sessions of a token", f"{sessions.SESSIONS_MAX}", "the oldest ends"),
            ("time without an event", _seconds(followers.SILENT_SECONDS), "a sign of life"),
            (
                "events that a filter does not accept, without a sign",
                f"{listeners.PASSED_EVENTS_MAX:,}",
                "the position is sent",
            ),
            (
                "time for which tokens of streams cannot be looked up",
                _seconds(followers.UNCONFIRMED_SECONDS_MAX),
                "the streams end",
            ),
            ("`speed`", f"{pace.SPEED_MAX:,}", "400"),
            ("pause between two events with `speed`", _seconds(pace.PAUSE_SECONDS_MAX), "the next one comes"),
        ),
        "Webhooks": (
            ("webhooks of a database", f"{webhooks.WEBHOOKS_MAX:,}", "refused"),
            ("the address of a webhook", f"{addresses.URL_CHARACTERS_MAX:,} characters", "refused"),
            (
                "an answer",
                f"{_seconds(sending.ANSWER_SECONDS_MAX)}, of which {_seconds(sending.CONNECTING_SECONDS_MAX)} for "
                "the connection",
                "a failure",
            ),
            (
                "attempts to send an event",
                f"{len(deliverer.PAUSES_SECONDS) + 1}, after pauses of "
                f"{', '.join(map(_pause, deliverer.PAUSES_SECONDS))}",
                "parked, until `webhook resume`",
            ),
            ("requests under way", f"1 for each webhook, {deliverer.DELIVERED_AT_ONCE_MAX} in all", "others wait"),
            ("lines of a message of points", f"{message.MESSAGE_LINES_MAX}", "their number instead"),
            (
                "events that the totals of messages are found for at once",
                f"{totals.WINDOW_EVENTS_MAX:,}, with {totals.WINDOW_DELTAS_MAX:,} deltas; kept for "
                f"{deliverer.WINDOWS_KEPT_MAX} webhooks",
                "found again",
            ),
            (
                "a webhook at a time",
                f"{_seconds(deliverer.SERVED_SECONDS_MAX)}, {deliverer.SERVED_EVENTS_MAX} events, "
                f"{_bytes(deliverer.SERVED_BYTES_MAX)} of their bodies; or one larger event",
                "others come first",
            ),
            ("a stored reason of a failure", f"{webhooks.PROBLEM_CHARACTERS_MAX} characters", "its rest is cut off"),
            ("test messages over HTTP", f"{TESTS_AT_ONCE_MAX} at once in a process", "503"),
            ("life of a replaced secret", f"{webhooks.OLD_SECRET_HOURS} h", "it no longer signs"),
        ),
        "Boards": (
            (
                "lines of a page; of `/embed`; of `/tv`",
                f"{table.BOARD_LINES}; {board_page.EMBED.lines}; {board_page.TV_LINES}",
                "further pages",
            ),
            ("lines that a script asks for at once", f"{board.LINES_ASKED_MAX}", "400"),
            ("lines of a CSV", f"{board.CSV_LINES_MAX:,}", "further ones with `offset=`"),
            ("rankings with a tab", f"{board_page.TABS_MAX}", "a list to choose from"),
            (
                "lines of a table without a search, if no tag can be chosen",
                f"{board_page.SEARCHED_LINES_MIN}",
                "a search is offered",
            ),
            ("time of a page of `/tv`", _seconds(board_page.TV_SECONDS), "the next page"),
            (
                "participants shown of a competition of more than two",
                f"the first {competitions.SIDES_SHOWN} by points",
                "the others are not shown",
            ),
            ("overtakings shown of one step", f"{explanation_page.OVERTAKINGS_SHOWN_MAX}", "the rest are counted"),
            (
                "competitors at the same place among whom one is looked for",
                f"{table_lines.EQUAL_LOOKED_AT_MAX:,}",
                "its page is not found",
            ),
            (
                "unities with a column that decide nothing",
                f"{table.OTHER_COLUMNS_MAX}",
                "each of the others has its own table",
            ),
            (
                "results; fixtures; competitions among which they are looked for",
                f"{competitions.RESULTS_SHOWN}; {competitions.FIXTURES_SHOWN}; "
                f"the newest {competitions.COMPETITIONS_LOOKED_AT_MAX:,}",
                "others are not shown",
            ),
            ("tags that can be chosen", f"{search.TAGS_OFFERED_MAX}", "others with `tag=`"),
            (
                "competitors of a ranking that is searched; lines found",
                f"{search.SEARCHED_COMPETITORS_MAX:,}; {search.FOUND_MAX:,}",
                "no search is offered; 422",
            ),
            ("steps of an explanation on a page", f"{board.STEPS_SHOWN}", "further pages for earlier ones"),
            (
                "events searched for the last competition",
                f"{searches.LOOKED_BACK_EVENTS_MAX:,}",
                "no movement is shown",
            ),
            (
                "events of the log, for movement of now by date",
                f"{table.MOVED_BY_DATE_EVENTS_MAX:,}",
                "movement since before the competition recorded last",
            ),
            (
                "sums of competitions searched for the recent results of a page",
                f"{table.FORM_SUMS_SHOWN_MAX:,}",
                "none are shown",
            ),
            (
                "events of points, or of the log, that *to defend* is read from",
                f"{table.DEFENDED_EVENTS_MAX:,}",
                "it is not shown",
            ),
            (
                "events up to a past moment whose recent results are shown",
                f"{table.FORM_EVENTS_MAX:,}",
                "none are shown",
            ),
            (
                "events of the log, and deltas of the ranking, for a slider by dates",
                f"{folds.TIMELINE_EVENTS_MAX:,}; {folds.TIMELINE_DELTAS_MAX:,}",
                "a slider through events; a field for a day",
            ),
            (
                "totals (competitors times unities) that browsers add up",
                f"{table.PASSAGE_TOTALS_MAX:,}",
                "the service is asked for each moment; `passage.json` answers 422",
            ),
            (
                "events, and competitors of a ranking, for a race",
                f"{table.SERIES_EVENTS_MAX:,}; {table.SERIES_COMPETITORS_MAX}",
                "no race is offered; `race.json` answers 422",
            ),
            ("competitors that a race shows", f"the first {moments.RACERS_MAX}", "the others are left out"),
            ("lines of a picture", f"the first {picture.PICTURE_LINES}", "the number of the others is shown"),
            (
                "pictures that a process draws; each picture of a past moment is drawn once",
                f"{picture.PICTURES_AT_ONCE_MAX} at once, then {picture.PICTURES_PER_SECOND_MAX:g} a second",
                "429",
            ),
        ),
        "The console": (
            ("tournaments of a page", f"{tournaments_page.TOURNAMENTS_SHOWN}", "further pages"),
            ("rankings on the page of a tournament", f"{overview_page.RANKINGS_SHOWN}", "the rest are not shown"),
            ("competitors, competitions, lines of a page", f"{lists_pages.ITEMS_SHOWN}", "further pages"),
            ("competitions that a form suggests", f"the newest {ranking_page.COMPETITIONS_SUGGESTED}", "see the lists"),
            ("competitors that a form shows to be chosen", f"{changes.CHOSEN_MAX}", "their ids are asked for"),
            (
                "lines that the look before an import, or before its undoing, shows",
                f"{import_page.ROWS_SHOWN}",
                "the others are counted",
            ),
            (
                "lines of CSV in an import of competitions",
                f"{competition_import_pages.PASTED_COMPETITIONS_MAX:,}",
                "import several times, or on the command line",
            ),
            (
                "events, and lines, of a page of history",
                f"{history_page.HISTORY_EVENTS}; {history_page.HISTORY_LINES}",
                "further pages; the interface and the command line show all",
            ),
            (
                "lines that a preview compares; moves of a table that it shows",
                f"{voiding.PREVIEW_AT_ONCE_MAX:,}; {change_page.MOVES_SHOWN}",
                "the interface and the command line show all",
            ),
            (
                "lines of a classification beyond those declared",
                f"{classification_page.FREE_CRITERIA}, and {terms.CRITERIA_MAX} in all",
                "declare, and open it again",
            ),
            (
                "tournaments of a token that is made here",
                f"{access_pages.TOKEN_TOURNAMENTS_MAX}; all of the admin's, if none is named",
                "a fault next to the field",
            ),
            (
                "tokens; sessions that are listed",
                f"the newest {access_pages.TOKENS_SHOWN}; the newest {sessions.SESSIONS_LISTED_MAX}",
                "the command line lists all tokens",
            ),
        ),
        "The command line": (
            (
                "competitors of an import; competitions; requests of it under way",
                f"{imports.IMPORT_LINES_MAX:,}; {competition_files.IMPORT_COMPETITIONS_MAX:,}; "
                f"{outcomes.IMPORT_REQUESTS_MAX}",
                "refused; refused; others wait",
            ),
            (
                "lines of a chart; of these with a name and a colour",
                f"{lines.CHART_LINES_MAX}; {charts.LABELLED_MAX}",
                "refused; the others are grey",
            ),
            (
                "steps of an explanation; overtakings of one step",
                f"{explanation_text.STEPS_TOLD_MAX}; {explanation_text.OVERTAKINGS_TOLD_MAX}",
                "the others are counted; `--json` has all",
            ),
            ("characters shown of an event that is set aside", f"{setting_aside_cli.SHOWN_MAX:,}", "`--json` has all"),
        ),
        "The Python client": (
            (
                "connecting; silence of the service",
                f"{_seconds(client_sending.CONNECT_SECONDS_MAX)}; {_seconds(client_sending.SILENCE_SECONDS_MAX)}",
                "sent again, then `Unavailable` or `OutcomeUnknown`",
            ),
            ("one event of a stream", _bytes(client_stream.LINE_BYTES_MAX), "the stream ends with an error"),
            ("age of the signature of a message", _seconds(client_webhooks.TOLERANCE_SECONDS), "it is refused"),
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
