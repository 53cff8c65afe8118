"""Names made to hurt a page: markup in the command line, in names of threads, functions and files, in the values of variables."""

import sys
import threading

NASTY = "<img src=x onerror='document.owned=1'><script>document.owned=1</script>\"'&\u202e\x1b[31m"
CODE = "def wait(event, value):\n    event.wait()\n"


def main():
    names = {}
    exec(compile(CODE, NASTY + ".py", "exec"), names)
    wait = names["wait"]
    code = wait.__code__
    if hasattr(code, "co_qualname"):  # what is shown, from 3.11 on
        wait.__code__ = code.replace(co_name="f" + NASTY, co_qualname="f" + NASTY)
    elif hasattr(code, "replace"):
        wait.__code__ = code.replace(co_name="f" + NASTY)
    threading.Thread(target=wait, args=(threading.Event(), {NASTY: NASTY}), name="t" + NASTY, daemon=True).start()
    print("ready", flush=True)
    wait(threading.Event(), NASTY)


assert len(sys.argv) > 1
main()
