"""Children of every kind: a word on standard input is a kind; "done KIND STATUS" when its child has ended."""

import os
import subprocess
import sys
import time


def child(depth=0):
    begun = time.time()  # at child
    if depth:
        fork(depth - 1)
    return begun  # at child_end


def fork(depth=0):
    pid = os.fork()
    if not pid:  # at forked
        child(depth)
        os._exit(7)
    return os.waitpid(pid, 0)[1] >> 8


def grandchild():
    return fork(1)


def process(method):
    import multiprocessing

    one = multiprocessing.get_context(method).Process(target=child)
    one.start()
    one.join()
    return one.exitcode


def pool():
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(4) as workers:
        return sum(one.get() > 0 for one in [workers.apply_async(child) for _ in range(8)])


def before_exec():
    return subprocess.call(["true"], preexec_fn=lambda: None)


def interrupted():
    """A signal comes while the child waits; its handler's exception is the program's."""
    import signal

    class Asked(Exception):
        pass

    def handle(number, frame):
        raise Asked

    signal.signal(signal.SIGTERM, handle)
    try:
        pid = os.fork()
        if pid:
            return os.waitpid(pid, 0)[1] >> 8
        while True:
            time.sleep(1)
    except Asked:
        os._exit(9)


def call(*words):
    return subprocess.call([sys.executable] + list(words))


def script():
    return call(os.path.abspath(__file__), "child")


def isolated():
    return call("-I", os.path.abspath(__file__), "child")


def spawned():
    return os.waitpid(os.posix_spawn(sys.executable, [sys.executable, __file__, "child"], os.environ), 0)[1] >> 8


def variables():
    """How often the debugger's variable is there: for Python, and for C."""
    shown = subprocess.check_output("env | grep -c PROBING_DEBUG_CHILDREN || true", shell=True).decode().strip()
    print(int("PROBING_DEBUG_CHILDREN" in os.environ), shown, flush=True)
    return 7


def replaced():
    os.execv(sys.executable, [sys.executable, __file__, "child"])


def replaced_isolated():
    os.execv(sys.executable, [sys.executable, "-I", "-c", "input()"])


def replaced_by_other():
    os.execvp("cat", ["cat"])


KINDS = {"fork": fork, "grandchild": grandchild, "mp_fork": lambda: process("fork"), "mp_spawn": lambda: process("spawn"),
         "mp_forkserver": lambda: process("forkserver"), "pool": pool, "before_exec": before_exec, "interrupted": interrupted, "script": script,
         "isolated": isolated, "posix_spawn": spawned, "exec": replaced, "exec_isolated": replaced_isolated, "exec_other": replaced_by_other,
         "variables": variables}


def main():
    if sys.argv[1:] == ["child"]:
        child()
        sys.exit(7)
    print("ready", flush=True)
    for line in sys.stdin:
        kind = line.strip()
        begun = time.time()
        status = KINDS[kind]()
        print("done {} {} {:.3f}".format(kind, status, time.time() - begun), flush=True)


if __name__ == "__main__":
    main()
