"""The service judged from outside: what its clients asked and were answered, and nothing else.

A *history* is a file of JSON lines, one for each operation of a client, in any order:

    {"client":3,"object":"points 0","action":"append","value":17,"call":1200,"end":4100,"shown":null}
    {"client":1,"object":"points 0","action":"read","value":null,"call":4200,"end":5000,"shown":[17]}

`object`     operations on different objects do not concern each other: whether a history is linearizable is decided for
             each object by itself
`action`     what was asked; `sequential.py` says what each means, for each kind of object
`value`      what was asked with it
`call`       when it was asked, in nanoseconds of one clock that all clients share
`end`        when it was answered; null: nobody knows whether it was done, or ever will be
`shown`      what the answer showed; null: nothing, or it is not known

What was certainly not done has no line. A request that is repeated with its key is one operation, until its answer is
definite.

    sequential.py        what the objects do, one operation after the other
    linearizability.py   whether there is an order of the operations in which they do that (Wing and Gong, Lowe)
    operations.py        the history as values, as a file, and from the clients of the fault campaign
    recording.py         clients that record a history of lists
    exports.py           the history for Porcupine and for Elle

The checker and the objects import nothing of the product: not what a log is, nor what a standing is.
"""
