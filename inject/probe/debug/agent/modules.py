# torch's modules as a tree of modules, parameters and buffers; optimizers as groups and the state of each parameter.
values = probe.part("values")
Child = values.Child
PARAMETERS_MAX = 5000  # that are counted for a text


def amount(number):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return "{:.1f} {}".format(number / size, letter)
    return str(number)


def table(module, name):
    """_modules, _parameters or _buffers as they are stored."""
    found = values.space_of(module).get(name)
    return found if isinstance(found, dict) else {}


def parameters(module, seen, room):
    """(how many numbers, whether all were counted)"""
    total = 0
    for one in list(table(module, "_parameters").values()):
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            size = 1
            for extent in one.shape:
                size *= extent
            total += size
    for one in list(table(module, "_modules").values()):
        if len(seen) > room:
            return total, False
        if one is not None:
            more, whole = parameters(one, seen, room)
            total += more
            if not whole:
                return total, False
    return total, True


class Module(object):
    def __init__(self, torch):
        self.kind = torch.nn.Module

    def fits(self, value):
        return isinstance(value, self.kind)

    def text(self, value):
        total, whole = parameters(value, set(), PARAMETERS_MAX)
        text = "{} ({}{} parameters".format(values.type_name(value), "" if whole else "more than ", amount(total))
        inner = len(table(value, "_modules"))
        if inner:
            text += ", {} modules".format(inner)
        return text + (", training)" if values.space_of(value).get("training") else ", eval)")

    def count(self, value):
        return 0

    def items(self, value, expression, start, count):
        return []

    def named(self, value, expression):
        rows = []
        for place in ("_modules", "_parameters", "_buffers"):
            for name, one in list(table(value, place).items()):
                if one is None:
                    continue
                if str(name).isidentifier():
                    path = values.joined(expression, str(name))
                else:
                    path = values.indexed(values.joined(expression, place), name)
                rows.append(Child(str(name), one, path, key=str(name)))
        own, groups = values.attributes(value, expression)
        hidden = ("_modules", "_parameters", "_buffers")
        data = [child for child in own if child.name not in hidden and not child.make and not child.name.startswith("_")]
        private = [child for child in own if child.name not in hidden and child.name.startswith("_") and not child.make]
        lazy = [child for child in own if child.make]
        groups = dict(groups, **{"private attributes": private, "properties": lazy})
        return rows + data, groups


class Optimizer(object):
    def __init__(self, torch):
        self.kind = torch.optim.Optimizer

    def fits(self, value):
        return isinstance(value, self.kind)

    def groups(self, value):
        found = values.space_of(value).get("param_groups")
        return found if isinstance(found, list) else []

    def text(self, value):
        groups = self.groups(value)
        rates = [values.text(group.get("lr"), 40) for group in groups if isinstance(group, dict)]
        total = sum(len(group.get("params", ())) for group in groups if isinstance(group, dict))
        rate = rates[0] if len(set(rates)) == 1 else "[" + ", ".join(rates[:8]) + "]"
        return "{} lr={} ({} groups, {} tensors)".format(values.type_name(value), rate, len(groups), total)

    def count(self, value):
        return 0

    def items(self, value, expression, start, count):
        return []

    def named(self, value, expression):
        state = values.space_of(value).get("state", {})
        path = values.joined(expression, "param_groups")
        rows = [Child("param_groups", self.groups(value), path, key="param_groups"),
                Child("defaults", values.space_of(value).get("defaults"), values.joined(expression, "defaults"))]
        each = []
        for number, group in enumerate(self.groups(value)):
            for place, one in enumerate(group.get("params", ())):
                if one in state:
                    inner = "{}.state[{}[{}]['params'][{}]]".format(expression, path, number, place) if path else None
                    each.append(Child("{}.{} {}".format(number, place, list(one.shape)), state[one], inner))
        own, groups = values.attributes(value, expression)
        rest = [child for child in own if child.name not in ("param_groups", "defaults", "state") and not child.make]
        return rows, dict({"state": each, "attributes": rest}, **groups)


def of(torch):
    return [Module(torch), Optimizer(torch)]
