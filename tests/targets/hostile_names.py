"""Runs in code whose names are made to hurt whoever shows them: escape sequences, markup, characters that XML has not.

Arguments: the path of the file that the code says it stands in, or none ""; others are just in the command line.
"""

import asyncio
import sys
import threading

NASTY = "\x1b]0;owned\x07\x1b[31m</script>]]></title>&\"';\r\n\u202e\u2028\uffff\ufffe\x7f\x85\udcff"
SOURCE = "def spin(stop):\n    while not stop():\n        pass\n"


def named(function, name):
    """The function with another name, where the version can."""
    code = function.__code__
    changed = {"co_name": name}
    if hasattr(code, "co_qualname"):
        changed["co_qualname"] = name
    if hasattr(code, "replace"):
        function.__code__ = code.replace(**changed)
    return function


def main():
    path = sys.argv[1] or NASTY + ".py"
    names = {}
    exec(compile(SOURCE, path, "exec"), names)
    spin = named(names["spin"], "nasty" + NASTY)
    threading.Thread(target=spin, args=(lambda: False,), name="thread" + NASTY, daemon=True).start()

    async def wait():
        await asyncio.sleep(3600)

    async def run():
        task = asyncio.ensure_future(named(wait, "wait" + NASTY)())
        if hasattr(task, "set_name"):
            task.set_name("task" + NASTY)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await task

    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(run())


main()
