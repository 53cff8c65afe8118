"""Code of a file that is in no namespace of a module and in no frame that runs; debugged.py imports it and calls all of it."""

import asyncio


class Keeper(object):
    """What made() leaves: the code of made(), which has all others among its constants, is gone."""


def made(kept):
    def attribute():
        got = 1                           # at hidden_attribute
        return got

    def closed_over():
        got = 2                           # at hidden_closure
        return got

    def listed():
        got = 3                           # at hidden_list
        return got

    def resting():
        while True:
            yield
            got = 4                       # at hidden_generator
            del got

    class Made(object):
        def method(self):
            got = 5                       # at hidden_class
            return got

    async def waiting(future):
        await future
        got = 6                           # at hidden_task
        return got

    kept.attribute, kept.closing, kept.listed, kept.resting, kept.instance = attribute, lambda: closed_over(), [listed], resting(), Made()
    next(kept.resting)
    kept.loop = asyncio.new_event_loop()
    kept.future = kept.loop.create_future()
    kept.task = kept.loop.create_task(waiting(kept.future))
    kept.loop.call_soon(kept.loop.stop)
    kept.loop.run_forever()


keeper = Keeper()
made(keeper)
del made


def call():
    keeper.attribute()
    keeper.closing()
    keeper.listed[0]()
    next(keeper.resting)
    keeper.instance.method()
    if not keeper.future.done():
        keeper.future.set_result(None)
        keeper.loop.run_until_complete(keeper.task)
