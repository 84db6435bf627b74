"""An import is found in a folder that a file of the project puts on `sys.path`, and in one that is installed."""

from __future__ import annotations

import pytest

from codemods.store.added_roots import folders_added, folders_of_commands
from codemods.store.live_project import LiveProject
from codemods.store.project import Project
from codemods.store.trace import Change
from codemods.store.traced_project import TracedProject

INIT_PATHS = """
import os.path as osp
import sys

def add_path(path):
    if path not in sys.path:
        sys.path.insert(0, path)

here = osp.dirname(__file__)
add_path(osp.join(here, "..", "lib"))
"""
TRAIN = "import _init_paths\nfrom models.net import Net\n"


def resolved(files: dict[str, str], dotted: str = "models.net.Net", importer: str = "tools/train.py") -> str | None:
    found = Project.of({path: text.encode() for path, text in files.items()}).resolve(dotted, importer)
    return found.path if found else None


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        (INIT_PATHS, ("//../lib",)),
        ("import sys\nsys.path.append('./lib')", ("./lib",)),
        ("import sys\nsys.path += ['lib', 'core']", ("lib", "core")),
        ("import sys\nsys.path = ['lib'] + sys.path", ("/lib/",)),
        ("import sys\nsys.path[0:0] = ['lib']", ("lib",)),
        ("import sys\nfor p in ('lib', 'core'):\n    sys.path.append(p)", ("lib", "core")),
        ("import sys\nsys.path.insert(0, str(Path(__file__).parent / 'lib'))", ("////lib",)),
        ("import os, sys\nROOT = os.getcwd()\nsys.path.append(f'{ROOT}/lib')", ("///lib",)),
        ("import os, sys\nROOT = os.getcwd()\nLIB = ROOT + '/lib'\nsys.path.append(LIB)", ("///lib",)),
        ("import os, sys\nsys.path.append(os.path.dirname(os.path.dirname(__file__)))", ()),
        ("import sys\nsys.path.append('..')", ()),
        ("import sys\nsys.path.append('/opt/lib')", ()),
        ("import sys\nprint('lib')\nsys.path.append(FOLDER)", ()),
        ("import sys\npaths.append('lib')\nprint(sys.path)", ()),
        ("sys.path.append('lib'", ()),
    ],
)
def test_what_a_file_puts_on_the_path(code: str, texts: tuple[str, ...]) -> None:
    found = folders_added("tools/a.py", code.encode())
    assert [t.strip("/") for t in found] == [t.strip("/") for t in texts]


def test_what_a_command_gives_as_the_path() -> None:
    script = b'export PYTHONPATH="$PWD/lib:$PYTHONPATH"\nPYTHONPATH=core:/opt/x:.. python a.py\n'
    assert folders_of_commands("run.sh", script) == ("lib", "core")


def test_the_library_of_a_script_beside_it() -> None:
    files = {"tools/_init_paths.py": INIT_PATHS, "tools/train.py": TRAIN, "lib/models/net.py": "", "old/models/net.py": ""}
    assert resolved(files) == "lib/models/net.py"
    assert resolved({**files, "tools/_init_paths.py": ""}) is None
    assert resolved({**files, "models/net.py": ""}) == "models/net.py"  # where Python looks anyway


def test_of_two_copies_the_nearer_one() -> None:
    one = {f"one/{p}": t for p, t in {"tools/paths.py": INIT_PATHS, "tools/train.py": TRAIN, "lib/models/net.py": ""}.items()}
    two = {path.replace("one/", "two/"): text for path, text in one.items()}
    assert resolved({**one, **two}, importer="two/tools/train.py") == "two/lib/models/net.py"
    assert resolved({**one, **two}, importer="train.py") is None  # either may be meant


@pytest.mark.parametrize("name", ["setup.py", "pyproject.toml"])
def test_an_installed_folder(name: str) -> None:
    assert resolved({"parts/models/net.py": "", f"parts/{name}": ""}) == "parts/models/net.py"
    assert resolved({"parts/src/models/net.py": "", f"parts/{name}": ""}) == "parts/src/models/net.py"
    assert resolved({"parts/models/net.py": "", name: ""}) is None


def test_a_command_that_names_the_folder() -> None:
    assert resolved({"run.sh": "PYTHONPATH=./lib python tools/train.py", "lib/models/net.py": ""}) == "lib/models/net.py"
    assert resolved({"run.sh": "PYTHONPATH=./libs python tools/train.py", "lib/models/net.py": ""}) is None


def test_a_package_of_the_environment_is_not_a_file_that_bears_its_name() -> None:
    assert resolved({"tools/paths.py": INIT_PATHS, "utils/peft.py": "", "lib/x.py": ""}, "peft.LoraConfig") is None


def test_a_run_that_is_remembered_and_an_editor_see_the_line_go() -> None:
    files = {"tools/paths.py": INIT_PATHS.encode(), "tools/train.py": TRAIN.encode(), "lib/models/net.py": b""}
    traced = TracedProject(files, files.get)
    found, number = traced.traced(lambda: traced.keep("asked", lambda: traced.resolve("models.net", "tools/train.py")))
    assert found is not None
    trace = traced.notes.trace(traced, {"asked": number})
    assert trace.broken_by(Change({"tools/paths.py": b"import sys\n"})) == {"asked"}
    assert trace.broken_by(Change({"tools/paths.py": INIT_PATHS.encode() + b"\n# more\n"})) == set()
    more = {**files, "also/setup.py": b"", "also/models/net.py": b""}
    assert trace.broken_by(Change({"also/models/net.py": b""}, TracedProject(more, more.get))) == {"asked"}
    live = LiveProject(files, files.get)
    assert live.resolve("models.net", "tools/train.py") is not None
    live.change("tools/paths.py", b"import sys\n")
    live.refresh()
    assert live.resolve("models.net", "tools/train.py") is None
