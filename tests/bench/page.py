"""The figures as Markdown, and in tests/bench/README.md: a table between `<!-- figures: PART... -->` and `<!-- end -->`."""

import datetime
import os
import platform
import re

SECTION = re.compile(r"(<!-- figures: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = ["| figure | here | bar | met | peer | theirs | ratio |", "|---|---|---|---|---|---|---|"]


def cell(value, unit=""):
    return "" if value is None else (f"{value:.3g} {unit}".strip() if isinstance(value, float) else str(value))


def markdown(rows):
    lines = list(HEAD)
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        ratio = "" if row["ratio"] is None else "1/{:.1f}".format(1 / row["ratio"]) if row["ratio"] < 1 else "{:.1f}".format(row["ratio"])
        lines.append("| {} | {} | {} | {} | {} | {} | {} |".format(
            row["figure"].replace("|", "\\|"), cell(row["value"], row["unit"]), row["bar"] or "", met, row["peer"] or "",
            cell(row["theirs"], row["unit"].split(" (")[0]), ratio))
    return "\n".join(lines)


def machine():
    """One line: when and on what."""
    return f"Measured on {datetime.date.today().isoformat()}: {os.cpu_count()} CPUs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}."


def renewed(text, rows):
    """The page's text with the sections whose parts all have rows."""
    measured = {row["part"] for row in rows}

    def section(found):
        parts = found.group(2).split()
        if not measured.issuperset(parts):
            return found.group(0)
        table = markdown([row for row in rows if row["part"] in parts])
        return f"{found.group(1)}{machine()}\n\n{table}\n{found.group(3)}"

    return SECTION.sub(section, text)


def write(path, rows):
    with open(path, encoding="utf-8") as page:
        text = page.read()
    with open(path, "w", encoding="utf-8") as page:
        page.write(renewed(text, rows))
