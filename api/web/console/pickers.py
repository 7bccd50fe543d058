"""What browsers pick instead of letting people write it: times in the zone of the tournament."""

import re
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Final

from api.http.forms import Form
from api.interface.fields import MOMENT, Fields
from engine.domain.errors import Fault
from engine.domain.faults import refuse_if_any
from engine.domain.times import timestamp
from projections.answers.zones import skipped_time

_PICKED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?", re.ASCII)


def local_text(text: str, zone: tzinfo) -> str:
    """What a field for a time shows of a time in UTC, or of a text that was sent: seconds only if there are any."""
    with suppress(ValueError, OverflowError):
        local = datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(zone)
        return f"{local:%Y-%m-%dT%H:%M:%S}".removesuffix(":00") if " " in text else text
    return text


def with_times(fields: Fields, form: Form, zone: tzinfo) -> Form:
    """The form with the times that were picked, which are in this zone, in UTC. Raises Unacceptable for those that
    clocks skip there."""
    read, faults = dict(form), list[Fault]()
    for name in [field.name for field in fields if field.type is MOMENT]:
        if _PICKED.fullmatch(read.get(name, "")):
            with suppress(ValueError, OverflowError):
                local = datetime.fromisoformat(read[name]).replace(tzinfo=zone)
                read[name] = timestamp(local.astimezone(UTC))
                if (skipped := skipped_time(local)) is not None:
                    faults.append(Fault(name, skipped))
    refuse_if_any(faults)
    return read
