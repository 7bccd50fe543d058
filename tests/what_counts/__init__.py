"""Random tournaments against a naive model of what counts, by every door that shows it.

`model.py` says what there should be, from the documentation alone; `results.py`, what results give by scorings.
`playing.py` asks for random commands, and tells the model of those that are accepted. `doors.py` compares each answer
with the model. A seed is always the same tournament.
"""
