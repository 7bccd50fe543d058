"""Limits of connections."""

from typing import Final

CLIENT_CONNECTIONS_MAX: Final = 12_000
"""Connections of one process, if its file descriptors suffice. Beyond them, a silent client is disconnected for a new
one."""
UNACCEPTED_MAX: Final = 4_096
"""Connections that may wait until a process accepts them. Linux has the same limit by default (net.core.somaxconn), and
lets all others try again after a second."""
