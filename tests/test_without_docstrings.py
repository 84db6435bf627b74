"""What a file only says is left out before its patterns are looked for; code never is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemods.files.without_docstrings import without_docstrings, without_words
from ddpfix.catalog import all_codemods
from ddpfix.gate import Gate

HERE = Path(__file__).parent.parent
SOURCES = sorted(p for folder in ("codemods", "ddpfix", "tests") for p in (HERE / folder).rglob("*.py"))


def test_docstrings_go_and_code_stays() -> None:
    source = b'"""Says open(path, \'w\')."""\nx = 1\n\n\ndef f():\n    r\'\'\'Says print(x).\'\'\'\n    print(x)\n'
    assert without_docstrings(source) == b"\nx = 1\n\n\ndef f():\n    \n    print(x)\n"


@pytest.mark.parametrize(
    "source",
    [
        b"text = '''print(x)'''\n",  # a value
        b'f"""{print(x)}"""\n',  # a format runs what stands in it
        b'# not """ a string\nprint(x)\n"""\n',  # a comment
        b"quotes = '\"\"\"'\nprint(x)\n'''\n",  # quotes in a string
        b'"""never closed\nprint(x)\n',
    ],
)
def test_what_may_be_code_is_kept(source: bytes) -> None:
    assert without_docstrings(source) == source


def test_a_quote_behind_a_backslash_ends_nothing() -> None:
    assert without_docstrings(b'"""a \\""" print(x)\n"""\nprint(y)\n') == b"\nprint(y)\n"


def test_two_backslashes_are_one_that_escapes_nothing() -> None:
    source = b'def f():\n    """Writes to C:\\\\"""\n    print(x)\n\n\ndef g():\n    """Reads."""\n'
    assert without_docstrings(source) == b"def f():\n    \n    print(x)\n\n\ndef g():\n    \n"


def test_nothing_but_strings_is_left_out_of_real_files() -> None:
    def calls(data: bytes) -> list[str]:
        return sorted(called(n.func) for n in ast.walk(ast.parse(data)) if isinstance(n, ast.Call))

    def called(node: ast.expr) -> str:  # `ast.unparse` of all of them takes as long as a hundred other tests
        if isinstance(node, ast.Attribute):
            return f"{called(node.value)}.{node.attr}"
        return node.id if isinstance(node, ast.Name) else type(node).__name__

    seen = 0
    for path in SOURCES:
        data = path.read_bytes()
        left = without_docstrings(data).replace(b":\n    \n", b":\n    0\n")
        if left == data:
            seen += 1
            continue
        try:
            assert calls(left) == calls(data), path
            seen += 1
        except SyntaxError:  # a body that was a docstring alone
            assert left != data
    assert seen > len(SOURCES) / 3


def test_comments_on_lines_of_their_own_go_too() -> None:
    assert without_words(b"x = 1\n    # print(x)\ny = 2  # print(y)\n") == b"x = 1\ny = 2  # print(y)\n"


@pytest.mark.parametrize("source", [b'show("""\n# end""", print(x))\n', b"x = 1\n# old\rprint(x)\n"])
def test_code_behind_a_sharp_in_a_string_or_behind_an_old_line_end_stays(source: bytes) -> None:
    assert b"print(x)" in without_words(source)


def test_the_words_must_stand_in_the_code() -> None:
    gate = Gate(all_codemods())
    code = b"import os\nrank = 0\n\n\ndef f(path):\n    print(path)\n"
    spoken = b'"""For a Trainer of lightning, beside torch.distributed."""\n# self.global_rank\n' + code
    assert "DDP203" not in {c.code for c in gate.open_for(spoken, "train.py")}
    assert "DDP203" in {c.code for c in gate.open_for(b"from lightning import Trainer\n" + code, "train.py")}


def test_a_file_that_only_speaks_of_a_word_is_not_parsed() -> None:
    gate = Gate(all_codemods())
    head = b"import torch.distributed as dist\nfrom lightning import Trainer\n\nrank = dist.get_rank()\n\n\ndef f(path):\n"
    spoken = head + b'    """Use open(path, "w") and print(path)."""\n    # print(path)\n    return path\n'
    codes = {c.code for c in gate.open_for(spoken, "train.py")}
    done = {c.code for c in gate.open_for(spoken + b'    print(open(path, "w"))\n', "train.py")}
    assert not {"DDP202", "DDP203"} & codes and {"DDP202", "DDP203"} <= done
