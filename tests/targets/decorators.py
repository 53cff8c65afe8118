"""Decorators, properties, class and static methods, context managers, descriptors, super()."""

import contextlib
import functools

import oracle


def logged(prefix):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    return decorate


class Counted:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)


@contextlib.contextmanager
def scope():
    stand()
    yield


@logged("a")
@logged("b")
def stand():
    oracle.park(0)


@Counted
def counted(value):
    with scope():
        return value


class Base:
    @property
    def size(self):
        return counted(1)

    def run(self):
        return self.size

    def __getattr__(self, name):
        return self.run()


class Derived(Base):
    @classmethod
    def make(cls):
        return cls.start(cls())

    @staticmethod
    def start(instance):
        return instance.missing

    def run(self):
        return super().run()


Derived.make()
