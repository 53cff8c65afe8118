"""Names beyond ASCII: of functions, classes, variables, threads; the tests also rename the file."""

import threading

import oracle


class Größe:
    def вычислить(self, 値):
        return ᚠunction(値)


def ᚠunction(値):
    oracle.park()


threading.Thread(target=Größe().вычислить, args=(1,), name="поток 日本 💩", daemon=True).start()
oracle.park(1)
