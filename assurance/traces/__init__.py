"""What real processes do, held against the model (`assurance/model`).

Two API processes and two workers of one database record what they do, while clients ask and listen, processes are
killed and lose their connections, and PostgreSQL crashes, is replaced by a standby, or put back to a backup. The model
accepts the trace of each tournament, and refuses it with one line changed. A line of a trace is a JSON object:

    at, process, tournament    when, by the clock that all processes share; 0 and 1: API processes, 2 and 3: workers,
                               4: PostgreSQL; tournament 0: all of them
    live                       which live of the tournament in its memory it does that with; 0: the first
    did                        what it did, and then as follows:

    started                    the process begins a life
    asked      case, request, kind, keyed, refusals
                               a docket was given this case; `request` is its key, or the points that it adds;
                               `refusals` is how many refusals it knows of
    judged     taken, refused, sequence, digest, refusals
                               the docket judged cases by this head, and sends those that it took as a block
    locked     sequence, digest
                               it judged the block again under the lock, by this head
    lost                       the connection is lost over which it sent a block, which it sends again
    committed  answers, sequence, digest
                               it hears that the transaction has ended: with the answers of `log.Appended` and the
                               block's end, or without answers, overtaken
    noted      request, refusals, sequence
                               a key was refused, as one of that many refusals; or an event that it was used for exists
    unnoted    request         the connection is lost over which it asked for that
    forgot                     its epoch ends, because it has lost a connection: it forgets how many refusals there are
    forked                     it takes the log for another one than it has read before, and drops its live
    answered   case, said, sequence
                               the case is answered; with which event, if there is one
    read                       it is asked for a list, and waits for the barrier
    shown      sequence, digest
                               the list shows the log up to this head
    unread                     it has no answer from the barrier; this read is passed over
    opened                     a client opens a stream, and waits for the barrier
    listened   case, sequence, digest
                               a listener, which is `case` from now on, begins after this event of a block
    sent       case, sequence, digest
                               it is about to be sent what follows, up to this event
    claimed    after, sequence, digest
                               a worker has locked the checkpoint, which is at `after`, and read the log to this head
    saved      sequence, digest
                               what it read is in the tables, and committed
    crashed                    PostgreSQL has been killed, and what workers committed last may be lost
    restored   sequence, digest
                               an older database, whose log ends there, takes the place of the one before: of a backup
                               or of a standby that lagged; nobody works with the one any more, nor with the other yet

    recorder.py     what writes the lines, within the processes; `startup` loads it if the environment says so
    playing.py      the processes, the clients and what happens to them
    lines.py        a line, a trace, and the log in the end
    conformance.py  whether the model can do what a trace says
    changes.py      changes of one line
    facts.py        what a trace must not say, whatever the model does

    python -m assurance.traces --minutes 10       plays and checks; `make model` does so for some minutes
"""
