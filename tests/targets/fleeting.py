"""Code objects that are made, run and freed without pause, as in a long import."""

import os

SOURCE = "def made():\n    return [n for n in range(20)]\nfor _ in range(3):\n    made()\n"


def run(number):
    exec(compile(SOURCE, "<made {}>".format(number), "exec"), {})


def main():
    os.write(1, b"ready\n")
    number = 0
    while True:
        run(number)
        number += 1


main()
