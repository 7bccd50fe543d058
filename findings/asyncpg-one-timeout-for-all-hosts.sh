#!/usr/bin/env bash
# asyncpg spends one timeout on all hosts of an address, libpq gives each host its own.
#
# Guess: with two hosts and `timeout=2`, a first host that accepts connections and never answers costs two seconds, and
# then the second is asked, as with libpq's `connect_timeout`.
# What happens: after two seconds the call ends with a TimeoutError; nothing ever reaches the second host.
#
# Why it matters to a ranking service: a primary whose machine hangs, instead of refusing, makes an address with the
# standby behind it useless. Give each host an attempt and a timeout of its own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check asyncpg==0.32.0
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import socket
import sys
import time

import asyncpg

print(f"Python {sys.version.split()[0]}, asyncpg {asyncpg.__version__}")
servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]  # they accept connections, and say nothing
hosts = ",".join(f"127.0.0.1:{server.getsockname()[1]}" for server in servers)


def was_asked(server: socket.socket) -> bool:
    server.setblocking(False)
    try:
        server.accept()
    except BlockingIOError:
        return False
    return True


began = time.monotonic()
try:
    asyncio.run(asyncpg.connect(f"postgresql://somebody@{hosts}/some?sslmode=disable", timeout=2))
    how = "connected"
except (TimeoutError, asyncio.TimeoutError):
    how = "TimeoutError"
asked = [was_asked(server) for server in servers]
print(f"{how} after {time.monotonic() - began:.1f} s; asked the first: {asked[0]}, the second: {asked[1]}")
sys.exit(0 if how == "TimeoutError" and asked == [True, False] else "it has changed")
PYTHON
