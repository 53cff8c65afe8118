# Child processes at their birth (birth.h): this process's own, while the session takes children, and this process itself, if it
# waits for the session that has just come.
import os


def take_children(session, given):
    # CPython 3.6 has no hook of os.fork(): there children are found by looking.
    if hasattr(os, "register_at_fork") and probe.engine.take_children(given["socket"], given["seconds"]):
        os.register_at_fork(after_in_child=probe.engine.born)


def configured(session, given):
    probe.engine.child_goes()
