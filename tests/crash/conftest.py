"""The crash tests use the interpreters and targets of the live tests, too."""

import os
import sys

LIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live")
sys.path.append(LIVE)

from live_fixtures import any_python, folders, pytest_generate_tests, pytest_report_header, start  # noqa: E402, F401
