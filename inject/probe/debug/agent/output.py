# What the program writes to sys.stdout and sys.stderr, while a client wants it.  What stands in for them is kept for ever and
# used again: CPython's print() uses sys.stdout without a reference of its own (gh-130163).
import sys

LINE_MAX = 1 << 12
BURST_MAX = 1 << 16  # characters of one event
NAMES = ("stdout", "stderr")


class Tee(object):
    """Acts as the program's stream, and reports what is written."""

    def __init__(self, name):
        self.__dict__.update(_prb_name=name, _prb_original=None, _prb_report=None)

    def write(self, text):
        done = self._prb_original.write(text) if self._prb_original is not None else len(text)
        report = self._prb_report
        if report is not None and text:
            try:
                report(self._prb_name, text)
            except Exception as error:
                if probe.engine.keep_pending(error):
                    raise  # else the program's print() must not fail for us
        return done

    def writelines(self, lines):
        for one in lines:
            self.write(one)

    def flush(self):
        if self._prb_original is not None:
            self._prb_original.flush()
        if self._prb_report is not None:
            try:
                self._prb_report(self._prb_name, "", True)
            except Exception as error:
                if probe.engine.keep_pending(error):
                    raise

    def __getattr__(self, name):
        return getattr(self._prb_original, name)

    def __setattr__(self, name, value):
        setattr(self._prb_original, name, value)

    def __iter__(self):
        return iter(self._prb_original)

    def __repr__(self):
        return repr(self._prb_original)


def stand_ins():
    """Those of this process, made once for all sessions."""
    found = probe.kept.get("debug output")
    if found is None:
        found = probe.kept.setdefault("debug output", {name: Tee(name) for name in NAMES})
    return found


class Output(object):
    def __init__(self, session):
        self.session = session
        self.waiting = {}  # the begun line of each stream

    def on(self):
        for name, tee in stand_ins().items():
            if getattr(sys, name, None) is not tee:
                tee.__dict__["_prb_original"] = getattr(sys, name, None)
                setattr(sys, name, tee)
            tee.__dict__["_prb_report"] = self.report

    def off(self):
        for name in list(self.waiting):
            self.report(name, "", True)
        for name, tee in stand_ins().items():
            tee.__dict__["_prb_report"] = None
            # The program, or an evaluation that runs, may have put another one there: then ours only passes on.
            if getattr(sys, name, None) is tee:
                setattr(sys, name, tee._prb_original)

    def report(self, name, text, flushed=False):
        """print() writes pieces: they are sent on line by line."""
        text = self.waiting.pop(name, "") + text
        if not (flushed or text.endswith("\n") or len(text) > LINE_MAX):
            self.waiting[name] = text
            return
        if len(text) > BURST_MAX:
            text = text[:BURST_MAX] + "... ({} characters left out)\n".format(len(text) - BURST_MAX)
        if text:
            probe.engine.event("output", {"category": name, "output": str(text)})


def output(session, given):
    if given.get("on"):
        session.output = session.output or Output(session)
        session.output.on()
    elif session.output is not None:
        session.output.off()
        session.output = None
