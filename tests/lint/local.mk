# The rules of the house that a machine can keep.  `make lint` runs these files alone, `make check` with all others.
# To add a rule: a test here; a tool in requirements.txt, which ./bootstrap check installs into build/lint.
PYTESTS += %D%/test_layers.py %D%/test_references.py %D%/test_style.py %D%/test_typescript.py
EXTRA_DIST += %D%/setup.sh %D%/tree.py %D%/requirements.txt
.PHONY: lint
lint: all
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/pytest.sh $(srcdir)/tests/lint
