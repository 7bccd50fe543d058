"""Winners that contradict results: the operations accept them, every other door refuses them. Pure."""

from msgspec import UNSET

from engine.domain.commands import AddCompetition, ChangeCompetition, RecordResult
from engine.domain.faults import refuse_if_any
from engine.domain.judging import decide
from engine.domain.rescoring import competitions_of, is_scored
from engine.domain.scoring import named_winner_faults, scorings_of
from engine.domain.state import State
from engine.domain.steps import Steps


def refuse_wrong_winner(state: State, command: AddCompetition | ChangeCompetition | RecordResult) -> Steps[None]:
    """Where results give points, raises Unacceptable if the command leads to a result that contradicts its winner, or
    to a shoot-out without one. Raises as `decide`."""
    if not is_scored(state) or (command.result is UNSET and command.winner_id is UNSET):
        return
    for competition in competitions_of(state.competitions, decide(state, command)).values():
        scorings = [scoring for _, scoring in scorings_of(state.rankings.values(), competition)]
        refuse_if_any((yield from named_winner_faults(competition, scorings)))
