"""`python -m probing`: the `probing` command."""

import sys

from probing_c._tool import main

sys.exit(main())
