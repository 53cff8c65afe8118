"""The injection tests use the interpreters and targets of the live tests, too."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
