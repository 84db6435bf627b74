"""What a removed statement takes with it, and what it leaves: comments, blank lines, the head of the file."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.api.findings import DropImport, DropKeyword, Edit, RemoveStatement
from codemods.files.source import SourceModule
from codemods.rewriting.rewriter import rewrite


def removed(source: str, *names: str) -> str:
    """The text without the functions and assignments of these names."""
    module = SourceModule("module.py", textwrap.dedent(source).encode())
    edits: list[Edit] = []
    for node in ast.walk(module.tree):
        name = getattr(node, "name", "")
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        if name in names and isinstance(node, ast.stmt):
            edits.append(RemoveStatement(module.path, module.span(node)))
    return rewrite(module, edits)


def without_imports(source: str, *names: str) -> str:
    module = SourceModule("module.py", textwrap.dedent(source).encode())
    edits = [
        DropImport(module.path, module.span(node), alias.asname or alias.name)
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if (alias.asname or alias.name) in names
    ]
    return rewrite(module, edits)


def check(got: str, wanted: str) -> None:
    assert got == textwrap.dedent(wanted)


def test_comment_lines_directly_above_go_at_the_top_level() -> None:
    check(removed("a = 1\n\n# about b\n# and more\nb = 2\n\nc = 3\n", "b"), "a = 1\n\nc = 3\n")


def test_a_comment_with_a_blank_line_below_it_stays() -> None:
    check(removed("a = 1\n\n# a section\n\nb = 2\nc = 3\n", "b"), "a = 1\n\n# a section\n\nc = 3\n")


def test_comments_that_begin_the_file_stay() -> None:
    check(removed("#!/usr/bin/env python\n# licence\na = 1\nb = 2\n", "a"), "#!/usr/bin/env python\n# licence\nb = 2\n")


def test_decorators_and_the_comments_above_them_go() -> None:
    source = "a = 1\n\n\n# about f\n@cache\n@other(1)\ndef f(x):\n    return x\n\n\nb = 2\n"
    check(removed(source, "f"), "a = 1\n\n\nb = 2\n")


def test_comments_at_the_end_of_the_removed_body_go() -> None:
    source = "def f(x):\n    return x\n    # never reached\n\n    # nor this\n\n\n# about b\nb = 2\n"
    assert "never" not in removed(source, "f") and "nor this" not in removed(source, "f")
    assert removed(source, "f").endswith("# about b\nb = 2\n")


def test_a_comment_below_at_the_same_depth_stays() -> None:
    check(removed("a = 1\ndef f():\n    return 1\n# about b\nb = 2\n", "f"), "a = 1\n# about b\nb = 2\n")


def test_two_neighbours_go_without_a_gap() -> None:
    source = "a = 1\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n\n\nb = 2\n"
    check(removed(source, "f", "g"), "a = 1\n\n\nb = 2\n")


def test_a_nested_function_goes_with_its_comment() -> None:
    source = "def main():\n    # scores\n    def f(x):\n        return x\n        # end\n\n    run()\n"
    check(removed(source, "f"), "def main():\n    run()\n")


def test_the_last_statement_of_a_file_without_final_newline() -> None:
    check(removed("a = 1\n\n\ndef f():\n    return 1", "f"), "a = 1\n")


def test_an_import_that_stood_alone_leaves_one_gap() -> None:
    check(without_imports("import os\n\nimport numpy as np\n\nimport mine\n", "np"), "import os\n\nimport mine\n")


def test_neighbours_that_vanish_between_blank_lines_take_nothing_else() -> None:
    source = "x = 1\n\nimport a\n\nimport b\n\ny = 2\n"
    check(without_imports(source, "a", "b"), "x = 1\n\ny = 2\n")


def test_an_import_among_others_leaves_no_gap() -> None:
    check(without_imports("import os\nimport numpy as np\nimport torch\n", "np"), "import os\nimport torch\n")


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_one_name_of_a_bracketed_import(name: str) -> None:
    source = "from m import (\n    A,  # first\n    B,\n    C,\n)\n"
    lines = [line for line in source.splitlines(keepends=True) if line.strip(" ,\n").split(",")[0] != name]
    assert without_imports(source, name) == "".join(lines)


def test_the_last_argument_of_a_call_on_several_lines() -> None:
    module = SourceModule("module.py", b"t = T(\n    model=m,  # the model\n    f=f,  # scores\n)\n")
    call = module.nodes(ast.Call)[0]
    edit = DropKeyword(module.path, module.span(call), "f")
    assert rewrite(module, [edit]) == "t = T(\n    model=m,  # the model\n)\n"
