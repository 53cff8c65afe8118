# Many machines: the bus, agents, and what they answer.
PYTESTS += %D%/test_up.py %D%/test_agents.py %D%/test_acting.py %D%/test_lies.py
EXTRA_DIST += %D%/bus.py %D%/hosts.py %D%/nats_client.py
# Jobs of several ranks.
PYTESTS += %D%/test_job_ranks.py %D%/test_hang.py %D%/test_sql.py
EXTRA_DIST += %D%/conftest.py
