"""What a search is about: who asks for what, which faults come how often, and how many states that must give."""

from enum import Enum, IntEnum

from msgspec import Struct

from assurance.model.state import Kind, Left, Request


class Copies(IntEnum):
    """How the database is copied, if it is."""

    NONE = 0
    BACKUP = 1
    """One backup, taken at some moment. It is put in the database's place while the services run."""
    STANDBY = 2
    """A standby that follows at its own pace."""
    SYNCHRONOUS = 3
    """A standby that every commit waits for."""


class Mistake(Enum):
    """A mistake planted in the protocol, and what it is."""

    DIGEST = "the append does not compare the digest that the block was judged by"
    STRUCTURE = "the append does not look for structural events since the judging"
    EXACT = "the append does not look for other events since an exact block was judged"
    SEQUENCE = "the lock is not held until the commit: sequences become visible in another order than they were drawn"
    KEYS = "the append does not look keys up"
    NO_APPEND_ID = "a block whose answer was lost is sent again as a new one"
    ANSWER_BEFORE_COMMIT = "the answer leaves when the block is executed, not when it is committed"
    LOST_IS_NO = "a block whose connection was lost is answered with 503, and forgotten"
    LATE_IS_NO = "what was already sent is answered with 503 when its time is up"
    NOT_FOLDED = "an accepted change is answered before the live has folded what others appended before it"
    BARRIER_JOINED = "a read joins a barrier whose query was already under way when the read came"
    NO_BARRIER = "a read is answered without a barrier"
    STALE_REFUSAL = "a refusal is answered by the state that judged it, without a barrier"
    UNNOTED_REFUSAL = "a refusal with a key only looks the key up, and is not noted in the log"
    LATE_STAMP = "the refusals that a request knows of are counted when it is judged, not when it comes"
    EPOCH = "what a process knows of refusals is not forgotten when the database was replaced"
    STALE_SUMS = "a void reverses the points that were in effect when it came, however often it is judged"
    UNCONFIRMED = "a commit that no standby has confirmed is acknowledged"
    PLAIN_LOOK_UP = "a repeated key is looked up by a plain SELECT, which waits for no standby"
    REPLAY = (
        "a repeat is answered with whatever event has the sequence now, by a live that nothing compares with the log"
    )
    LANDED = "a block that landed is answered without a look whether the log that was read since still has it"
    POSITION = "a stream goes on from a sequence, without comparing the digest there"
    BARRIER_HISTORY = "the barrier compares sequences, not histories"
    BARRIER_PASSED = "the barrier lets a live that went on meanwhile pass by its sequence"
    NO_DUE = "the append does not look whether a boundary has passed since the judging"
    PASSED_UNSEEN = "the first block after a boundary may have been judged without others that landed before it"
    EXPIRY_PLAIN = "points that expire are no structural event"
    NO_CLOCK = "the barrier brings no time: a read is answered by what the process knew"
    CHECKPOINT = "rows and checkpoint are saved in two transactions"


class Scenario(Struct, frozen=True, kw_only=True):
    """`closed`: the ranking is closed at the beginning. `attempts`: how often a client asks at most. `reads`: how often
    the reader does. `late`: a request may reach its process after its client gave up. `states` and `depth`: what the
    search must give. `short`: `make test` searches it, too."""

    name: str
    requests: tuple[Request, ...]
    left: Left = Left()
    copies: Copies = Copies.NONE
    closed: bool = False
    attempts: int = 2
    reads: int = 0
    listens: bool = False
    works: bool = False
    late: bool = False
    states: int = 0
    depth: int = 0
    short: bool = False


ADD = Request(Kind.POINTS, keyed=True, name="the add with key")
ADD_TOO = Request(Kind.POINTS, keyed=True, name="the other add with key")
PLAIN_ADD = Request(Kind.POINTS, keyed=False, name="the add without key")
CLOSE = Request(Kind.CLOSE, keyed=True, name="the closing")
REOPEN = Request(Kind.REOPEN, keyed=True, name="the reopening")
VOID = Request(Kind.VOID, keyed=True, name="the void")
