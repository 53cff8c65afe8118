# Attacks: by another user, by a hostile target on a root-run tool, by what somebody left on the way.  One file a subject.
# Most need root, to become two ordinary users and to have namespaces of their own; without it they are skipped.
EXTRA_DIST += %D%/conftest.py %D%/parties.py %D%/fuse.py
EXTRA_DIST += %D%/debugger.py
EXTRA_DIST += %D%/counting.py
PYTESTS += %D%/test_page.py
PYTESTS += %D%/test_installed.py %D%/test_left_files.py
PYTESTS += %D%/test_users.py
PYTESTS += %D%/test_changing_files.py %D%/test_installed.py %D%/test_users.py
PYTESTS += %D%/test_debug_doors.py
PYTESTS += %D%/test_confined.py
PYTESTS += %D%/test_containers.py
PYTESTS += %D%/test_start.py %D%/test_crash_folder.py %D%/test_crash_handler.py
PYTESTS += %D%/test_rings.py
PYTESTS += %D%/test_debug_rights.py
PYTESTS += %D%/test_leftovers.py
EXTRA_DIST += %D%/conftest.py %D%/parties.py %D%/fuse.py %D%/secretive.py
PYTESTS += %D%/test_users.py %D%/test_secrets.py
PYTESTS += %D%/test_debug_strangers.py
PYTESTS += %D%/test_hangs.py
PYTESTS += %D%/test_terminal.py
PYTESTS += %D%/test_gdb_source.py
PYTESTS += %D%/test_killed.py
