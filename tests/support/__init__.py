"""What tests of several folders share.  tests/conftest.py makes fixtures of it."""
