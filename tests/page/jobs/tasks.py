"""asyncio: a loader below a gather, and what it waits for."""

import asyncio


async def fetch(n):
    await asyncio.sleep(3600)


async def main():
    print("ready", flush=True)
    await asyncio.gather(*(fetch(n) for n in range(3)))


asyncio.run(main())
