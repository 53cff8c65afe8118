"""A Jupyter kernel that evaluates in another process: `probing kernel install`, then `%attach PID` in a notebook.

It runs outside that process; nothing of Jupyter is needed there.  Needs ipykernel.
"""

import os

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from probing_c import __version__
from probing_c._native import ProbeError
from probing_c._notebook import evaluate, frame, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

NO_TARGET = "no process is attached: %attach PID, or a part of its command line\n"


class ProbingKernel(Kernel):
    implementation = "probing"
    implementation_version = __version__
    language_info = {"name": "python", "mimetype": "text/x-python", "file_extension": ".py", "pygments_lexer": "ipython3"}
    banner = "Python in another process: %attach PID first; %query SQL asks its tables, %bt shows its stacks"

    def __init__(self, **options):
        # type: (Any) -> None
        super().__init__(**options)
        self.target = os.environ.get("PROBING_TARGET", "")

    def _say(self, stream, text):
        # type: (str, str) -> None
        self.send_response(self.iopub_socket, "stream", {"name": stream, "text": text})

    def _show(self, value):
        # type: (Any) -> None
        data = {"text/plain": repr(value)}
        as_html = getattr(value, "_repr_html_", None)
        if as_html:
            data["text/html"] = as_html()
        self.send_response(self.iopub_socket, "execute_result",
                           {"data": data, "metadata": {}, "execution_count": self.execution_count})

    def _run(self, code):
        # type: (str) -> bool
        word, _, rest = code.strip().partition(" ")
        if word == "%attach":
            self.target = rest.strip()
            found = rows(self.target, "SELECT pid, python, command FROM system.process")[0]
            self._say("stdout", "process {pid}, Python {python}: {command}\n".format(**found))
        elif not self.target:
            self._say("stderr", NO_TARGET)
            return False
        elif word == "%query":
            self._show(frame(rows(self.target, rest)))
        elif word == "%bt":
            self._show(frame(rows(self.target, "SELECT thread_name, depth, func, file, lineno FROM python.backtrace")))
        else:
            return evaluate(self.target, code, self._say) == 0
        return True

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        # type: (str, bool, bool, Optional[Dict[str, Any]], bool, Any) -> Dict[str, Any]
        try:
            good = not code.strip() or self._run(code)
        except (ProbeError, IndexError) as error:
            self._say("stderr", "{}\n".format(error))
            good = False
        if good:
            return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}
        return {"status": "error", "execution_count": self.execution_count, "ename": "ProbingError", "evalue": "", "traceback": []}


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=ProbingKernel)
