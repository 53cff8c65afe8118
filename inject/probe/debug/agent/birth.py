# Child processes at their birth (birth.h), while the session takes them: those of os.fork(), and Pythons that are started, whose
# start-up hook (python/_probing_birth.py) finds the variable.
import os

VARIABLE = "PROBING_DEBUG_CHILDREN"


def set_variable(value):
    """Not by os.environ[...] = value, which calls setenv(3): the job's other threads may call getenv(3) meanwhile."""
    data, key = getattr(os.environ, "_data", None), os.environ.encodekey(VARIABLE)
    if not isinstance(data, dict) or not probe.engine.set_variable(VARIABLE, value):
        return
    if value is None:
        data.pop(key, None)
    else:
        data[key] = os.environ.encodevalue(value)


class Children(object):
    def __init__(self, given):
        self.value = "{}:{}".format(given["socket"], given["seconds"])
        set_variable(self.value)
        # CPython 3.6 has no hook of os.fork(): there such children are found by looking.
        if hasattr(os, "register_at_fork") and probe.engine.take_children(given["socket"], given["seconds"]):
            os.register_at_fork(after_in_child=probe.engine.born)

    def off(self):
        probe.engine.take_children("", 0)
        if os.environ.get(VARIABLE) == self.value:
            set_variable(None)


def take_children(session, given):
    session.children = Children(given)
