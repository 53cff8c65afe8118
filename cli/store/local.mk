# The store: collecting what is recorded.
