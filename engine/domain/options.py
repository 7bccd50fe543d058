"""The options of a unity: what is declared about it when it is created, and never changed.

Pure. Whatever has the options of a unity inherits `UnityOptions`, and whatever creates a ranking, with its main unity,
`MainUnityOptions`: commands, events, the board, snapshots, answers, and what the public sees of them. So all of these
have a new option as soon as it is here.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from engine.domain.errors import Fault
from engine.domain.expiry import LASTS_FORM, LASTS_PATTERN, ExpiresOn, Expiry, duration
from engine.domain.notation import DECIMALS_MAX, Notation, TimeUnit
from engine.domain.terms import Counts, Sort

Decimals = Annotated[int, Meta(ge=0, le=DECIMALS_MAX)]
Absent = Literal["none"]
"""What somebody has of whom no line of points counts: no total."""
Lasts = Annotated[str, Meta(pattern=rf"^(?:{LASTS_PATTERN})\Z")]


class UnityOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`decimals`, `time`: how its totals are shown to people. `counts`: what a total is. `lasts`, `expires_on`: when
    its points expire; None: they do not. `absent`: the total of competitors without points that count, where it is the
    sum; None: 0. A new option is the last, and has a default.

    The fields of a subclass come first unless they are keyword-only, too.
    """

    decimals: Decimals = 0
    time: TimeUnit | None = None
    counts: Counts = Counts.SUM
    lasts: Lasts | None = None
    expires_on: ExpiresOn | None = None
    absent: Absent | None = None

    @property
    def counts_results(self) -> bool:
        """Whether its lines are results: a competitor without one has no total."""
        return self.counts is not Counts.SUM or self.absent is not None


class MainUnityOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The same of a main unity, as fields of its ranking."""

    main_unity_decimals: Decimals = 0
    main_unity_time: TimeUnit | None = None
    main_unity_counts: Counts = Counts.SUM
    main_unity_lasts: Lasts | None = None
    main_unity_expires_on: ExpiresOn | None = None
    main_unity_absent: Absent | None = None


OPTIONS: Final = UnityOptions.__struct_fields__
"""Their names."""
MAIN_UNITY: Final = "main_unity_"
"""What the names of a main unity's options begin with."""


def options_of(unity: UnityOptions) -> dict[str, Any]:
    """Its options, as arguments for something else that has them."""
    return {name: getattr(unity, name) for name in OPTIONS}


def options_of_main_unity(ranking: MainUnityOptions) -> UnityOptions:
    return UnityOptions(**{name: getattr(ranking, MAIN_UNITY + name) for name in OPTIONS})


def as_main_unity(unity: UnityOptions) -> dict[str, Any]:
    """Its options, as arguments for something that has MainUnityOptions."""
    return {MAIN_UNITY + name: value for name, value in options_of(unity).items()}


def option_faults(unity: UnityOptions, prefix: str = "") -> list[Fault]:
    """What is wrong with the options. `prefix`: what their names begin with in the request."""
    faults = [*_notation_faults(prefix, unity), *_lasts_faults(prefix, unity)]
    if unity.absent is not None and unity.counts is not Counts.SUM:
        about = f"must not be sent with {prefix}counts {unity.counts}: without a result, there is no total anyway"
        faults.append(Fault(f"{prefix}absent", about))
    return faults


def _notation_faults(prefix: str, unity: UnityOptions) -> list[Fault]:
    if not 0 <= unity.decimals <= DECIMALS_MAX:
        return [Fault(f"{prefix}decimals", f"must be from 0 to {DECIMALS_MAX}")]
    if unity.decimals and unity.time is not None:
        return [Fault(f"{prefix}time", f"must not be sent with {prefix}decimals: a time has its own")]
    return []


def _lasts_faults(prefix: str, unity: UnityOptions) -> list[Fault]:
    faults: list[Fault] = []
    if unity.lasts is not None and duration(unity.lasts) is None:
        faults.append(Fault(f"{prefix}lasts", f"must be {LASTS_FORM}"))
    if unity.lasts is not None and unity.expires_on is None:
        faults.append(Fault(f"{prefix}expires_on", f"must be sent with {prefix}lasts"))
    if unity.lasts is None and unity.expires_on is not None:
        faults.append(Fault(f"{prefix}lasts", f"must be sent with {prefix}expires_on"))
    return faults


def notation_of(unity: UnityOptions, sort: Sort) -> Notation:
    """The notation of a unity with these options."""
    return Notation(unity.decimals, unity.time, sort if unity.counts_results else None)


def expiry_of(unity: UnityOptions) -> Expiry | None:
    """How long its points count; None: permanently."""
    if unity.lasts is None or unity.expires_on is None:
        return None
    return Expiry(unity.lasts, unity.expires_on)
