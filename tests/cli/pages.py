"""The parts of the README files that are printed, not typed: `make docs` renews them, test_pages.py compares them.

Such a part stands between `<!-- printed: NAME -->` and `<!-- end -->`.  NAME is a function below: to add one, write it.
"""

import ast
import glob
import json
import os
import re
import subprocess
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.environ.get("SRCDIR", os.path.join(HERE, "..", ".."))
PROBING = os.environ.get("PROBING", "probing")
FOLDERS = ("", "cli", "dap", "editors", "editors/*", "editors/vscode/walkthrough", "fleet", "fleet/*", "gdb", "inject", "inject/probe/*", "lib", "lib/*", "packaging", "packaging/*", "python", "tests", "tests/bench")
PART = re.compile(r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages():
    """All pages, as paths below SRCDIR."""
    found = [path for folder in FOLDERS for path in glob.glob(os.path.join(SRCDIR, folder, "*.md"))]
    return sorted(os.path.relpath(path, SRCDIR) for path in found)


def read(*names):
    with open(os.path.join(SRCDIR, *names), encoding="utf-8") as text:
        return text.read()


def probing(*arguments):
    done = subprocess.run([PROBING, "--color", "never", *arguments], check=True, stdout=subprocess.PIPE, timeout=60)
    return done.stdout.decode()


def rows(sql):
    return json.loads(probing("query", "-f", "json", sql))


def code(texts, between=" "):
    return between.join(f"`{text}`" for text in texts)


def table(head, lines):
    cells = [head] + [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    drawn = ["| {} |\n".format(" | ".join(line)) for line in cells]
    return "".join(drawn[:1] + ["|---" * len(head) + "|\n"] + drawn[1:])


def commands():
    """Every command with its other names and options."""
    known = json.loads(probing("help", "--json"))["commands"]
    return table(["command", "also", "what", "options"], [
        ["`{}`".format((one["name"] + " " + one["arguments"]).strip()), code(one["aliases"], ", "), one["summary"],
         code(option_word(option) for option in one["options"])] for one in known])


def option_word(option):
    argument = option["argument"] or ""
    return "--" + option["name"] + ("[={}]".format(argument[1:-1]) if argument.startswith("[") else "")


def statuses():
    """The exit statuses, as one paragraph."""
    known = ["**{status}** {meaning}".format(**one) for one in json.loads(probing("help", "--json"))["statuses"]]
    return textwrap.fill("; ".join(known) + ".", 130, break_on_hyphens=False) + "\n"


def tables():
    """The SQL tables."""
    known = rows("SELECT table_schema, table_name, doc FROM information_schema.tables WHERE table_schema <> 'information_schema'")
    return table(["table", "what"], [["`{}`".format((one["table_schema"] + "." if one["table_schema"] != "main" else "") +
                                                   one["table_name"]), one["doc"]] for one in known])


def functions():
    """What SQL has here beyond SQLite."""
    known = rows("SELECT form, doc FROM information_schema.functions WHERE kind <> 'SQLite'")
    return table(["function", "what"], [["`{}`".format(one["form"]), one["doc"]] for one in known])


def query_settings():
    """What SET changes."""
    known = rows("SELECT name, value, unit, doc FROM information_schema.settings WHERE name LIKE 'probing.%'")
    return table(["setting", "default", "what"], [["`{}`".format(one["name"]), (one["value"] + " " + one["unit"]).strip(), one["doc"]]
                                                  for one in known])


def settings(prefix="probing."):
    """The probe's settings, from the list that the probe is built with."""
    known = re.findall(r'^S\("([\w.]+)",\s*\w+,\s*"([^"]*)",\s*"[^"]*",[^"]*"((?:[^"\\]|\\.)*)"\)', read("inject/probe/settings.def"), re.MULTILINE)
    return table(["setting", "default", "what"], [[f"`{name}`", default, doc] for name, default, doc in known if name.startswith(prefix)])


def cluster_settings():
    """The settings of whoever asks a job and of agents."""
    known = re.findall(r'^S\(\w+, "([\w.]+)", \w+, "([^"]*)", "[^"]*", "[^"]*", "([^"]*)"\)', read("fleet/settings.def"), re.MULTILINE)
    return table(["`probing.cluster.…`", "default", "what"], [[f"`{name}`", default, doc] for name, default, doc in known])


def crash_settings():
    return settings("probing.crash")


def arguments(request):
    about = json.loads(read("editors/vscode/package.json"))["contributes"]["debuggers"][0]
    known = about["configurationAttributes"][request]["properties"]
    return table(["argument", "default", "what"], [
        [f"`{name}`", "" if one.get("default") in (None, "") or "${" in str(one["default"]) else
         "`{}`".format(json.dumps(one["default"])), one.get("description") or one["markdownDescription"]]
        for name, one in known.items()])


def attach():
    """What a debugger's attach takes."""
    return arguments("attach")


def launch():
    """What launch takes."""
    return arguments("launch")


def gdb_commands():
    """The commands of the gdb plugin: the names, usage and first line of each class."""
    found = []
    for path in sorted(glob.glob(os.path.join(SRCDIR, "gdb", "probing_gdb", "commands", "*.py"))):
        for node in ast.parse(read(path)).body:
            text = ast.get_docstring(node) or "" if isinstance(node, ast.ClassDef) else ""
            if "Usage:" not in text:
                continue
            names = next(ast.literal_eval(one.value) for one in node.body if isinstance(one, ast.Assign) and one.targets[0].id == "names")
            usage = re.search(r"^Usage: (.*)", text, re.MULTILINE).group(1)
            found.append([f"`{usage}`", code((name for name in names if not usage.startswith(name)), ", "),
                          text.partition("\n")[0]])
    return table(["command", "also", "what"], found)


def formats():
    """The formats of profiles."""
    known = sorted(json.loads(probing("help", "--json"))["profile_formats"], key=lambda one: one["name"])
    return table(["format", "what", "file names end in"], [
        ["`{}`".format(one["name"]), one["help"], code(one["suffixes"])] for one in known])


def renewed(text):
    """A page with its printed parts as they are now."""
    return PART.sub(lambda part: part.group(1) + globals()[part.group(2)]() + part.group(3), text)


if __name__ == "__main__":
    for page in pages():
        before = read(page)
        after = renewed(before)
        if after != before:
            print("renewed", page)
            with open(os.path.join(SRCDIR, page), "w", encoding="utf-8") as out:
                out.write(after)
