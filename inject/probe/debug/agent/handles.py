# Numbers that stand for objects while the target is stopped: frames and what has children.  A number is never used twice, so an
# old one is an error and not another object.  All are dropped when the target goes on: nothing of the program's is kept alive.
import itertools

names = probe.part("names")
HANDLES_MAX = 200000
LAST = (1 << 31) - 1


class FrameHandle(object):
    def __init__(self, frame, ident, line):
        self.frame = frame
        self.ident = ident
        self.line = line


class Handles(object):
    def __init__(self):
        self.numbers = itertools.count()  # calls may come on two threads at once
        self.frames = {}
        self.by_frame = {}
        self.nodes = {}
        self.memory = {}  # memory reference -> object
        self.begun = {}  # answers under way: their rows that are done (variables.py)
        self.scratch = {}  # names that were made in the debug console, until the session ends

    def next(self):
        return next(self.numbers) % LAST + 1

    def frame(self, frame, ident, line):
        known = self.by_frame.get(id(frame))
        if known is None:
            known = self.next()
            self.frames[known] = FrameHandle(frame, ident, line)
            self.by_frame[id(frame)] = known
        return known

    def frame_of(self, number):
        found = self.frames.get(number)
        if found is None:
            raise probe.Failed("frame {} is of an earlier stop".format(number), "NOT_FOUND")
        return found

    def node(self, node):
        if len(self.nodes) >= HANDLES_MAX:
            raise probe.Failed("more than {} objects are open: go on, or step, to drop them".format(HANDLES_MAX))
        number = self.next()
        self.nodes[number] = node
        return number

    def node_of(self, number):
        found = self.nodes.get(number)
        if found is None:
            raise probe.Failed("reference {} is of an earlier stop: the program went on since; evaluate it again".format(number), "NOT_FOUND")
        return found

    def drop(self):
        for one in list(self.frames.values()):
            names.release(one.frame)
        self.frames, self.by_frame, self.nodes, self.memory, self.begun = {}, {}, {}, {}, {}

    def drop_thread(self, ident):
        for number, one in list(self.frames.items()):
            if one.ident == ident:
                names.release(one.frame)
                del self.frames[number]
                self.by_frame.pop(id(one.frame), None)
