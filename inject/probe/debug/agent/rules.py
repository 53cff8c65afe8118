# The setting "rules": which files count as user code, by path or module, in place of what justMyCode says of them.
# As in debugpy: paths without wildcards come first, the longest first, then those with wildcards, then modules.
import os
import sys

SHAPE = 'rules must be an array of {"path": "...", "include": false} and {"module": "...", "include": false}'
WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher_of(pattern):
    """Whether a path is one that the pattern means: `**` stands for folders, `*` and `?` for a part of a name."""
    import re  # only where a pattern asks for it
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    found = re.compile("".join(WILDCARDS[one] if one in WILDCARDS else re.escape(one) for one in parts) + r"\Z", re.DOTALL)
    return lambda path: found.match(path) is not None


def below(pattern):
    folder = pattern.rstrip("/") + "/"
    return lambda path: path == pattern or path.startswith(folder)


def module_of(path):
    """The dotted name that an import gives the file, by the longest folder of sys.path."""
    folders = [os.path.realpath(one) + "/" for one in sys.path if isinstance(one, str) and one]
    folders = [one for one in folders if path.startswith(one)]
    if not folders:
        return ""
    name = os.path.splitext(path[max(map(len, folders)):])[0].replace("/", ".")
    return name[:-len(".__init__")] if name.endswith(".__init__") else name


def named(pattern):
    def matches(path):
        name = module_of(path)
        return name == pattern or name.startswith(pattern + ".")
    return matches


class Rules(object):
    """False when there are none."""

    def __init__(self, given):
        if not isinstance(given, list):
            raise probe.Failed(SHAPE)
        paths, patterns, modules = [], [], []
        for rule in given:
            if not isinstance(rule, dict) or not isinstance(rule.get("include"), bool):
                raise probe.Failed(SHAPE)
            path, module, include = rule.get("path"), rule.get("module"), rule["include"]
            if isinstance(path, str) and path:
                if "*" in path or "?" in path:
                    patterns.append((path, matcher_of(path), include))
                else:
                    path = os.path.realpath(path)
                    paths.append((path, below(path), include))
            elif isinstance(module, str) and module:
                modules.append((module, named(module), include))
            else:
                raise probe.Failed(SHAPE)
        for some in (paths, modules):
            some.sort(key=lambda one: -len(one[0]))
        self.all = paths + patterns + modules

    def __len__(self):
        return len(self.all)

    def include(self, path):
        """What the first rule that means the file says; None without one."""
        for _, matches, include in self.all:
            if matches(path):
                return include
        return None
