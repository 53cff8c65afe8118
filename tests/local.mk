# `make check`: C units (cmocka) here, programs under pytest in live, cli and the like.
include tests/unit/local.mk
