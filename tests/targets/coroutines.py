"""Coroutines: a chain of awaits, an asynchronous generator and a context manager, under asyncio."""

import asyncio

import oracle


class Guard:
    async def __aenter__(self):
        await middle(3)
        return self

    async def __aexit__(self, *exception):
        return False


async def ticks():
    yield 0
    await asyncio.sleep(0)
    async with Guard():
        yield 1


async def middle(depth):
    if depth:
        return await middle(depth - 1)
    await asyncio.sleep(0)
    return inner()


def inner():
    oracle.park(0)


async def outer():
    async for tick in ticks():
        print(tick)


async def waiting(event):
    await event.wait()


async def main():
    event = asyncio.Event()
    others = [asyncio.ensure_future(waiting(event)) for _ in range(3)]
    await outer()
    await asyncio.gather(*others)


loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(main())
