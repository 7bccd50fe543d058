"""A worker, which folds the log into the tables (projections/tables/worker.py).

It claims the checkpoint, reads what follows it, and saves rows and checkpoint in one transaction. It keeps the board in
memory, and uses it again if that is of the log at the checkpoint.
"""

from msgspec.structs import replace

from assurance.model.protocol import Protocol, Steps
from assurance.model.scenario import Mistake
from assurance.model.state import Tables, Worker, World


def steps(protocol: Protocol, world: World) -> Steps:
    """What the worker may do next."""
    worker, database = world.worker, world.database
    if worker is None:
        return
    checkpoint = database.tables.checkpoint
    if worker.folded is None:
        if len(checkpoint) < len(database.log):
            kept = worker.kept
            rows = kept if kept == checkpoint else database.tables.rows
            folded = rows + database.log[len(checkpoint) :]
            claimed = Worker(folded=folded, claimed=database.log)
            yield f"The worker claims the checkpoint at {len(checkpoint)} and folds on.", replace(world, worker=claimed)
        return
    if protocol.mistake is Mistake.CHECKPOINT and not worker.saved:
        tables = replace(database.tables, rows=worker.folded)
        saved = replace(world, database=replace(database, tables=tables), worker=replace(worker, saved=True))
        yield "The worker commits the rows.", saved
    else:
        tables = Tables(worker.folded, worker.claimed)
        done = replace(world, database=replace(database, tables=tables), worker=Worker(kept=worker.folded))
        yield "The worker commits the rows and the checkpoint.", done
    if world.left.worker_crashes:
        left = replace(world.left, worker_crashes=world.left.worker_crashes - 1)
        yield "The worker dies, and another takes its place.", replace(world, worker=Worker(), left=left)
