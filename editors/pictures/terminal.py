"""terminal.py FILE: the picture of a terminal in README.md, as SVG, from a real run beside examples/train.py.

PROBING names the command, PYTHON an interpreter with PyTorch; `make pictures` sets both.
"""

import html
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
# what is typed, and how many lines of its output are shown
SCENE = (
    ("{pid} backtrace --native", 18),
    ("{pid} query \"SELECT thread_name, func, lineno FROM python.backtrace WHERE depth = 0\"", 8),
    ("{pid} eval --thread metrics \"step, loss\"", 3),
    ("{pid} top --count 1", 11),
)
COLUMNS, CELL, LINE = 100, 7.83, 18
COLOURS = {"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff",
           "35": "#d2a8ff", "36": "#76e3ea"}
PLAIN = "#c9d1d9"


def spans(line):
    """(text, colour, bold) of a line with ANSI colours, cut at COLUMNS."""
    colour, bold, left, found = PLAIN, False, COLUMNS, []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            codes = part[2:-1].split(";")
            bold = "1" in codes
            colour = next((COLOURS[code] for code in reversed(codes) if code in COLOURS), PLAIN)
        elif part and left > 0:
            cut = part if len(part) <= left else part[:left - 1] + "…"
            found.append((cut, colour, bold))
            left -= len(cut)
    return found


def drawn(lines):
    height = LINE * len(lines) + 52
    width = round(CELL * COLUMNS + 40)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
           '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>']
    out += [f'<circle cx="{20 + 20 * at}" cy="18" r="6" fill="{colour}"/>'
            for at, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))]
    out.append('<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="13">')
    for at, line in enumerate(lines):
        text = "".join('<tspan fill="{}"{}>{}</tspan>'.format(colour, ' font-weight="bold"' if bold else "",
                                                              html.escape(part).replace(" ", "\u00a0")) for part, colour, bold in spans(line))
        if text:
            out.append(f'<text x="20" y="{50 + LINE * at}">{text}</text>')
    return "\n".join(out + ["</g>", "</svg>", ""])


def scene(probing, pid):
    lines = []
    for arguments, shown in SCENE:
        typed = arguments.format(pid=pid)
        command = f"{probing} --color always {typed}"
        done = subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=60, env=dict(os.environ, COLUMNS=str(COLUMNS)))
        said = done.stdout.decode().rstrip("\n").split("\n")
        lines += ["\x1b[32m$\x1b[0m \x1b[1mprobing " + typed + "\x1b[0m"] + said[:shown]
        lines += ["\x1b[2m…\x1b[0m"] * (len(said) > shown) + [""]
    return lines[:-1]


def main():
    python = os.path.abspath(os.environ.get("PYTHON", sys.executable))
    paths = os.path.dirname(python) + os.pathsep + os.environ["PATH"]
    job = subprocess.Popen([os.path.basename(python), "train.py", "--workers", "1", "--every", "100"], cwd=EXAMPLES,
                           env=dict(os.environ, PATH=paths), stdout=subprocess.PIPE)
    try:
        assert job.stdout
        while not job.stdout.readline().startswith(b"step 100"):
            pass
        lines = scene(os.environ.get("PROBING", "probing"), job.pid)
    finally:
        job.terminate()
        job.communicate(timeout=60)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(drawn(lines))


if __name__ == "__main__":
    main()
