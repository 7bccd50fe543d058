"""What operators read about limits is what the service enforces, and they read about every limit that they can meet."""

from typing import Final

import pytest

from api.web.console import history_page, reading_handlers
from tests.api import limits
from tests.bounds import Bounds, declared, named_by

INTERNAL: Final[dict[str, str]] = {
    "size of a chunk of work, so that others are not held up: it changes when, not what": """
        engine.domain.scoring: PARTICIPANTS_AT_ONCE
        engine.log.appender: BATCH_BLOCKS_MAX BATCH_MIN LANES_MAX UNSEEN_BYTES_MAX
        engine.log.import_runs: REQUESTS_AT_ONCE_MAX
        engine.log.reading: CHUNK_BYTES_MAX CHUNK_EVENTS_MAX COMPETITIONS_AT_ONCE_MAX EVENTS_OF_COMPETITION_AT_ONCE_MAX
            IDEMPOTENCY_KEYS_MAX LOOKED_UP_AT_ONCE_MAX
        engine.log.appending: SET_MIN
        engine.log.rows: SLICE_CHARACTERS_MAX
        engine.log.tails: TAIL_BLOCKS_MAX TAIL_EVENTS_MAX TAIL_BYTES_MAX
        engine.process.time_slices: SHARED_SLICE_SECONDS SLICE_SECONDS_MAX WOKEN_AT_ONCE WOKEN_PER_SECOND_MIN
        projections.answers.passages: PASSAGE_TOTALS_MAX
        projections.board.selection: LOOKED_AT_ONCE
        projections.board.sub_table: SOUGHT_AT_ONCE_MAX
        projections.live.nested_sets: MOVED_AT_ONCE_MAX
        projections.live.orders: MADE_AT_ONCE_MAX _MOVED_AT_ONCE
        projections.live.tournament: BEHIND_EVENTS_MAX BLOCKS_AT_ONCE_MAX BYTES_AT_ONCE_MAX BYTES_LOADED_AT_ONCE
            FOLDED_AT_ONCE
        projections.past.leaders: _LINES_AT_ONCE _REIGNS_AT_ONCE
        projections.past.pages: SCANNED_EVENTS_MAX
        projections.past.passage: PASSAGE_EVENTS_MAX PASSAGE_DELTAS_MAX
        projections.past.searches: SEARCHED_EVENTS_AT_ONCE _LOOKED_BACK_AT_ONCE
        projections.tables.rebuild: HELD_EVENTS_MAX
        projections.tables.snapshots: INTERVAL_EVENTS_MIN
        projections.tables.sweep: LOOK_TOURNAMENTS_MAX
        projections.tables.tables: ROWS_MAX COMPETITIONS_AT_ONCE
        projections.tables.wakeup: TOURNAMENTS_MAX HINTS_MAX
        projections.tables.worker: BATCH_TOURNAMENTS_MAX
        projections.verification.erasures: READ_EVENTS_AT_ONCE
        projections.verification.source: TOGETHER_MAX SMALL_EVENTS_MAX SMALL_BYTES_MAX TOGETHER_ROWS_MAX
        projections.verification.stored_log: BLOCKS_MAX BYTES_MAX
        api.desk.docket: BLOCK_LINES_MAX
        api.imports.importer: IMPORT_REQUESTS_MAX
        api.imports.undoing: DIVIDED_ATTEMPTS_MAX
        api.http.accepting: ACCEPTED_AT_ONCE_MAX
        api.http.compression: PLAIN_BYTES_MAX
        api.http.connections: LINGER_BYTES_MAX UNREAD_BYTES_MAX
        api.http.reply: LEFT_UNREAD_BYTES_MAX WHOLE_BYTES_MAX
        api.interface.rendering: LINES_AT_ONCE_MAX
        api.interface.resources.standings: SHORT_LINES_MAX
        api.stream.followers: LOG_READERS_MAX LOOKED_AT_ONCE_MAX READ_AT_ONCE_MAX READ_BYTES_MAX READ_EVENTS_MAX
        api.stream.listeners: UNSENT_BYTES_OF_SYSTEM_MAX
        api.web.board: CSV_LINES_AT_ONCE
        api.webhooks.deliverer: SERVED_BYTES_MAX SERVED_EVENTS_MAX SERVED_SECONDS_MAX
        tallybook_client.client: LINES_MAX""",
    "size of what is remembered or packed: what is dropped is looked up or made again": """
        projections.board.hierarchy: LEAF_STOPS_MAX _LEAF_MIN
        projections.board.results: _LIST_MAX
        projections.columns.packed: RECENT_MAX
        projections.columns.shards: WHOLE_MAX
        projections.columns.sorted_integers: LEAF_MAX _LEAF_MIN
        projections.live.cache: KEPT_BYTES_MAX MOMENTS_BYTES_MAX PIECES_BYTES_MAX RENDERED_BYTES_MAX WINDOWS_BYTES_MAX
        projections.live.classifications: KNOWN_LINES_MAX KNOWN_RANKINGS_MAX
        projections.live.orders: ORDERS_BYTES_MAX ORDERS_MAX
        projections.live.pool: NOTED_MAX READERS_MAX
        projections.live.selections: LOOKED_AGAIN_MAX SELECTIONS_BYTES_MAX SELECTIONS_MAX
        projections.tables.worker: KNOWN_MAX OUTDATED_MAX
        api.desk.remembered: SLUGS_MAX REFUSALS_MAX
        api.access.auth: HASHES_KEPT_MAX TOKENS_KEPT_MAX
        api.http.compression: COMPRESSED_BYTES_MAX STREAM_BYTES_MAX
        api.http.heads: HEADS_KEPT_MAX HEAD_KEPT_BYTES_MAX HEADS_NOTED_MAX
        api.http.preferences: ENCODINGS_KEPT_MAX ENCODINGS_KEPT_CHARACTERS_MAX
        api.http.router: PATHS_KEPT_MAX PATH_KEPT_CHARACTERS_MAX
        api.http.throttle: THROTTLE_KEYS_MAX
        api.http.turned_away: KNOWN_SECONDS FULL_KNOWN_MAX
        api.interface.handlers: QUERIES_KEPT_MAX QUERY_KEPT_CHARACTERS_MAX
        api.interface.resources.points: AMOUNTS_KEPT_MAX
        api.interface.resources.standings: MADE_LINES_MAX
        api.stream.followers: RINGS_BYTES_MAX RING_BYTES_MAX RING_EVENTS_MAX
        api.web.board: ADDRESS_KEPT_CHARACTERS_MAX
        api.web.drawing: _LETTERS_KEPT_MAX
        api.web.picture: PICTURES_KEPT_MAX
        api.webhooks.deliverer: WINDOWS_KEPT_MAX
        api.webhooks.totals: WINDOW_DELTAS_MAX WINDOW_EVENTS_MAX""",
    "number of attempts after which the work is done another way, or an answer asks to try again": """
        engine.log.appender: APPEND_ATTEMPTS_MAX
        projections.live.orders: OVERTAKEN_MAX
        projections.live.selections: ROUNDS_MAX
        projections.tables.rebuild: CLAIMS_MAX
        projections.verification.erasures: ERASE_ATTEMPTS_MAX
        projections.verification.setting_aside: SET_ASIDE_ATTEMPTS_MAX
        api.desk.docket: JUDGED_MAX
        api.desk.opening: SLUG_ATTEMPTS_MAX
        api.desk.remembered: DRAW_SECONDS_MAX
        api.access.auth: LOOKUPS_AT_ONCE_MAX
        projections.live.tries: READS_MAX""",
    "pace of the service's own looks and pauses, within the times that the pages name": """
        engine.database.distribution: COPIES_LOOKS_MAX COPIES_PAUSE_SECONDS
        engine.database.embedded: EMBEDDED_WATCH_SECONDS
        engine.database.migrator: CLOSE_SECONDS_MAX _LOCK_POLL_SECONDS
        engine.database.nodes: REMEMBERED_SECONDS
        engine.database.pool: AVOIDED_SECONDS
        engine.log.appender: _PAUSE_SECONDS
        engine.log.clock: BEHIND_SECONDS_MAX SAID_EVERY_SECONDS
        projections.live.pool: RELOADED_SECONDS NOTED_SECONDS STOPPED_SECONDS
        projections.tables.defects: SHOWN_SECONDS
        projections.tables.sweep: STOPPED_RETRY_SECONDS
        projections.tables.rebuild: CLAIM_PAUSE_SECONDS
        projections.tables.wakeup: INTERVAL_SECONDS
        projections.tables.worker: WORKER_ROUND_SECONDS_MIN WORKER_POLL_SECONDS NODES_SECONDS
        projections.verification.continuous: VERIFICATION_ROUND_SECONDS_MIN RETRY_SECONDS
        api.cli.service: NOTE_SECONDS LIVE_PAUSE_SECONDS
        api.desk.desk: EXPIRY_WATCH_SECONDS EXPIRY_SWEEP_SECONDS
        api.desk.docket: READ_AGAIN_SECONDS
        api.desk.quotas: QUOTAS_SECONDS
        api.http.accepting: ACCEPT_AGAIN_SECONDS
        api.access.auth: RENEWED_SECONDS
        api.http.connections: CONNECTION_WATCH_SECONDS LINGER_SECONDS_MAX
        api.http.outgoing: STUCK_SECONDS _LOOK_SECONDS
        api.http.router: _GIVING_WAY_SECONDS
        api.http.sharing: PREFLIGHT_SECONDS
        api.http.throttle: _ROUNDING_SECONDS
        api.service.figures: LOOK_SECONDS
        api.service.supervisor: RESTART_SECONDS
        api.stream.followers: NEWS_SECONDS ROUND_SECONDS_MIN SILENT_SECONDS SWEEP_SECONDS TOKENS_SECONDS
        api.stream.listeners: PASSED_EVENTS_MAX _PIECE_SECONDS
        api.webhooks.deliverer: DUE_SECONDS DUE_IN_ALL_SHARDS_SECONDS FIGURES_SECONDS DEFECT_SECONDS
            INTERRUPTED_SECONDS SILENT_SESSION_SECONDS_MAX""",
    "width of an integer, a file or a protocol that is not ours, or a consequence of a limit on the page": """
        engine.database.embedded: SOCKET_PATH_BYTES_MAX
        engine.domain.notation: DIGITS_READ_MAX
        engine.domain.terms: EXCESS_MAX SCORE_PARTICIPANTS_MAX SET_ASIDE_MAX ID_MAX
        engine.log.archive: ARCHIVE_LINE_BYTES_MAX
        engine.log.registry: TOURNAMENT_ID_MAX
        api.imports.readers.archives: MEMBERS_MAX
        api.imports.readers.cells: SHEETS_MAX
        api.imports.readers.clics: MINUTES_PENALTY_MAX
        api.imports.readers.elements: DEPTH_MAX TOKEN_BYTES_MAX
        api.imports.readers.iof: _SECONDS_MAX
        api.imports.readers.trf: _ROUNDS_MAX
        api.imports.written_trf: _ROUNDS_MAX
        api.imports.readers.xlsx: _CELLS_KEPT _KEPT_BYTES_MAX _ROWS_MAX
        api.cli.telemetry: PORT_MAX
        engine.domain.ids: _ID_DIGITS_MAX
        api.interface.resources.points: _DELTA_DIGITS_MAX _DELTA_CHARACTERS_MAX
        api.service.api_process: DESCRIPTORS_KEPT
        api.web.calendar: CALENDAR_LINE_BYTES_MAX
        api.web.console.console: _SESSION_SECONDS
        api.webhooks.addresses: _HOST_CHARACTERS_MAX _LOOKUP_SECONDS_MAX
        tallybook_client.webhooks: BODY_BYTES_MAX""",
    "what the checks of an untrue or foreign log read of it": """
        projections.verification.archives: IDS_FOLLOWED_MAX
        projections.verification.erasures: LINE_BYTES_MAX
        projections.verification.log_checks: UNREVERSED_MAX
        projections.verification.stored_log: LOOK_SECONDS_MAX
        projections.verification.table_checks: STRAYS_MAX CHECK_SECONDS_MAX
        projections.verification.witness: UNREADABLE_MAX NOTE_BYTES_MAX""",
    "length at which a message, a drawing or a column of text is cut": """
        api.cli.setting_aside: SHOWN_MAX
        projections.past.mentions: MENTIONS_MAX
        projections.tables.rebuild: REBUILD_DIFFERENCES_MAX
        api.cli.overview: COLUMNS_MIN
        api.web.console.competition_import_pages: _PARTICIPANTS_SHOWN
        api.web.console.reading_handlers: SOUGHT_AMONG_MAX OPEN_LOOKED_AT_MAX
        api.interface.new_match: TWINS_AMONG_MAX
        api.imports.readers.brought: DEFECTS_SHOWN NOTES_SHOWN
        engine.domain.faults: CIRCLE_SHOWN_MAX
        engine.domain.scoring: _KEY_SHOWN_MAX SHOWN_KEYS_MAX
        projections.verification.archives: NAMED_MAX
        projections.verification.erasures: FAULTS_SHOWN_MAX
        projections.board.differences: SHOWN_CHARACTERS_MAX
        projections.tables.defects: REASON_CHARACTERS_MAX
        api.cli.history_text: NAME_CELLS_MAX
        engine.domain.faults: _SHOWN_CHARACTERS_MAX
        projections.answers.zones: NEAR_ZONES_MAX _COMPARED_CHARACTERS_MAX
        api.interface.names: COMPARED_MAX IDS_LISTED_MAX SIMILAR_MAX UNKNOWN_COMPARED_MAX
        api.webhooks.webhooks: PROBLEM_CHARACTERS_MAX
        api.web.accent: LEGIBLE_CONTRAST_MIN
        api.web.board_page: SEARCHED_LINES_MIN
        projections.answers.around: LOOKED_AT_MAX
        api.web.docs.examples: FOLDED_CHARACTERS_MAX
        api.web.drawing: DRAWN_CHARACTERS_MAX _ROW_MAX _ZONE_WIDTH_MIN
        api.web.words: _DIGITS_UNGROUPED_MAX""",
    "what the database needs, which OPERATIONS and CITUS say": """
        engine.database.distribution: NODES_MIN
        engine.database.pool: AROUND_CONNECTIONS_MAX
        engine.database.sessions: POSTGRES_MAJOR_MIN""",
    "the demo and the embedded server, which serve one user": """
        engine.database.embedded: JOIN_SECONDS INITDB_SECONDS PROBE_SECONDS START_SECONDS LEFTOVER_SECONDS STOP_SECONDS
            EMBEDDED_POLL_SECONDS
        api.cli.standings: TABLE_LINES_MAX
        api.cli.service: LIVE_CONNECTIONS_MAX""",
}
"""The bounds that nobody outside meets as a limit, by the reason."""


def test_the_limits_are_those_that_operators_read() -> None:
    """`make docs` writes the tables of the page."""
    page = limits.PAGE.read_text(encoding="utf-8")
    assert page == limits.written(page)


def test_a_row_of_the_page_has_one_limit() -> None:
    rows = [row for table in limits.tables().values() for row in table]
    assert [what for what, _, _ in rows if ";" in what] == []


def test_every_bound_is_on_the_page_or_internal_for_a_reason() -> None:
    internal = [bound for names in INTERNAL.values() for bound in _bounds(names)]
    on_page = named_by(limits)
    assert sorted({*internal} & on_page) == []
    assert sorted(internal) == sorted({*declared()} - on_page)


def test_a_test_sets_a_bound_wherever_it_is_known_and_only_one_that_there_is(bounds: Bounds) -> None:
    bounds(HISTORY_EVENTS=3)
    assert history_page.HISTORY_EVENTS == reading_handlers.HISTORY_EVENTS == 3
    for name in ("NO_SUCH_EVENTS_MAX", "_STEP_COMPETITORS"):
        with pytest.raises(LookupError):
            bounds(**{name: 3})


def _bounds(listed: str) -> list[str]:
    bounds, module = [], ""
    for word in listed.split():
        if word.endswith(":"):
            module = word[:-1]
        else:
            bounds.append(f"{module}.{word}")
    return bounds
