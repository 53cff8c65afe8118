PYTESTS += %D%/test_cli.py %D%/test_targets.py %D%/test_output.py %D%/test_inside.py %D%/test_repl.py %D%/test_hostile_probe.py %D%/test_top.py %D%/test_pages.py %D%/test_want.py %D%/test_ranks.py %D%/test_completion.py %D%/test_memory.py %D%/test_plugins.py %D%/test_doctor.py %D%/test_demo.py
EXTRA_DIST += %D%/pages.py %D%/conftest.py %D%/fake_probe.py %D%/screen.py

# Print the printed parts of the README files again, into the source tree.
docs: all
	$(AM_V_GEN)$(AM_TESTS_ENVIRONMENT) $(PYTHON) $(srcdir)/tests/cli/pages.py
.PHONY: docs
