"""A notebook as one program and back: byte for byte but for the lines that change."""

from __future__ import annotations

import ast
import json
import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from codemods.api.findings import RemoveStatement, WrapInGuard
from codemods.files import notebook
from codemods.files.notebook_places import layout as layout_of
from codemods.files.source import Unreadable
from codemods.rewriting.imports import plan_plain
from codemods.rewriting.rewriter import RewriteError, rewrite_bytes
from codemods.store.project import Project
from tests.notebooks import KERNEL, TRAINING, WRITERS, code, jupyter, kaggle, sources, text, without_sources
from tests.notebooks import notebook as made_of

Writer = Callable[[dict[str, Any]], bytes]


def program(data: bytes) -> str:
    return notebook.python_of("a.ipynb", data).decode()


def why(data: bytes) -> str:
    """What is said of a notebook that cannot be read."""
    project = Project.of({"a.ipynb": data})
    assert project.module("a.ipynb") is None
    return project.why_unreadable("a.ipynb")


# Round trips

LINES = (
    "import torch", "x = 1", "", "    ", "# caf\u00e9 \U0001f600", "if x:\n    y = '<&>'", "s = '''a\n%d\n!b\n'''",
    "z = (1\n  % 2)",
    "%time x", "!ls -l \\\n  *.py | grep \"(\"", "files = !ls", "x?", "??torch", "%matplotlib inline", "pip install torch",
    "def f():\n\tprint('\\t\"q\"')\n\t!echo hi", "a = b'\\x00/\\\\'", "t = 1 ; u = 2", "await_ = %pwd",
)  # fmt: skip


def random_notebook(dice: random.Random) -> dict[str, Any]:
    cells: list[dict[str, Any]] = []
    for _ in range(dice.randrange(1, 7)):
        kind = dice.random()
        if kind < 0.2:
            cells.append(text("".join(dice.choices(string.printable, k=30))))
            continue
        source = dice.choice(("\n", "\n", "\r\n")).join(dice.choices(LINES, k=dice.randrange(0, 6)))
        head = dice.choice(("", "", "", "%%time\n", "%%bash\n", "\n\n"))
        cells.append(code(head + source + dice.choice(("", "\n", "\n\n"))))
    return made_of(*cells, code("import torch"))


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("seed", range(60))
def test_a_program_without_a_change_is_the_file_byte_for_byte(write: Writer, seed: int) -> None:
    data = write(random_notebook(random.Random(seed)))
    new = program(data)
    ast.parse(new)
    assert notebook.written("a.ipynb", data, new.encode()) == data


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("seed", range(40))
def test_a_line_put_into_a_cell_changes_that_cell_alone(write: Writer, seed: int) -> None:
    dice = random.Random(seed)
    data = write(random_notebook(dice))
    module = Project.of({"a.ipynb": data}).module("a.ipynb")
    assert module is not None
    statement = dice.choice(module.tree.body)
    at = statement.lineno
    lines = module.text.splitlines(keepends=True)
    new = "".join([*lines[: at - 1], 'print("\u00e9 <new>")\n', *lines[at - 1 :]])
    assert notebook.cannot_be_written(module, new) == ""
    after = notebook.written("a.ipynb", data, new.encode())
    assert isinstance(module, notebook.NotebookModule)
    cell, line = module.cell_at(at)
    old, now = sources(data), sources(after)
    assert [i for i, (a, b) in enumerate(zip(old, now, strict=True), 1) if a != b] == [cell]
    wanted = old[cell - 1].splitlines(keepends=True)
    assert now[cell - 1] == "".join([*wanted[: line - 1], 'print("\u00e9 <new>")\n', *wanted[line - 1 :]])
    assert without_sources(after) == without_sources(data)
    alike = [next((i for i, (a, b) in enumerate(zip(*way, strict=False)) if a != b), len(data)) for way in
             ((data, after), (reversed(data), reversed(after)))]  # fmt: skip
    assert sum(alike) >= len(data)  # all of the file stands there, with something put into it at one place


def test_only_the_changed_lines_of_a_cell_are_written() -> None:
    data = jupyter(TRAINING)
    after = notebook.written("a.ipynb", data, program(data).replace("range(3)", "range(30)").encode())
    assert after == data.replace(b"range(3)", b"range(30)")


def test_characters_keep_their_spelling_in_a_changed_line() -> None:
    lines = rb'["x = \"\u00e9\/\u003c\" # torch\n", "y = 1"]'
    raw = b'{"cells": [{"cell_type": "code", "source": ' + lines + b'}], "metadata": {}, "nbformat": 4}'
    new = program(raw).replace("x = ", "other = ").replace("y = 1", 'y = "\u00e9</"')
    after = notebook.written("a.ipynb", raw, new.encode())
    assert after == raw.replace(b"x = ", b"other = ").replace(b"y = 1", b'y = \\"\\u00e9\\u003c\\/\\"')


def test_lines_stand_where_they_stand_in_the_file() -> None:
    data = jupyter(TRAINING)
    in_file, in_program = data.decode().splitlines(), program(data).splitlines()
    for number, line in enumerate(in_program):
        if line.strip() and not line.startswith(("#", "get_ipython")):
            assert json.loads(in_file[number].strip().rstrip(",")).rstrip("\n") == line


def test_a_place_in_the_program_is_found_in_a_file_of_one_line() -> None:
    data = kaggle(TRAINING)
    module = Project.of({"a.ipynb": data}).module("a.ipynb")
    assert module is not None
    layout = layout_of("a.ipynb", data)
    for node in module.functions:
        span = layout.span(module.span(node))
        assert (span.line, span.end_line) == (1, 1)
        assert data.decode()[span.column :].startswith("def train(rank, world_size):\\n")
        assert data.decode()[: span.end_column].endswith("dist.destroy_process_group()")


def test_a_byte_order_mark_and_windows_line_ends_of_the_file_are_kept() -> None:
    data = b"\xef\xbb\xbf" + jupyter(TRAINING).replace(b"\n", b"\r\n")
    after = notebook.written("a.ipynb", data, program(data).replace("range(3)", "range(4)").encode())
    assert after == data.replace(b"range(3)", b"range(4)")


# Magics


@pytest.mark.parametrize(
    "source",
    [
        "%time f()", "!ls", "if y:\n  !ls", "x = !ls", "x = %pwd", "f?", "f.g??", "?f", "%%time\nx = 1", "!a \\\n  b \\\n  c",
        "pip install x", "cd sub/folder", "/f 1", "%cd x  # if (", "!echo '''", "%env A=\"b", "%timeit -n 1 f(",
        "%%capture out\n!pip install x\nx = 1",
    ],
)  # fmt: skip
def test_what_is_no_python_becomes_calls_of_as_many_lines(source: str) -> None:
    data = jupyter(made_of(code(f"import torch\n{source}\ny = 2"), code(source)))
    new = program(data)
    names = [n.id for n in ast.walk(ast.parse(new)) if isinstance(n, ast.Name)]
    assert names.count("get_ipython") == 2 + source.count("!pip") * 2
    assert new.count("\n") > data[: data.rindex(b"outputs")].count(b"\n") - 12
    assert notebook.written("a.ipynb", data, new.replace("y = 2", "y = 3").encode()) == data.replace(b"y = 2", b"y = 3")


@pytest.mark.parametrize(
    "source", ["x = (1\n%y)", "s = '''\n!ls\n%time\n'''", "x = a \\\n% b", "x != y", "x %= 3", "f('a?')", "x = 1 # ?", "ls = 3"]
)
def test_python_that_looks_like_a_magic_stays(source: str) -> None:
    assert source in program(jupyter(made_of(code(f"import torch\n{source}"))))


@pytest.mark.parametrize("magic", ["bash", "html", "writefile train.py", "px", "javascript", "cython", "R"])
def test_a_cell_of_something_else_is_left_out(magic: str) -> None:
    assert "this is ( no" not in program(jupyter(made_of(code(f"%%{magic}\nthis is ( no Python"), code("import torch"))))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.replace("get_ipython()._(1)\n", ""), "cell 2: the change touches a magic or a shell line"),
        (lambda t: t.replace("get_ipython()._(0)", "if x:\n    get_ipython()._(0)"), "cell 2: the change touches a magic"),
        (lambda t: t.replace("#= end of the cell =#\n", "", 1), "the change goes over the border of a cell"),
        (lambda t: t.replace("#= cell 4 =#", "import os\n#= cell 4 =#"), "the change goes over the border of a cell"),
        (lambda t: t + "x = 1\n", "the change goes over the border of a cell"),
    ],
)  # fmt: skip
def test_a_change_beside_the_code_of_a_cell_is_refused(change: Callable[[str], str], reason: str) -> None:
    module = Project.of({"a.ipynb": jupyter(TRAINING)}).module("a.ipynb")
    assert module is not None
    assert reason in notebook.cannot_be_written(module, change(module.text))


# What cannot be read


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"metadata": {}, "nbformat": 3, "worksheets": [{"cells": [{"input": "import torch"}]}]}', "nbformat 3"),
        (jupyter(TRAINING)[:-60], "this is no JSON"),
        (jupyter(TRAINING).replace(b'"cells": [', b'"cells": [\n<<<<<<< HEAD\n', 1), "line 3: this is no JSON"),
        (b'["torch"]', "this is no notebook"),
        (b"#= notebook =#\n#= cell 1 =#\n\nimport torch\n\n#= end of the cell =#\n", "line 1: this is no notebook"),
        (b'{"torch": 1}', "this is no notebook"),
        (b'{"cells": [{"cell_type": "code", "source": [1, "torch"]}], "nbformat": 4}', "the source of a cell is no text"),
        (b'{"cells": [{"cell_type": "code", "source": "torch \\ud83d"}], "nbformat": 4}', "half a character"),
        (jupyter(TRAINING).replace(b"import torch", b"\xff torch", 1), "a notebook is UTF-8"),
        (jupyter(made_of(code("import torch"), text("x"), code("x = 1\nimport = 2"))), "cell 3: line 2: invalid syntax"),
        (jupyter(made_of(code("import torch\rx = 1"))), "cell 1 ends lines with a carriage return alone"),
        (b'{"nbformat": 5, "cells": [], "metadata": {"x": "torch"}}', "nbformat 5"),
        (b'{"torch": ' + b"[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_notebook_that_cannot_be_read_is_told_with_the_reason(data: bytes, reason: str) -> None:
    assert reason in why(data)


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "ir", "language": "R"}},
        {"language_info": {"name": "julia"}},
        {"kernelspec": {"name": "julia-1.10"}},
    ],
)
def test_a_notebook_of_another_language_is_left_alone(metadata: dict[str, Any]) -> None:
    assert program(jupyter(made_of(code("library(torch) <- %>%"), metadata=metadata))) == ""


@pytest.mark.parametrize(
    "metadata", [{}, KERNEL, {"kernelspec": {"name": "python3"}}, {"kernelspec": {"name": "conda-env-x-py"}}]
)
def test_a_notebook_of_python_or_of_no_named_language_is_read(metadata: dict[str, Any]) -> None:
    assert "import torch" in program(jupyter(made_of(code("import torch"), metadata=metadata)))


def test_a_cell_of_another_language_among_python_is_left_out() -> None:
    cell = code("SELECT 1", metadata={"vscode": {"languageId": "sql"}})
    assert "SELECT" not in program(jupyter(made_of(code("import torch"), cell)))


def test_a_file_that_cannot_be_written_back_is_no_result() -> None:
    data = jupyter(TRAINING)
    new = program(data).replace("get_ipython()._(1)", "pass").encode()
    with pytest.raises(Unreadable, match="magic"):
        notebook.written("a.ipynb", data, new)


# Imports


@pytest.mark.parametrize(
    ("cells", "source", "changed"),
    [
        (("!pip install torch", "import torch\nimport np", "import json"), "os", {2: "import torch\nimport np\nimport os"}),
        (("EPOCHS = 3", "%time\nimport torch", "x = 1"), "os", {2: "%time\nimport torch\nimport os"}),
        (("import torch", "import sys\nimport torch.nn"), "os", {1: "import torch\nimport os"}),
        (("# torch", "x = 1\n!ls"), "os", {2: "import os\nx = 1\n!ls"}),
        (("import os\nimport torch",), "os", {}),
    ],
)  # fmt: skip
def test_an_import_goes_into_the_cell_that_imports(cells: tuple[str, ...], source: str, changed: dict[int, str]) -> None:
    data = jupyter(made_of(*map(code, cells)))
    module = Project.of({"a.ipynb": data}).module("a.ipynb")
    assert module is not None
    planned = plan_plain(module, source)
    assert planned is not None
    after = notebook.written("a.ipynb", data, rewrite_bytes(module, planned.edits))
    assert sources(after) == [changed.get(i, cell) for i, cell in enumerate(cells, 1)]


def test_a_fix_across_two_cells_is_refused() -> None:
    data = jupyter(made_of(code("import torch\nx = 1"), code("y = 2")))
    module = Project.of({"a.ipynb": data}).module("a.ipynb")
    assert module is not None
    first, last = module.tree.body[1:]
    with pytest.raises(RewriteError, match="over the border of a cell"):
        rewrite_bytes(module, [WrapInGuard("a.ipynb", module.span(first), "rank == 0", module.span(last))])


def test_a_magic_cannot_be_put_under_a_guard() -> None:
    data = jupyter(made_of(code("import torch\n!ls\nx = 1")))
    module = Project.of({"a.ipynb": data}).module("a.ipynb")
    assert module is not None
    magic = module.span(module.tree.body[1])
    with pytest.raises(RewriteError, match="cell 1: the change touches a magic or a shell line"):
        rewrite_bytes(module, [WrapInGuard("a.ipynb", magic, "rank == 0", magic)])


def test_a_statement_at_the_end_of_a_cell_can_go() -> None:
    data = jupyter(made_of(code("import torch\nx = 1"), code("y = 2\n\n"), code("z = 3")))
    module = Project.of({"a.ipynb": data}).module("a.ipynb")
    assert module is not None
    gone = [RemoveStatement("a.ipynb", module.span(s)) for s in module.tree.body[1:]]
    after = notebook.written("a.ipynb", data, rewrite_bytes(module, gone))
    assert [source.strip() for source in sources(after)] == ["import torch", "", ""]
    assert without_sources(after) == without_sources(data)


def test_no_notebook_is_seen_by_another_file() -> None:
    other = jupyter(made_of(code("import torch\ndef helper(): pass")))
    project = Project.of({"a.py": b"def helper(): pass\n", "a.ipynb": jupyter(TRAINING), "b.ipynb": other})
    assert project.files_defining("helper") == {"a.py"}
    assert project.seen_from("a.py") is project
    here = project.seen_from("b.ipynb")
    assert here.files_defining("helper") == {"a.py", "b.ipynb"}
    assert here.python_files == ("a.py", "b.ipynb")
    assert here.files_containing(b"init_process_group") == ()
