# Many machines: the bus, agents, and what they answer.
PYTESTS += %D%/test_up.py %D%/test_settings.py %D%/test_agents.py %D%/test_crashes.py %D%/test_bus_commands.py %D%/test_acting.py %D%/test_control.py %D%/test_lies.py %D%/test_login.py %D%/test_debug.py %D%/test_history.py %D%/test_hosts.py %D%/test_postgres.py %D%/test_job_metrics.py
EXTRA_DIST += %D%/bus.py %D%/hosts.py %D%/nats_client.py %D%/postgres.py
# Jobs of several ranks.
PYTESTS += %D%/test_job_ranks.py %D%/test_hang.py %D%/test_sql.py %D%/test_looking.py
EXTRA_DIST += %D%/conftest.py
# Hosts that are not there; record.py made their stacks.
check_PROGRAMS += %D%/fake_hosts
tests_fleet_fake_hosts_LDADD = libprb.la $(JANSSON_LIBS) -lpthread
PYTESTS += %D%/test_many_ranks.py %D%/test_nemesis.py %D%/test_job_on_hosts.py
EXTRA_DIST += %D%/fakes.py %D%/record.py %D%/corpus/stacks.json
# Preloaded by test_login.py.
check_LTLIBRARIES += %D%/exit_locks.la
tests_fleet_exit_locks_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_fleet_exit_locks_la_LIBADD = -ldl -lpthread
