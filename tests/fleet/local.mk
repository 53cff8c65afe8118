# Many machines: the bus, agents, and what they answer.
PYTESTS += %D%/test_up.py
EXTRA_DIST += %D%/bus.py %D%/nats_client.py
