from support import pythons


def pytest_generate_tests(metafunc):
    pythons.parametrize(metafunc)
