"""The quotes that a fix writes are those of the file."""

from __future__ import annotations

import pytest

from codemods.files.quotes import preferred_quote, with_its_quotes
from tests.places import module_of, span

SINGLE = """
    '''A program.'''
    import torch
    state = torch.load('last.pt')
    name = 'run'
    names = ['a', 'b', 'c', 'd', 'e']
    other = "isn't"
    """


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        (SINGLE, "'"),
        (f"a = {['x'] * 4 + ['y'] * 4}\nb = 'z'\n".replace("'y'", '"y"'), "'"),
        (f"a = {['x'] * 4 + ['y'] * 4}\nb = \"z\"\n".replace("'y'", '"y"'), '"'),
        (f"a = f'{{1}}{{2}}{{3}}{{4}}{{5}}'\nb = {['y'] * 8}".replace("'y'", '"y"'), '"'),  # an f-string is one string
        ("a = 1\n", '"'),
        ("a, b = 'x', 'y'\n", '"'),  # too few to tell
        ('"""One."""\n"""Two."""\n' * 9 + f"a = {['x'] * 8}\n".replace("'x'", "r'x'"), "'"),  # long strings do not count
    ],
)
def test_quote_of_most_strings(source: str, quote: str) -> None:
    assert preferred_quote(module_of(source)) == quote


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ('"cpu"', "'cpu'"),
        ('int(os.environ.get("RANK", 0)) == 0', "int(os.environ.get('RANK', 0)) == 0"),
        ('"isn\'t"', '"isn\'t"'),
        ('f"{rank}"', 'f"{rank}"'),
        ('"a\\n"', '"a\\n"'),
        ('"last.pt" if x else "first.pt"', "'last.pt' if x else 'first.pt'"),
        ('"""a"""', '"""a"""'),
    ],
)
def test_strings_take_it(code: str, written: str) -> None:
    module = module_of(SINGLE)
    assert with_its_quotes(module, code, span(module, "torch.load")) == written


def test_a_file_of_double_quotes_keeps_them() -> None:
    module = module_of('state = torch.load("last.pt")\n')
    assert with_its_quotes(module, '"cpu"', span(module, "torch.load")) == '"cpu"'


def test_what_stands_there_keeps_its_own() -> None:
    module = module_of(f"a = {['x'] * 9}\ncall(\"name\")\n")
    assert with_its_quotes(module, 'call("name", "new")', span(module, 'call("name")')) == "call(\"name\", 'new')"


def test_nothing_is_turned_within_an_f_string() -> None:
    module = module_of(f"a = {['x'] * 9}\nprint(f'{{rank}} of 2')\n")
    assert with_its_quotes(module, 'int(os.environ["RANK"])', span(module, "f'")) == 'int(os.environ["RANK"])'
