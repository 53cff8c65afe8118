"""Runs inside the interpreter under test (3.6 to 3.11): frame evaluation by the module evaluation.c, one function
case_… a case.  Arguments: the module, a case.  Prints "passed", or what went wrong."""

import sys

import exceptions
import leaving
import lines
import others
import stopping
from common import module


def main():
    why = module.evaluation_begin()
    if why:
        print("unusable:", why.decode())
        return
    name = "case_" + sys.argv[2]
    (case,) = [getattr(subject, name) for subject in (exceptions, leaving, lines, others, stopping)
               if hasattr(subject, name)]
    case()
    module.evaluation_end()
    print("passed")


if __name__ == "__main__":
    main()
