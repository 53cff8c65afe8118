#!/usr/bin/env python3
"""An asyncio program to look at with `probing PID tasks --tree`: two shards are fetched while a third waits for its turn.

Needs the standard library only, from Python 3.7 on. Prints "ready PID" when all of them wait.
"""

import asyncio
import os


async def fetch(turns, shard):
    async with turns:
        await asyncio.sleep(3600)
    return shard


async def report():
    await asyncio.sleep(0.1)
    print("ready", os.getpid(), flush=True)


async def main():
    turns = asyncio.Semaphore(2)
    await asyncio.gather(report(), *(fetch(turns, shard) for shard in range(3)))


if __name__ == "__main__":
    asyncio.run(main())
