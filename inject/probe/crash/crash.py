# What a crash handler cannot see: exceptions that nobody handles, and threads that begin.  C gives
# probe.crashed(reason, environment), which writes a dump and masks secrets in the reason; probe.stack(), an alternate
# signal stack for the calling thread; and probe.again(), which takes the signals back from whoever took them after us.
# Hooks that were there before are called after ours, also when ours fails.
import os
import sys

crash = {"on": False}
WORKERS = "torch.utils.data._utils.signal_handling"


def tell_crash(error_type, error):
    """A dump, while the traceback's frames are still there."""
    if not crash["on"] or error_type is None or not issubclass(error_type, Exception):
        return
    try:
        environment = "\0".join("{}={}".format(name, value) for name, value in os.environ.items())
        probe.crashed(probe.agent.plain(error).replace("\n", " ")[:500].encode("utf-8", "replace"),
                environment.encode("utf-8", "surrogateescape"))
    except Exception:
        pass


def on_exception(error_type, error, traceback):
    tell_crash(error_type, error)
    crash["excepthook"](error_type, error, traceback)


def on_thread_exception(args):
    tell_crash(args.exc_type, args.exc_value)
    crash["thread_excepthook"](args)


def on_thread(self):
    """threading.Thread._set_ident: the first thing that a new thread does."""
    try:
        probe.stack()
    finally:
        crash["set_ident"](self)


def on_workers():
    """DataLoader's workers take the signals for handlers that end the process; ours comes before those."""
    crash["workers"]()
    probe.again()


def in_child():
    """After a fork: PyTorch may have been imported since."""
    workers = sys.modules.get(WORKERS)
    own = getattr(workers, "_set_worker_signal_handlers", None)
    if crash["on"] and own is not None and own is not on_workers:
        crash["workers"] = own
        workers._set_worker_signal_handlers = on_workers


def begin():
    if crash["on"]:
        return
    crash["on"] = True
    if sys.excepthook is not on_exception:
        crash["excepthook"] = sys.excepthook
        sys.excepthook = on_exception
    if "threading" in sys.modules:
        hook_threads()
    if hasattr(os, "register_at_fork") and "forks" not in crash:
        crash["forks"] = True
        os.register_at_fork(after_in_child=in_child)


def hook_threads():
    """In the main thread when the program has not imported threading yet: it takes its importer for the main thread."""
    import threading

    if hasattr(threading, "excepthook") and threading.excepthook is not on_thread_exception:
        crash["thread_excepthook"] = threading.excepthook
        threading.excepthook = on_thread_exception
    if hasattr(getattr(threading, "Thread", None), "_set_ident") and "set_ident" not in crash:
        crash["set_ident"] = threading.Thread._set_ident
        threading.Thread._set_ident = on_thread


def end():
    """Take out what nobody put something above."""
    crash["on"] = False
    threading = sys.modules.get("threading")
    if sys.excepthook is on_exception:
        sys.excepthook = crash["excepthook"]
    if getattr(threading, "excepthook", None) is on_thread_exception:
        threading.excepthook = crash["thread_excepthook"]
    if "set_ident" in crash and threading.Thread.__dict__.get("_set_ident") is on_thread:
        threading.Thread._set_ident = crash.pop("set_ident")
