import asyncio, random, time, os
from collections import Counter, defaultdict
from contextlib import AsyncExitStack, suppress
import asyncpg, pytest
from engine import log
from engine.commands import *
from engine.errors import *
from engine.events import *
from engine.terms import *
from projections.worker import Worker
from projections import tables, live as live_module
from tests.desks import *
from tests.proxy import Fault, proxy
from engine.database import open_database

SECONDS = float(os.environ.get("CHAOS", "10"))

@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(int(os.environ.get("SEED", "0")), int(os.environ.get("SEED", "0")) + int(os.environ.get("SEEDS", "1"))))
async def test_chaos(dsn, owner, seed):
    chance = random.Random(seed)
    counts = Counter()
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(proxy(dsn)) for _ in range(2)]
        desks = [await stack.enter_async_context(desk_at(p.dsn)) for p in proxies]
        sound = await stack.enter_async_context(open_database(dsn, name="sound"))
        arenas = [await open_arena(sound) for _ in range(6)]
        workdb = await stack.enter_async_context(open_database(proxies[0].dsn, name="worker"))
        worker = asyncio.create_task(Worker(workdb).run())
        stop = time.monotonic() + SECONDS
        acked = defaultdict(dict)   # tournament -> key -> (seq, amount)
        sent = defaultdict(dict)
        definite_no = defaultdict(set)
        maxlat = 0

        async def client(number):
            nonlocal maxlat
            n = 0
            while time.monotonic() < stop:
                n += 1
                arena = chance.choice(arenas)
                key = f"{number}/{n}"
                amount = number * 100000 + n
                kind = chance.random()
                if kind < 0.8: command = arena.points(amount)
                elif kind < 0.85: command = AddUnity(ranking_id=arena.ranking_id, unity_id=UnityId(10**9 + amount), name=f"u{chance.randrange(200)}")
                elif kind < 0.9: command = CloseRanking(ranking_id=arena.ranking_id)
                else: command = ReopenRanking(ranking_id=arena.ranking_id)
                points = isinstance(command, AddPoints)
                if points: sent[arena.tournament_id][amount] = key
                attempts = 0
                while True:
                    attempts += 1
                    desk = chance.choice(desks)
                    t = time.monotonic()
                    try:
                        r = await submit(desk, arena.tournament_id, command, key=key)
                        counts["ok" if not r.replayed else "replayed"] += 1
                        if points:
                            assert r.event.deltas[0].amount == amount
                            acked[arena.tournament_id][amount] = r.sequence
                            # I9
                            if chance.random() < .3:
                                for d in chance.sample(desks, 1):
                                    with suppress(Unavailable):
                                        async with d.lives.pinned(arena.tournament_id) as live:
                                            await d.lives.current(live)
                                            assert live.head.sequence >= r.sequence
                                            counts["read"] += 1
                        break
                    except Refusal as e:
                        counts[type(e).__name__] += 1
                        if points: definite_no[arena.tournament_id].add(amount)
                        break
                    except (Unavailable, OutcomeUnknown) as e:
                        counts[type(e).__name__] += 1
                        if time.monotonic() > stop + 20: raise
                        await asyncio.sleep(0.01)
                    finally:
                        maxlat = max(maxlat, time.monotonic() - t)

        async def trouble():
            while time.monotonic() < stop:
                await asyncio.sleep(chance.random() * 0.2)
                what = chance.randrange(7)
                counts[f"trouble {what}"] += 1
                if what == 0:
                    await owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('desk', 'worker') ORDER BY random() LIMIT 2")
                elif what == 1:
                    chance.choice(proxies).strike(*[chance.choice([Fault.BEFORE, Fault.UNFINISHED, Fault.AFTER]) for _ in range(chance.randrange(1, 4))])
                elif what == 2:
                    p = chance.choice(proxies); p.refusing = True; p.cut_all(); await asyncio.sleep(chance.random() * .3); p.refusing = False
                elif what == 3:
                    async with holding(dsn, HOLD_HEAD, chance.choice(arenas).tournament_id):
                        await asyncio.sleep(chance.random() * 1.5)
                elif what == 4:
                    await owner.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('desk', 'worker') AND state = 'active' ORDER BY random() LIMIT 2")
                elif what == 5:
                    p = chance.choice(proxies)
                    p.strike(Fault.LATE_COMMIT)
                    await asyncio.sleep(chance.random() * .8)
                    p.release(); await asyncio.sleep(0.05); p._released.clear()
                elif what == 6:
                    chance.choice(proxies).cut_all()

        await asyncio.gather(*(client(n) for n in range(1, 13)), trouble())
        for p in proxies: p._faults.clear(); p.release()
        for arena in arenas:
            events = await recorded(sound, arena.tournament_id)
            amounts = Counter(e.deltas[0].amount for e in events if isinstance(e, PointsAdded))
            assert all(v == 1 for v in amounts.values()), [k for k, v in amounts.items() if v > 1]
            got = acked[arena.tournament_id]
            for amount, seq in got.items():
                assert events[seq - 1].deltas[0].amount == amount
            assert set(amounts) == set(got), (set(amounts) ^ set(got))
            assert not set(amounts) & definite_no[arena.tournament_id]
            counts["events"] += len(events)
        # structure is consistent: replay judged
        from engine.tournament import Tournament, decide, evolve
        for arena in arenas:
            events = await recorded(sound, arena.tournament_id)
            state = Tournament()
            for e in events:
                if isinstance(e, PointsAdded): decide(state, AddPoints(ranking_id=e.ranking_id, deltas=e.deltas))
                if isinstance(e, UnityAdded): decide(state, AddUnity(ranking_id=e.ranking_id, unity_id=e.unity_id, name=e.name))
                if isinstance(e, RankingClosed): decide(state, CloseRanking(ranking_id=e.ranking_id))
                if isinstance(e, RankingReopened): decide(state, ReopenRanking(ranking_id=e.ranking_id))
                evolve(state, e)
        await until(lambda: uptodate(owner), 20)
        assert not worker.done()
        worker.cancel()
        await asyncio.wait([worker])
        for arena in arenas:
            async with sound.connection() as c:
                tail = await log.tail(c, arena.tournament_id, log.beginning(arena.tournament_id), blocks_max=100000)
                replayed = live_module.Live(arena.tournament_id, log.beginning(arena.tournament_id), live_module.Tournament(), live_module.Board())
                replayed.fold(tail.events, tail.head)
                assert await tables.load_board(c, arena.tournament_id) == replayed.board
                for d in desks:
                    async with d.lives.pinned(arena.tournament_id) as live:
                        await d.lives.current(live)
                        assert live.board == replayed.board
                        assert live.tournament == replayed.tournament
                        assert live.head == replayed.head
        print("CHAOS", seed, dict(counts), "max %.2f" % maxlat)

async def uptodate(owner):
    return 0 == await owner.fetchval("SELECT count(*) FROM head h LEFT JOIN checkpoint c USING (tournament_id) WHERE c.sequence IS DISTINCT FROM h.sequence")
