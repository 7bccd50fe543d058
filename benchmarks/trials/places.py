"""How long it takes to give the places of a ranking anew, and after how many returns that happens.

    python -m benchmarks.trials.places [MEMBERS]

Everybody leaves and comes back, one after the other, until the places are given anew. Prints processor time.
"""

import sys
from time import process_time

from engine.domain.terms import CompetitorId
from projections.board.enrolment import Enrolment, Totals

FIRST_ID = 2**51


def main() -> None:
    members = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    enrolment = Enrolment(CompetitorId(FIRST_ID + n) for n in range(members))
    totals = Totals(enrolment, {competitor_id: place + 1 for place, competitor_id in enumerate(enrolment)})
    longest, returns, began_at = 0.0, 0, process_time()
    while enrolment.generation == 0:
        competitor_id = CompetitorId(FIRST_ID + returns % members)
        enrolment.remove(competitor_id)
        then = process_time()
        enrolment.enrol(competitor_id)
        longest, returns = max(longest, process_time() - then), returns + 1
    assert len(totals) == members
    print(
        f"{members:,} members, {returns:,} returns: {process_time() - began_at:.1f} s, of which the places that were "
        f"given anew {longest * 1000:.0f} ms"
    )


if __name__ == "__main__":
    main()
