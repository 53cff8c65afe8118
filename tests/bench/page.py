"""The figures as Markdown, and in tests/bench/README.md: a table between `<!-- figures: PART... -->` and `<!-- end -->`."""

import datetime
import os
import platform
import re

SECTION = re.compile(r"(<!-- figures: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = ["| figure | here | bar | met | peer | theirs | ratio |", "|---|---|---|---|---|---|---|"]


def cell(value, unit=""):
    return "" if value is None else (f"{value:.3g} {unit}".strip() if isinstance(value, float) else str(value))


def account(told):
    """One line: the whole, its pieces, and the floor."""
    def list_of(values):
        return ", ".join("{} {:.3g}".format(name, value) for name, value in values.items())

    line = "{}: {:.3g} {}. By account: {}.".format(told["figure"], told["whole"], told["unit"], list_of(told["pieces"]))
    return line + (" Floor: {}.".format(list_of(told["floor"])) if told["floor"] else "")


def markdown(rows, accounts=()):
    lines = list(HEAD)
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        ratio = "" if row["ratio"] is None else "1/{:.1f}".format(1 / row["ratio"]) if row["ratio"] < 1 else "{:.1f}".format(row["ratio"])
        lines.append("| {} | {} | {} | {} | {} | {} | {} |".format(
            row["figure"].replace("|", "\\|"), cell(row["value"], row["unit"]), row["bar"] or "", met, row["peer"] or "",
            cell(row["theirs"], row["unit"].split(" (")[0]), ratio))
    lines += [""] * bool(accounts) + ["- " + account(told) for told in accounts]
    return "\n".join(lines)


def machine():
    """One line: when and on what."""
    return f"Measured on {datetime.date.today().isoformat()}: {os.cpu_count()} CPUs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}."


def renewed(text, rows, accounts=()):
    """The page's text with the sections whose parts all have rows."""
    measured = {row["part"] for row in rows}

    def section(found):
        parts = found.group(2).split()
        if not measured.issuperset(parts):
            return found.group(0)
        table = markdown([row for row in rows if row["part"] in parts], [told for told in accounts if told["part"] in parts])
        return f"{found.group(1)}{machine()}\n\n{table}\n{found.group(3)}"

    return SECTION.sub(section, text)


def write(path, rows, accounts=()):
    with open(path, encoding="utf-8") as page:
        text = page.read()
    with open(path, "w", encoding="utf-8") as page:
        page.write(renewed(text, rows, accounts))
