# Python byte code as instructions: a frame's, or that of code whose address an earlier answer gave.
import dis

codes = probe.part("codes")
COUNT_MAX = 10000


def instructions(code):
    return list(dis.get_instructions(code))


def shown(one):
    return "{:<24} {}".format(one.opname, "" if one.arg is None else "{} ({})".format(one.arg, one.argrepr) if one.argrepr else one.arg)


def listing(known):
    """As a text, for code without source."""
    lines = []
    for code in known:
        lines.append("# {} in {}".format(codes.qualified(code), code.co_filename))
        lines += ["{:>6} {}".format(one.offset, shown(one)) for one in instructions(code)[:COUNT_MAX]]
    return "\n".join(lines) + "\n"


def code_at(session, given):
    """(code, offset, address of offset 0)"""
    if given.get("frameId"):
        frame = session.handles.frame_of(given["frameId"]).frame
        session.handles.memory[hex(id(frame.f_code))] = frame.f_code
        return frame.f_code, max(frame.f_lasti, 0), id(frame.f_code)
    address = int(given.get("memoryReference") or "0", 16)
    for known in session.handles.memory.values():
        if type(known) is codes.Code and id(known) <= address < id(known) + max(len(known.co_code), 1):
            return known, address - id(known), id(known)
    raise probe.Failed("there is no code at {:#x}".format(address), "NOT_FOUND")


def disassemble(session, given):
    """Addresses are the code object's and the offset; what lies outside of it is "invalid", as the protocol wants it."""
    code, at, base = code_at(session, given)
    at += given.get("offset") or 0
    every = instructions(code)
    number = next((n for n, one in enumerate(every) if one.offset >= at), len(every)) + (given.get("instructionOffset") or 0)
    count = min(max(given.get("instructionCount") or 0, 0), COUNT_MAX)
    starts = dict(codes.line_starts(code))
    found = []
    path = codes.mine.path(code.co_filename)
    for n in range(number, number + count):
        if not 0 <= n < len(every):
            found.append({"address": hex(max(base + (n - len(every) if n < 0 else every[-1].offset + 2 * (n - len(every) + 1)), 0)),
                          "instruction": "", "presentationHint": "invalid"})
            continue
        one = every[n]
        row = {"address": hex(base + one.offset), "instruction": shown(one).rstrip()}
        if one.offset == 0 or n == number:
            row["symbol"] = codes.qualified(code)
        line = starts.get(one.offset)
        if line or n == number:
            row["line"] = line or codes.line_at(code, one.offset)
            if path:
                row["location"] = {"path": path}
        found.append(row)
    return {"instructions": found}
