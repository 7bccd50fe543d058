"""The protocol as a model small enough to visit every state of it.

Two API processes of one tournament; clients that ask, give up and ask again; a reader, a listener and a worker;
crashes, lost connections, cancelled waits, one failover or restore. An action takes one state of all this to another.
The search goes through every order in which actions can follow each other, and checks in every state whether a promise
of docs/RELIABILITY.md is broken. Tests and campaigns see some of these orders. This sees all of them, but of a model.

    make model                          every scenario, with figures
    python -m assurance.model DIGEST        the story of a planted mistake

    state.py        what a state is made of               search.py       the search, and states that are the same
    scenario.py     what can be asked, and go wrong       scenarios.py    the bounds, and how many states they give
    board.py        what a log means                      mistakes.py     planted mistakes, where each shows
    protocol.py     what all actions need                 invariants.py   the promises
    clients.py  docket.py  appender.py  database.py  barrier.py  stream.py  worker.py  faults.py
                    the actions; each file is named after the part of the product that it models

What the model leaves out, and why nothing hides there:

- Of a tournament there is one ranking and one competition. What depends on ids (creations, slugs, tokens) is not there.
- A digest names the history before it. Here the history itself stands for it, so no two digests collide.
- A transaction is executed in one step while it holds the tournament's lock, and seen by nobody until it commits.
- What a process does without waiting is one step. An answer reaches its client when it leaves. A slower one leaves more
  time for everything else, and that is another order, which is visited too.
- Groups of tournaments, bounds and times are left out. A time that is up may come at any moment.
- A docket of a live that was dropped ends its work before the next one begins. In the product they may overlap, as two
  processes do.
- Two processes can do the same things, so one of two states that differ only in which is which is visited.
"""
