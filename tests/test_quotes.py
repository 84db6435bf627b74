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
    other = "isn't"
    """


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        (SINGLE, "'"),
        ('a = "x"\nb = "y"\nc = \'z\'\n', '"'),
        ("a = f'{1}{2}{3}'\nb = \"x\"\nc = \"y\"\n", '"'),  # an f-string is one string, however many parts it has
        ("a = 1\n", '"'),
        ('"""One."""\n"""Two."""\na = r\'x\'\n', "'"),  # long strings do not count
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
    module = module_of("a, b, c = 'x', 'y', 'z'\ncall(\"name\")\n")
    assert with_its_quotes(module, 'call("name", "new")', span(module, 'call("name")')) == "call(\"name\", 'new')"


def test_nothing_is_turned_within_an_f_string() -> None:
    module = module_of("a, b, c = 'x', 'y', 'z'\nprint(f'{rank} of 2')\n")
    assert with_its_quotes(module, 'int(os.environ["RANK"])', span(module, "f'")) == 'int(os.environ["RANK"])'
