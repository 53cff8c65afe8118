"""Fixtures of the live tests: live_fixtures.py, which other folders use, too."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from live_fixtures import any_python, folders, pytest_generate_tests, pytest_report_header, start  # noqa: E402, F401
