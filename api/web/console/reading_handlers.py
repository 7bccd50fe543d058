"""The pages of a tournament in the console that change nothing."""

from datetime import UTC, datetime
from operator import itemgetter
from typing import Final

from api.access import auth
from api.desk.quotas import shares_of
from api.http.reply import Reply, header
from api.interface.declarations import RecallContext
from api.interface.fields import FROM_1, Field
from api.interface.resources.competitor_exports import EXPORT, EXPORTED_MAX, ExportQuestion, answer_export
from api.web.console import competition_import_pages, lists_pages
from api.web.console.answering import PageAsked
from api.web.console.first_steps import first_steps
from api.web.console.frame import CONSOLE_HEADERS, Venue, Viewer, tournament_address
from api.web.console.history_page import HISTORY_EVENTS, HISTORY_LINES, history_page
from api.web.console.lists_pages import competitions_page, competitors_page
from api.web.console.overview_page import RANKINGS_SHOWN, Overview, log_page, overview_page, publication_page
from api.web.console.ranking_page import ranking_page
from api.web.console.scoring_part import unscored_part
from api.web.console.webhooks_page import webhooks_page
from api.web.page import Query, RankingPage, Site
from api.web.ranking_pages import shown_page
from api.webhooks.webhooks import listed_webhooks
from engine.domain.terms import CompetitorId, RankingId, Sequence
from engine.log import import_runs
from engine.process.time_slices import in_time_slices
from projections.answers.board_table import BoardTableQuestion
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.competitors import CompetitorListQuestion
from projections.answers.history import HistoryQuestion
from projections.answers.rounds import RoundMatch, key_of
from projections.answers.scoring import ScoringQuestion, unscored_of
from projections.answers.tournament import TournamentQuestion
from projections.answers.view import ask
from projections.answers.zones import zone_of
from projections.tables import tables
from projections.verification.noted import last_verified

SOUGHT_AMONG_MAX: Final = 10_000
"""Competitions among which the overview seeks those without a result."""
OPEN_LOOKED_AT_MAX: Final = 500
"""Of those, the first ones whose date it looks at."""
VOIDED_FIELD: Final = Field(lists_pages.VOIDED, FROM_1, "1: those that do not count, too")


async def overview(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    return overview_page(viewer, venue, await _overview(context, viewer), asked.query)


async def log(context: RecallContext, viewer: Viewer, venue: Venue, _asked: PageAsked) -> bytes:
    return log_page(viewer, venue, await _overview(context, viewer))


async def _overview(context: RecallContext, viewer: Viewer) -> Overview:
    tournament_id, missing = context.live.tournament_id, await _missing(context)
    async with context.past.database.connection() as connection:
        checkpoint = await tables.checkpoint(connection, tournament_id)
        verified = (await last_verified(connection, [tournament_id])).get(tournament_id)
    return Overview(
        state=await ask(context, TournamentQuestion()),
        rankings=await context.rankings(RANKINGS_SHOWN),
        checkpoint=checkpoint,
        verified=verified,
        quota=await shares_of(context.past.database, context.live),
        steps=first_steps(context, viewer),
        open=len(missing),
        open_round=key_of(missing[0], zone_of(context.publication.presentation.zone)) if missing else "",
    )


async def _missing(context: RecallContext) -> list[RoundMatch]:
    """Those of the first competitions without a result that should have one, by date; none where there are too many to
    look at."""
    if len(context.live.board.competitions) > SOUGHT_AMONG_MAX:
        return []
    question = CompetitionListQuestion(has_result=False, voided=False, limit=OPEN_LOOKED_AT_MAX)
    found, now = await ask(context, question), datetime.now(UTC)
    over = [(one.date, one) for one in found.competitions.values() if one.date is not None and one.date < now]
    return [one for _, one in sorted(over, key=itemgetter(0)) if one.winner_id is None]


async def webhooks(context: RecallContext, viewer: Viewer, venue: Venue, _asked: PageAsked) -> bytes:
    async with context.past.database.connection() as connection:
        found = await listed_webhooks(connection, context.live.tournament_id)
    return webhooks_page(viewer, venue, found)


async def of_ranking(
    page: RankingPage, context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked
) -> bytes:
    ranking_id = RankingId(asked.ids["ranking_id"])
    site = _RankingSite(venue.name, venue.slug, viewer.static, venue.words, ranking_id=ranking_id)
    return await shown_page(page, context, site, ranking_id, {**asked.arguments, **asked.ids}, asked.query)


async def publication(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    return publication_page(viewer, venue, await ask(context, TournamentQuestion()), asked.query)


async def competitors(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    offset = asked.arguments.get("offset", 0)
    found = await ask(context, CompetitorListQuestion(offset=offset, limit=lists_pages.ITEMS_SHOWN))
    return competitors_page(viewer, venue, found, offset, asked.query)


async def export(context: RecallContext, _viewer: Viewer, _venue: Venue, asked: PageAsked) -> Reply:
    """A page of the export, as over HTTP, to be saved as a file."""
    competitor_id = CompetitorId(asked.ids["competitor_id"])
    after = Sequence(asked.arguments.get("after", 0))
    question = ExportQuestion(competitor_id=competitor_id, after=after, limit=EXPORTED_MAX)
    made = await answer_export(context, EXPORT, question)
    kept = header("Content-Disposition", f'attachment; filename="competitor-{competitor_id}.json"')
    return Reply(made.body, headers=CONSOLE_HEADERS + kept)


async def competitions(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    offset = asked.arguments.get("offset", 0)
    voided = None if lists_pages.VOIDED in asked.query else False
    question = CompetitionListQuestion(voided=voided, newest_first=True, offset=offset, limit=lists_pages.ITEMS_SHOWN)
    board, found = context.live.board, await ask(context, question)
    unscored, left_out = await in_time_slices(unscored_of(board, found.competitions)), len(board.voided)
    return competitions_page(viewer, venue, context.names, found, unscored, left_out, offset, asked.query)


async def ranking(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    arguments = asked.arguments
    table = await ask(
        context,
        BoardTableQuestion(
            ranking_id=RankingId(asked.ids["ranking_id"]),
            unity_id=arguments.get("unity_id"),
            offset=arguments.get("offset", 0),
        ),
    )
    ranking, unscored = context.ranking(RankingId(table.ranking_id)), None
    if ranking.scorings:
        found = await ask(context, ScoringQuestion(ranking.id))
        unscored = unscored_part(viewer, venue, context.names, found.unscored)
    return ranking_page(viewer, venue, ranking, table, unscored, asked.query)


async def history(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    ranking = context.ranking(RankingId(asked.ids["ranking_id"]))
    last = min(asked.arguments.get("last", venue.head.sequence), venue.head.sequence)
    first = Sequence(max(last - HISTORY_EVENTS + 1, 1))
    question = HistoryQuestion(ranking_id=ranking.id, first=first, last=last, limit=HISTORY_LINES)
    found = await ask(context, question)
    async with context.past.database.connection() as connection:
        senders = await auth.names_of(connection, {line.actor for line in found.lines})
    return history_page(viewer, venue, context, question, found, senders, asked.query)


async def imports(context: RecallContext, viewer: Viewer, venue: Venue, asked: PageAsked) -> bytes:
    async with context.past.database.connection() as connection:
        runs = await import_runs.runs(connection, context.live.tournament_id)
    return competition_import_pages.imports_page(viewer, venue, runs, asked.query)


class _RankingSite(Site, frozen=True, kw_only=True):
    """A ranking in the console, in place of a board, for the pages that boards have, too."""

    ranking_id: RankingId
    has_lines: bool = False

    def address(self, query: Query, below: str = "") -> str:
        return tournament_address(self.slug, f"/rankings/{self.ranking_id}{below}", query)
