"""`python -m probing`: the `probing` command."""

import sys

from probing._tool import main

sys.exit(main())
