"""What debugged.py imports while it is debugged."""

base = 10                                 # at late_module


def function(i):
    got = base + i                        # at late
    return got
