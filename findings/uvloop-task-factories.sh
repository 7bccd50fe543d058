#!/usr/bin/env bash
# uvloop 0.23 breaks task factories on Python 3.13 and later, the standard library's own among them.
#
# Guess: `asyncio.eager_task_factory`, and a factory that takes what asyncio passes, work under uvloop as they do under
# asyncio. What happens: since 0.23, which knows `eager_start`, uvloop passes it to the factory always, also where
# nobody asked for it. A factory that takes `name` and `context` raises a TypeError at the first task, and so does that
# of the library of Python 3.13.0. With uvloop 0.22.1 both work, and so do both on Python 3.12 with either.
#
# Why it matters to a ranking service: factories serve tracing and eager tasks. After the upgrade every request fails,
# and so does the orderly end. Factories take `**kwargs`, and the loop is upgraded with them in the tests. Needs Python
# 3.13 as python3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
cat > "$folder/tasks.py" <<'PYTHON'
import asyncio
import sys

import uvloop


def own(loop, coro, *, name=None, context=None):
    return asyncio.Task(coro, loop=loop, name=name, context=context)


async def tried(factory):
    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    work = asyncio.sleep(0)
    try:
        await asyncio.create_task(work)
        return "works"
    except TypeError as error:
        return f"TypeError: {error}"
    finally:
        work.close()
        loop.set_task_factory(None)


seen = []
for factory in (own, asyncio.eager_task_factory):
    for run in (asyncio.run, uvloop.run):
        seen.append(run(tried(factory)))
        print(f"{factory.__name__} under {run.__module__.split('.')[0]}: {seen[-1]}")
refused = [one.startswith("TypeError") for one in seen]
known = [False, True, False, True] if sys.argv[1] == "refused" else [False] * 4
sys.exit(0 if refused == known else "it has changed")
PYTHON
for version in 0.22.1 0.23.0; do
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check uvloop==$version
    echo "$("$folder/venv/bin/python" --version), uvloop $version"
    "$folder/venv/bin/python" "$folder/tasks.py" "$([ $version = 0.23.0 ] && echo refused || echo works)"
done
