# Exceptions: which raise or unwinding stops, and what is reported of it.
codes = probe.part("codes")
threads = probe.part("threads")
names = probe.part("names")
RAISE, UNWIND = 1 << 5, 1 << 6
FLOW = (StopIteration, StopAsyncIteration, GeneratorExit)
MODES = {"raised": "always", "uncaught": "unhandled", "userUnhandled": "userUnhandled"}
TEXTS = {"raised": "raised", "uncaught": "uncaught", "userUnhandled": "not handled in user code"}
CAUSES_MAX = 16
TRACE_MAX = 1 << 16


def shown(frame):
    return codes.mine.rule(frame.f_code.co_filename) is not False and not threads.is_launcher(frame) and (
        codes.mine.steps_into(frame.f_code))


def passed(kind, frame, error):
    """The frames that say whether the rules exclude an exception: where it was raised, and the caller; else all that it left."""
    if kind == "raised":
        return [one for one in (frame, frame.f_back) if one is not None]
    found, trace = [frame], getattr(error, "__traceback__", None)
    while trace is not None and len(found) < TRACE_MAX:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found


class Filters(object):
    def __init__(self, session, wanted):
        self.session = session
        self.conditions = wanted  # filter -> code object, names of exception types (frozenset), or None
        uncaught = probe.part("uncaught") if set(wanted) - {"raised"} == {"uncaught"} else None
        self.hooks = uncaught.Hooks() if uncaught is not None and uncaught.usable(session) else None

    def mask(self):
        mask = RAISE if "raised" in self.conditions else 0
        return mask | (UNWIND if set(self.conditions) - {"raised"} and self.hooks is None else 0)

    def again(self):
        if self.hooks is not None:
            self.hooks.again()

    def off(self):
        if self.hooks is not None:
            self.hooks.off()

    def happened(self, event, frame, error):
        """The stop that an exception makes, or None."""
        if isinstance(error, FLOW) or not isinstance(error, BaseException) or self.is_exit(error):
            return None
        if event == RAISE:
            return self.stop("raised", frame, frame, error) if is_fresh(frame, error) else None
        if is_outermost(frame):
            kind = "uncaught"
        elif codes.mine.steps_into(frame.f_code) and not codes.mine.own(frame.f_back.f_code.co_filename):
            kind = "userUnhandled"
        else:
            return None
        found = self.stop(kind, frame, innermost(error) or frame, error)
        if found is None and kind == "uncaught" and codes.mine.own(frame.f_code.co_filename):
            found = self.stop("userUnhandled", frame, innermost(error) or frame, error)
        return found

    def is_exit(self, error):
        return isinstance(error, SystemExit) and not self.session.options.exits.stop(error)

    def stop(self, kind, frame, where, error):
        if kind not in self.conditions or not self.met(self.conditions[kind], where, error):
            return None
        if kind == "raised" and codes.mine.just_my_code and not any(
                codes.mine.own(one.f_code.co_filename) for one in (frame, frame.f_back) if one is not None):
            return None  # between libraries
        if codes.mine.rules and not any(shown(one) for one in passed(kind, frame, error)):
            return None  # all by files that the rules exclude
        stop = probe.part("session").Stop("exception", frame, exception=error, mode=MODES[kind])
        stop.description = "{} ({})".format(full_name(type(error)), TEXTS[kind])
        stop.text = probe.agent.plain(error)
        return stop

    def met(self, condition, frame, error):
        """A condition is an expression, with the name exception; types stand for being one of them."""
        if condition is None:
            return True
        if isinstance(condition, frozenset):
            return any(kind.__name__ in condition or full_name(kind) in condition for kind in type(error).__mro__)
        try:
            value = names.evaluated(condition, frame, {"exception": error})
            if isinstance(value, (type, tuple)):
                return isinstance(error, value)
            return bool(value)
        except probe.engine.Interrupted:
            raise
        except BaseException as wrong:
            if probe.engine.keep_pending(wrong):
                return False
            probe.engine.note("the condition of an exception breakpoint raised " + probe.caught(wrong), "important")
            return True


def is_fresh(frame, error):
    """Told for every frame that it passes: only the first counts."""
    trace = error.__traceback__
    return trace is None or trace.tb_next is None and trace.tb_frame is frame


def is_outermost(frame):
    # threading itself takes what leaves run().
    return frame.f_back is None or any(
        one.f_code.co_name == "_bootstrap_inner" and one.f_globals.get("__name__") == "threading" for one in (frame, frame.f_back))


def innermost(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def full_name(kind):
    module = str(getattr(kind, "__module__", ""))
    name = str(getattr(kind, "__qualname__", kind.__name__))
    return name if module in ("builtins", "") else module + "." + name


def add_option(option, wanted):
    """An ExceptionOptions of the protocol: path [{names: [a category]}, {names: [types]}], breakMode.  What it asks for is added to
    wanted; its answer."""
    path = (option.get("path") if isinstance(option, dict) else None) or []
    shape = isinstance(path, list) and all(isinstance(part, dict) and isinstance(part.get("names"), list) for part in path)
    if not shape or any(part.get("negate") or not all(isinstance(name, str) for name in part["names"]) for part in path):
        return {"verified": False, "message": 'path must be an array of {"names": [...]}, without negate'}
    mode = option.get("breakMode") if isinstance(option, dict) else None
    kind = next((name for name, one in MODES.items() if one == mode), None)
    if kind is None:
        return {"verified": mode == "never"}
    types = frozenset(path[-1]["names"]) if len(path) > 1 else None
    if kind in wanted:
        before = wanted[kind]
        types = before | types if isinstance(before, frozenset) and types is not None else None
    wanted[kind] = types
    return {"verified": True}


def set_exception_breakpoints(session, given):
    wanted, answers = {}, []
    if not isinstance(given.get("filters") or [], list):
        raise probe.Failed("filters must be an array")
    options = [(one, None) for one in given.get("filters") or []]
    options += [(one.get("filterId"), one.get("condition")) for one in given.get("filterOptions") or []]
    for name, condition in options:
        answer = {"verified": name in MODES}
        if name not in MODES:
            answer["message"] = "there is no filter {}".format(name)
        else:
            try:
                code = probe.part("conditions").compiled(condition) if condition and condition.strip() else None
                wanted[name] = code
            except (SyntaxError, ValueError) as error:
                answer = {"verified": False, "message": probe.caught(error)}
        answers.append(answer)
    for one in given.get("exceptionOptions") or []:
        answers.append(add_option(one, wanted))
    before, session.exceptions = session.exceptions, None
    if before is not None:
        before.off()
    session.exceptions = Filters(session, wanted) if wanted else None
    probe.engine.watch_exceptions(session.exceptions.mask() if wanted else 0)
    return {"breakpoints": answers}


def details(error, frames_max, depth=0):
    kind = type(error)
    found = {"message": probe.agent.message(error), "typeName": kind.__name__, "fullTypeName": full_name(kind),
             "stackTrace": trace_text(error, frames_max)}
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < CAUSES_MAX:
        found["innerException"] = [details(cause, frames_max, depth + 1)]
    return found


def trace_text(error, frames_max):
    import traceback

    trace = error.__traceback__
    while trace is not None and threads.is_launcher(trace.tb_frame):
        trace = trace.tb_next
    try:
        return "".join(traceback.format_tb(trace, -frames_max if frames_max > 0 else None))[-TRACE_MAX:]
    except Exception:
        return ""


def exception_info(session, given):
    ident = threads.ident_of(given.get("threadId"))
    stop = session.stops.get(ident)
    if stop is None or stop.exception is None:
        raise probe.Failed("thread {} did not stop at an exception".format(given.get("threadId")), "NOT_FOUND")
    error = stop.exception
    return {"exceptionId": full_name(type(error)), "description": probe.agent.message(error), "breakMode": stop.mode,
            "details": details(error, session.options.max_exception_frames)}
