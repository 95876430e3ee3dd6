"""The command line: the report, the diff, the files, the exit code."""

import subprocess
import sys
import textwrap

import pytest


pytest.importorskip("libcst")

from pytensor_loop.migrate.__main__ import main


GOOD = """\
import pytensor
import pytensor.tensor as pt

x = pt.vector("x")
total = pytensor.scan(
    lambda v, s: s + v, sequences=[x], outputs_info=[0.0], strict=True, return_updates=False
)
answer = total[-1]
"""
CONVERTED = """\
import pytensor.tensor as pt
from pytensor_loop import scan

x = pt.vector("x")
total, _ = scan(lambda s, v: (s + v, None), 0.0, x)
answer = total
"""
BAD = """\
from pytensor import scan


def loop(**options):
    return scan(lambda s: s + 1, **options)
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "bad.py").write_text(BAD)
    (tmp_path / "package" / "other.py").write_text("print('no loop')\n")
    return tmp_path


def test_the_diff_is_shown_and_nothing_is_written(project, capsys):
    path = project / "good.py"
    assert main([str(path)]) == 0
    out, err = capsys.readouterr()
    assert path.read_text() == GOOD
    assert out.startswith(f"--- a/{path}\n+++ b/{path}\n")
    assert "+total, _ = scan(lambda s, v: (s + v, None), 0.0, x)\n" in out
    assert "-answer = total[-1]\n" in out
    assert "+answer = total\n" in out
    assert err == (
        f"{path}:5: converted: strict dropped; "
        "`0.0` now takes the dtype that the step settles on; "
        "`total` now holds the last row\n"
        "1 call sites: 1 converted\n"
    )


def test_write_changes_the_file_and_shows_no_diff(project, capsys):
    path = project / "good.py"
    assert main(["--write", str(path)]) == 0
    assert path.read_text() == CONVERTED
    assert capsys.readouterr().out == ""
    assert main(["--write", str(path)]) == 0
    assert capsys.readouterr().err == "0 call sites\n"


def test_a_directory_is_searched_and_what_is_left_sets_the_exit_code(project, capsys):
    assert main([str(project)]) == 1
    bad = project / "package" / "bad.py"
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"{bad}:5: left alone: the call passes *args or **kwargs, so its arguments cannot be seen",
        "2 call sites: 1 converted, 1 left alone",
    ]
    assert bad.read_text() == BAD


def test_a_file_that_is_not_python_is_reported_and_the_rest_goes_on(project, capsys):
    broken = project / "broken.py"
    broken.write_text("from pytensor import scan\nscan(((\n")
    assert main([str(broken), str(project / "good.py"), str(project / "missing.py")]) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith(f"{broken}: cannot be read: ")
    assert any(line.startswith(f"{project / 'missing.py'}: cannot be read: ") for line in err)
    assert err[-1] == "1 call sites: 1 converted"


def test_line_ends_stay_as_they_are(project):
    path = project / "good.py"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert main(["--write", str(path)]) == 0
    assert path.read_bytes() == CONVERTED.replace("\n", "\r\n").encode()


def test_equal_lengths_are_trusted_on_request(tmp_path, capsys):
    path = tmp_path / "two.py"
    path.write_text(
        textwrap.dedent("""\
            from pytensor import scan

            def f(x, y):
                out, _ = scan(lambda a, b: a * b, sequences=[x, y])
                return out
            """)
    )
    main([str(path)])
    cut = capsys.readouterr()
    assert "pt.minimum(x.shape[0], y.shape[0])" in cut.out
    assert "sequences cut to the shortest as before" in cut.err
    main(["--equal-lengths", str(path)])
    trusted = capsys.readouterr()
    assert "shape[0]" not in trusted.out
    assert trusted.err == f"{path}:4: converted\n1 call sites: 1 converted\n"


def test_without_libcst_it_says_what_to_install(project, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stop:
        main([str(project)])
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith(
        'error: LibCST is needed: pip install "pytensor-loop[migrate]"\n'
    )


def test_it_runs_as_a_module(project):
    command = [sys.executable, "-m", "pytensor_loop.migrate", str(project / "good.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("--- a/")
    assert done.stderr.endswith("1 call sites: 1 converted\n")
