"""The profiler's tests use the interpreters and targets of the live tests."""

import importlib.util
import os
import sys

LIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live")
sys.path.append(LIVE)

_spec = importlib.util.spec_from_file_location("live_conftest", os.path.join(LIVE, "conftest.py"))
_live = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_live)

pytest_generate_tests = _live.pytest_generate_tests
pytest_report_header = _live.pytest_report_header
any_python, folders, start = _live.any_python, _live.folders, _live.start
