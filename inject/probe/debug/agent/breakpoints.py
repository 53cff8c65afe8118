# Line and function breakpoints: where they are planted now, in code that comes later too, and what happens when one is reached.
import os

codes = probe.part("codes")
BREAKPOINTS_MAX = 20000
COMPILED = ("this code runs compiled by torch.compile: it stops only where torch runs it uncompiled "
            "(evaluate torch.compiler.set_stance('force_eager') in the console to have all of it so)")
LOCATIONS_MAX = 2000  # that are listed in one answer


class Breakpoint(object):
    """One that the client asked for."""

    def __init__(self, number, given):
        self.number = number
        self.rule = probe.part("conditions").Rule(given)
        self.places = {}  # id of code -> line: where it is planted
        self.expected = False  # no code of the file has run, and its text has code of this line
        self.compiled = False  # by torch, when it was set
        self.line = None  # where the client was told it is
        self.reported = None

    def answer(self, path=None):
        found = {"id": self.number, "verified": bool(self.places or self.expected) and not self.rule.wrong}
        if self.line:
            found["line"] = self.line
        if path:
            found["path"] = path
        message = self.rule.wrong or self.message() or (COMPILED if self.compiled else None)
        if message:
            found["message"] = message
            if not self.rule.wrong and not found["verified"]:
                found["reason"] = "pending"
        return found


class LineBreakpoint(Breakpoint):
    def __init__(self, number, given, path):
        Breakpoint.__init__(self, number, given)
        self.path = path
        self.wanted = given.get("line") or 0
        self.line = self.wanted

    def exact(self):
        """Whether it lies where it was wanted: else code that nobody found yet may."""
        return bool(self.places) and self.line == self.wanted

    def message(self):
        return None if self.places or self.expected else "no code of this line is known yet: it binds when the file's code runs"

    def counts(self, frame, code):
        return True


class FunctionBreakpoint(Breakpoint):
    def __init__(self, number, given):
        Breakpoint.__init__(self, number, given)
        self.name = (given.get("name") or "").strip()
        self.last = self.name.rpartition(".")[2]
        self.line = None
        self.path = None

    def message(self):
        return None if self.places else "no function of this qualified name is known yet"

    def fits(self, code, qualname, module):
        """Whole qualified names only, with as much of the module's name as the client wrote."""
        if code.co_name != self.last:
            return False
        whole = module + "." + qualname
        return self.name == qualname or whole == self.name or whole.endswith("." + self.name) and (
            self.name.endswith("." + qualname))

    def counts(self, frame, code):
        """Only a call's beginning, not a loop's return to the same line."""
        return frame.f_lasti <= codes.first_line(code)[0]


class Planted(object):
    """Where they lie."""

    def bind(self, breakpoints, known):
        """Line breakpoints of one file, to the codes of it."""
        for key, code in known.items():
            there = {line: [one for one in many if not isinstance(one, LineBreakpoint)]
                     for line, many in self.planted.get(key, (code, {}))[1].items()}
            self.planted[key] = code, {line: many for line, many in there.items() if many}
        lines = sorted(set(line for code in known.values() for line in codes.lines_of(code)))
        for one in breakpoints:
            one.places = {}
            self.bind_line(one, known, lines)

    def expect(self, breakpoints, path):
        """Where those of a file that has not run will bind, by its text."""
        known = probe.part("sources").compiled(path)
        lines = sorted(set(line for code in known.values() for line in codes.lines_of(code)))
        for one in breakpoints:
            line = line_for(one.wanted, known, lines)
            if line is not None:
                one.line, one.expected = line, True

    def bind_line(self, one, known, lines):
        line = line_for(one.wanted, known, lines)
        if line is None:
            return
        one.line = line
        for key, code in known.items():
            if line in codes.lines_of(code):
                self.planted[key][1].setdefault(line, []).append(one)
                one.places[key] = line
                one.compiled = one.compiled or codes.runs_compiled(code)

    def bind_function(self, code, qualname, module, touched):
        for one in self.functions:
            if id(code) not in one.places and one.fits(code, qualname, module):
                line = codes.first_line(code)[1]
                self.planted.setdefault(id(code), (code, {}))[1].setdefault(line, []).append(one)
                one.places[id(code)] = line
                one.compiled = one.compiled or codes.runs_compiled(code)
                one.line, one.path = line, codes.mine.path(code.co_filename) or None
                touched[id(code)] = code

    def replant(self, changed):
        for code in changed:
            lines = set(self.planted.get(id(code), (code, {}))[1])
            lines.update(self.extra.get(id(code), (code, ()))[1])
            if not self.planted.get(id(code), (code, {}))[1]:
                self.planted.pop(id(code), None)
            probe.engine.plant(code, tuple(sorted(lines)))
            probe.engine.conditions(code, tuple(self.conditions_of(code)))

    def conditions_of(self, code):
        """Those that C evaluates: of the only breakpoint at a line, where nothing else is watched."""
        if id(code) in self.extra:
            return
        for line, there in self.planted.get(id(code), (code, {}))[1].items():
            rule = there[0].rule if len(there) == 1 and isinstance(there[0], LineBreakpoint) else None
            if rule is not None and rule.condition is not None and not rule.wrong:
                fits, local = rule.in_c(code)
                if fits:
                    yield line, rule.condition, local

    def watch(self, again=False):
        """again: code that was called since is reported once more."""
        if again and (self.watches or self.session.data):
            probe.engine.watch_new_code(False)
        self.watches = bool(self.lines or self.functions or self.session.data)
        probe.engine.watch_new_code(self.watches)


class Met(Planted):
    """Events of them, on the program's threads."""

    def new_code(self, code):
        """On the thread that calls it: code that nobody could find before."""
        if self.bases and code.co_filename.endswith(self.bases) and id(code) not in self.planted:
            path = codes.mine.key(code.co_filename)
            if path in self.lines:
                self.more_code(path, code)
        for one in self.functions:
            if one.last == code.co_name and id(code) not in one.places:
                touched = {}
                self.bind_function(code, *name_of(code), touched=touched)
                self.replant(list(touched.values()))
                self.report(self.functions)

    def more_code(self, path, code):
        known = {}
        codes.tree(code, known)
        if path in self.hidden:
            self.hidden[path].update(known)
        for key in list(known):
            if any(key in one.places for one in self.lines[path]):
                del known[key]
        if not known:
            return
        lines = sorted(set(line for one in known.values() for line in codes.lines_of(one)))
        for key, one in known.items():
            self.planted.setdefault(key, (one, {}))
        for one in self.lines[path]:
            if one.places:
                self.same_line(one, known)
            else:
                self.bind_line(one, known, lines)
        self.replant(list(known.values()))
        self.report(self.lines[path])

    def same_line(self, one, known):
        for key, code in known.items():
            if one.line in codes.lines_of(code):
                self.planted[key][1].setdefault(one.line, []).append(one)
                one.places[key] = one.line

    def report(self, breakpoints):
        for one in breakpoints:
            if one.places and not one.reported:
                one.reported = True
                probe.engine.event("breakpoint", {"reason": "changed", "breakpoint": one.answer(one.path)})


class Hit(Met):
    """What stops."""

    def hit(self, frame, code, line, judged=None):
        """The stop of the breakpoints that lie here and count, or None."""
        there = self.planted.get(id(code))
        if there is None:
            return None
        hits, trouble, reason = [], None, None
        for one in list(there[1].get(line, ())):
            if one.rule.wrong or not one.counts(frame, code):
                continue
            met, wrong = one.rule.met(frame, judged=judged)
            if not met:
                continue
            if one.rule.message is not None:  # never stops
                if wrong:
                    probe.engine.note(wrong, "important")
                else:
                    one.rule.log(frame)
                continue
            hits.append(one.number)
            trouble = trouble or wrong
            reason = reason or ("breakpoint" if isinstance(one, LineBreakpoint) else "function breakpoint")
        if not hits:
            return None
        if trouble:
            probe.engine.note(trouble, "important")
        return probe.part("session").Stop(reason, frame, hit=hits, text=trouble, description=trouble)


class OfFunctions(Hit):
    """Those of functions."""

    def set_functions(self, given):
        self.functions = [FunctionBreakpoint(self.counter(), one) for one in given]
        touched = {}
        for key, (code, lines) in list(self.planted.items()):
            others = {line: [one for one in there if isinstance(one, LineBreakpoint)] for line, there in lines.items()}
            self.planted[key] = code, {line: there for line, there in others.items() if there}
            touched[key] = code
        if self.functions:
            for code, qualname, module in known_functions():
                self.bind_function(code, qualname, module, touched)
        self.replant(list(touched.values()))
        self.watch()
        return [one.answer(one.path) for one in self.functions]


class Breakpoints(OfFunctions):
    def __init__(self, session):
        self.session = session
        self.lines = {}  # path -> [LineBreakpoint]
        self.functions = []
        self.planted = {}  # id of code -> (code, {line: [Breakpoint]})
        self.hidden = {}  # path -> {id of code: code}: what was searched for once; what is new since then is reported when it is called
        self.watches = False  # code that is called
        self.bases = ()  # ends of the names of files with breakpoints
        self.extra = {}  # id of code -> (code, lines) for others (data breakpoints)
        self.counter = iter(range(1, 1 << 31)).__next__

    # ---- what the client asks ----

    def set_lines(self, path, given):
        if len(given) > BREAKPOINTS_MAX:
            raise probe.Failed("more than {} breakpoints in a file".format(BREAKPOINTS_MAX))
        path = codes.mine.key(path)
        before = self.lines.pop(path, [])
        # One that stays keeps its number and its count.
        same = {(one.wanted, one.key): one for one in before}
        now = []
        for one in given:
            key = tuple(one.get(name) for name in ("condition", "hitCondition", "logMessage"))
            made = same.pop((one.get("line"), key), None) or LineBreakpoint(self.counter(), one, path)
            made.key = key
            made.places, made.compiled, made.expected, made.line = {}, False, False, made.wanted
            now.append(made)
        if now:
            self.lines[path] = now
        self.bases = tuple(set(os.path.basename(name) for name in self.lines))
        known = codes.live_of_file(path) if now or before else {}
        known.update((key, code) for key, (code, _) in self.planted.items() if codes.mine.key(code.co_filename) == path)
        known.update(self.hidden.get(path, {}))
        self.bind(now, known)
        # Of a program that runs its frames know all of its file: any other code object of these lines is reported when it is called.
        exact = all(one.exact() for one in now)
        if not exact:
            known.update(codes.of_modules(path))
            self.bind(now, known)
        if path not in self.hidden and not all(one.exact() for one in now):
            self.hidden[path] = probe.part("hidden").of_file(path)
            known.update(self.hidden[path])
            self.bind(now, known)
        if not now:
            self.hidden.pop(path, None)
        if now and not known:
            self.expect(now, path)
        self.replant(list(known.values()))
        self.watch(again=exact and bool(now))
        for one in now:
            one.reported = bool(one.places)
        return [one.answer(path) for one in now]


def line_for(wanted, known, lines):
    """Where a breakpoint of a line lies in these codes, which have these lines; None: nowhere."""
    if lines and wanted not in lines:
        wanted = probe.part("sources").statement(next(iter(known.values())).co_filename, wanted)
    return snapped(wanted, known, lines)


def snapped(wanted, known, lines):
    """The line itself if it has code, else the next one in the innermost function around it, else the next in the file."""
    if wanted in lines:
        return wanted
    around = None
    for code in known.values():
        own = codes.lines_of(code)
        first, last = code.co_firstlineno, max(own) if own else 0
        if code.co_name != "<module>" and first <= wanted <= last and (around is None or first >= around.co_firstlineno):
            around = code
    later = [line for line in (sorted(codes.lines_of(around)) if around else lines) if line > wanted]
    return later[0] if later else None


def known_functions():
    """[(code, qualified name, module)] of all modules' functions."""
    for name, module, _ in codes.modules():
        for function in codes.module_functions(module):
            yield function.__code__, function.__qualname__, str(function.__module__)


def name_of(code):
    """(qualified name, module) of code that is called just now; __main__'s when nobody knows."""
    qualname = getattr(code, "co_qualname", None)
    for name, module, file in codes.modules():
        if file == code.co_filename or codes.mine.path(file) == codes.mine.path(code.co_filename):
            for function in codes.module_functions(module):
                if function.__code__ is code:
                    return function.__qualname__, name
            return qualname or code.co_name, name
    return qualname or code.co_name, "__main__"


def set_breakpoints(session, given):
    path = given.get("path")
    if not path and given.get("sourceReference"):
        path = probe.part("sources").name_of(session, given["sourceReference"])
    if not path:
        raise probe.Failed("neither path nor sourceReference")
    return {"breakpoints": session.breakpoints.set_lines(path, given.get("breakpoints") or [])}


def set_function_breakpoints(session, given):
    return {"breakpoints": session.breakpoints.set_functions(given.get("breakpoints") or [])}


def breakpoint_locations(session, given):
    first = given.get("line") or 1
    last = given.get("endLine") or first
    path = codes.mine.key(given.get("path") or "")
    known = codes.of_file(path)
    if not known:
        known = probe.part("sources").compiled(path)
    lines = sorted(set(line for code in known.values() for line in codes.lines_of(code) if first <= line <= last))
    return {"breakpoints": [{"line": line} for line in lines[:LOCATIONS_MAX]]}
