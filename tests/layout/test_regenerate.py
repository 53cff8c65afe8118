"""Every interpreter's headers, printed again, must say what the library holds for that release."""

import os
import shutil

import pytest

import layouts

needs_compiler = pytest.mark.skipif(not (os.environ.get("CC") or shutil.which("cc")), reason="needs a C compiler")


def ids(python):
    return python.id


@needs_compiler
@pytest.mark.parametrize("python", layouts.interpreters(), ids=ids)
def test_headers(python, tmp_path):
    include = layouts.include_of(python)
    if not include:
        pytest.skip("no internal headers installed")
    printed = layouts.print_layout(include, tmp_path, layouts.free_threaded(python))
    assert printed == layouts.of_python(python)


@needs_compiler
@pytest.mark.parametrize("python", [python for python in layouts.interpreters() if python.version >= (3, 13)], ids=ids)
def test_headers_free_threaded(python, tmp_path):
    """The free-threaded layout is compiled from the same headers with the one macro that such a build defines."""
    include = layouts.include_of(python)
    if not include:
        pytest.skip("no internal headers installed")
    printed = layouts.print_layout(include, tmp_path, True)
    assert printed == layouts.of_version(python.version, True)


def test_every_file_names_every_field():
    fields = layouts.re.findall(r"^FIELD\((\w+), (\w+),", open(os.path.join(layouts.FOLDER, "fields.def")).read(),
                                layouts.re.M)
    names = [name for name in os.listdir(layouts.FOLDER) if layouts.re.match(r"3\.\d+t?\.def$", name)]
    assert len(names) == 15
    for name in names:
        rows = layouts.read(os.path.join(layouts.FOLDER, name))
        assert [row[1:] for row in rows if row[0] == "OFFSET"] == fields, name
