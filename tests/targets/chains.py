"""asyncio tasks whose chains of awaits multiply: TASKS tasks that all await the same chain of LINKS generators."""

import asyncio
import sys
import threading
import types

TASKS, LINKS = int(sys.argv[1]), int(sys.argv[2])


@types.coroutine
def end(loop):
    while True:
        future = loop.create_future()
        future._asyncio_future_blocking = True
        yield future


@types.coroutine
def link(inner):
    yield from inner


async def sharing(chain):
    await link(chain)


async def main():
    chain = end(asyncio.get_event_loop())
    for _ in range(LINKS):
        chain = link(chain)
    keep = [asyncio.ensure_future(sharing(chain)) for _ in range(TASKS)]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.wait(keep)


sys.setrecursionlimit(10 * LINKS + 1000)
threading.stack_size(512 << 20)
thread = threading.Thread(target=lambda: asyncio.run(main()))
thread.start()
thread.join()
