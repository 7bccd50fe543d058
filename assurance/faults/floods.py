"""Cases 39 and 54: more requests than there is room for, and more guesses than anybody needs.

wrk makes the flood, in C, because the harness would be out of breath before the service is; it goes to one service,
past the wires. Clients of the harness are at play meanwhile, and are judged. What wrk asked for is judged by counts.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Final

from api.access import auth
from api.desk.desk import SUBMIT_SECONDS_MAX
from assurance.faults.history import Outcome, percentile
from assurance.faults.integrity import verify
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, case
from assurance.faults.tools import WRK
from benchmarks.load import Load, loaded
from benchmarks.machine import rss_bytes
from benchmarks.traffic import REQUESTS, adds, get, store
from benchmarks.world import Tournament

USUAL_CONNECTIONS: Final = 64
WAITING_CONNECTIONS: Final = 1_500
"""So few that nothing is refused, however slow the database is here."""
FLOOD_CONNECTIONS: Final = 5_500
"""So many that a slow database cannot serve them in time."""
SLOW_SECONDS: Final = 0.15
GOODPUT_LEAST: Final = 0.8
_ADDS: Final = "SELECT count(*) AS n FROM event WHERE tournament_id = $1 AND kind = 'PointsAdded'"
_LOOKUPS: Final = "SELECT (idx_scan + seq_scan)::bigint AS n FROM pg_stat_user_tables WHERE relname = 'token'"


async def flooded(stage: Stage, requests: Path, connections: int, seconds: float) -> Load:
    """What wrk saw, with the `requests` that are stored there."""
    url = f"http://127.0.0.1:{stage.services[0].port}"
    return await loaded(url, requests, seconds=max(1, round(seconds)), connections=connections)


async def statuses(stage: Stage) -> Counter[str]:
    """How often the first service has answered with which, so far."""
    found: Counter[str] = Counter()
    for name, value in (await stage.figures(0)).items():
        if counted := re.fullmatch(r'tallybook_request_seconds_count{.*status="(\d+)".*}', name):
            found[counted[1]] += round(value)
        if name == "tallybook_turned_away_total":
            found["503"] += round(value)
    return found


def goodput(load: Load) -> float:
    """Answers with ok, a second."""
    return (load.answers - load.refused) / load.seconds


@case(
    39,
    "Overload",
    f"{FLOOD_CONNECTIONS:,} connections that ask again at once; then with a slow database ({1000 * SLOW_SECONDS:.0f} "
    "ms at each piece)",
    "503 early; goodput at least 80 % of the most; accepted within 15 s; back to normal; I1-I10",
    tools=(WRK,),
)
async def overload(trial: Trial) -> None:
    async with trial.stage() as stage:
        await stage.open_arenas(1)
        flood = stage.arenas.pop()  # what wrk asks for is not in the clients' history
        tournament = Tournament(
            tournament_id=flood.tournament_id,
            slug=flood.slug,
            ranking_id=flood.ranking_id,
            unity_ids=flood.unities,
            competitor_ids=flood.competitors,
            competition_ids=(),
        )
        requests = store(adds([tournament] * REQUESTS, stage.token, seed=trial.seed), trial.folder / "flood")
        seconds = trial.seconds(60, least=5)
        all_of_it: list[Load] = []
        for name, delay, connections in (
            ("CPU", 0.0, USUAL_CONNECTIONS),
            ("database", SLOW_SECONDS, WAITING_CONNECTIONS),
        ):
            stage.back[0].delay_seconds = (delay, delay)
            async with stage.load(pause_seconds=0.05):
                start = len(stage.history.attempts)
                most = await flooded(stage, requests, connections, seconds / 2)
                since = len(stage.history.attempts)
                told = await statuses(stage)
                load = await flooded(stage, requests, FLOOD_CONNECTIONS, seconds)
                memory = rss_bytes(stage.services[0].pid)
                stage.heal()
                await stage.resume()
            all_of_it += most, load
            told = await statuses(stage) - told
            left_off = told.pop("400", 0)  # bodies, by wrk, when its time was up
            trial.look("I10", left_off <= FLOOD_CONNECTIONS, f"{left_off} answers with 400")
            trial.look("I10", told.keys() <= {"200", "503"}, f"answers of the flooded service: {told}")
            before, accepted = (
                percentile([a for a in some if a.service == 0], 0.99)
                for some in (stage.history.attempts[start:since], stage.history.attempts[since:])
            )
            trial.look("I10", 0 < accepted < SUBMIT_SECONDS_MAX, f"p99 of what was accepted was {accepted:.1f} s")
            kept = goodput(load) / goodput(most)
            if delay and not told["503"]:
                trial.shortcoming += f"{name}: nothing was refused; "
            if kept < GOODPUT_LEAST:
                trial.shortcoming += f"{name}: goodput {100 * kept:.0f} % of the most; "
            trial.tell(
                f"limited by the {name}: {goodput(most):.0f}/s by {connections} connections; by {FLOOD_CONNECTIONS} "
                f"{goodput(load):.0f}/s ({100 * kept:.0f} %) and {load.refused / load.seconds:.0f}/s refused, p99 of "
                f"all {load.p99_us / 1e6:.1f} s, of other clients {before:.1f} and {accepted:.1f} s, {memory >> 20} MiB"
            )
        await trial.judge(stage)
        acknowledged = sum(load.answers - load.refused for load in all_of_it)
        recorded = (await stage.cluster.fetch(_ADDS, flood.tournament_id))[0]["n"]
        trial.look("I1", recorded >= acknowledged, f"{acknowledged} acknowledged by wrk's count, {recorded} recorded")
        trial.look("I3", recorded <= sum(load.sent for load in all_of_it), f"{recorded} recorded, more than were sent")
        verified = await verify(stage.cluster)  # the tables of that tournament too
        trial.look("I5", verified.code == 0, verified.err)
        trial.outcomes[Outcome.OK] += acknowledged
        trial.outcomes[Outcome.NO] += sum(load.refused for load in all_of_it)
        trial.deltas += acknowledged
        trial.tell(f"{acknowledged} acknowledged to wrk, {recorded} in the log")


@case(
    54,
    "Token brute force",
    "random tokens, half with a right checksum, as fast as wrk can, from good clients' address",
    "every guess refused; few cost a query; good clients served; I1-I10",
    tools=(WRK,),
)
async def guesses(trial: Trial) -> None:
    async with trial.stage() as stage:
        draw = trial.random

        def secret(length: int) -> str:
            return "".join(draw.choices(auth.BASE62, k=length))

        texts = [auth.text_of(secret(30)) if n % 2 else f"tb_{secret(36)}" for n in range(2 * REQUESTS)]
        path = f"/tournament/{stage.arenas[0].slug}/rankings.json"
        requests = store([get(path, text) for text in texts], trial.folder / "flood")
        async with stage.load(pause_seconds=0.05):
            before = len(stage.history.attempts)
            looked_up = (await stage.cluster.fetch(_LOOKUPS))[0]["n"]
            told = await statuses(stage)
            load = await flooded(stage, requests, USUAL_CONNECTIONS, trial.seconds(120, least=3))
            await stage.resume()
            during = percentile(stage.history.attempts[before:], 0.99)
        await trial.judge(stage)
        looked_up = (await stage.cluster.fetch(_LOOKUPS))[0]["n"] - looked_up
        told = await statuses(stage) - told
        refused = told["401"] + told["429"]
        trial.look("I10", told.keys() <= {"200", "401", "429"}, f"answers of the service: {told}")
        trial.look(
            "I10", 0 < load.answers == load.refused <= refused, f"{load}, {refused} refused by the service's count"
        )
        trial.look("I10", looked_up < 200 + 4 * load.seconds, f"{looked_up} queries for tokens")
        trial.outcomes[Outcome.NO] += load.refused
        trial.tell(
            f"{load.answers} guesses, {load.answers / load.seconds:.0f}/s, {told['429']} of them told to wait; "
            f"{looked_up} queries for tokens, with those of good clients; p99 of these {1000 * during:.0f} ms"
        )
