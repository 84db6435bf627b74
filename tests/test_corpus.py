"""What is told from bytes: where a name may come into a file from elsewhere."""

from __future__ import annotations

import random

import pytest

from codemods.store.corpus import Corpus, is_imported, may_bring_in
from codemods.store.vocabulary import Vocabulary

BRINGS_IN = [
    b"from a import x\n",
    b"from a import x as other\n",
    b"import a.x\n",
    b"from a import y, \\\n    x\n",
    b"from a import (\n    y,  # (the old one)\n    x,\n)\n",
    b"from a import (\n    import_module,\n    x,\n)\n",
    b"from a import *\n",
    b"import a\na.x()\n",
    b"import a\na. \\\n  x()\n",
]
SPEAKS_OF_IT = [
    b"# x is what a makes\n",
    b'"""Use x with care."""\nfrom a import y\n',
    b"from a import (y,\n  z)\nprint(x)\n",
    b"x = 1\ny = x\n",
    b"from a import xx\nself_x = xx\n",
    b"import_of(y, x)\n",
    b"",
]


@pytest.mark.parametrize("data", BRINGS_IN)
def test_what_may_bring_a_name_in(data: bytes) -> None:
    assert may_bring_in(data, b"x")


@pytest.mark.parametrize("data", SPEAKS_OF_IT)
def test_what_only_speaks_of_a_name(data: bytes) -> None:
    assert not may_bring_in(data, b"x")


def test_a_name_behind_an_import_of_another_file_is_not_imported() -> None:
    joined = b"from a import (\n    y,\n\0x = 1\n"  # two files of a corpus, the first one cut short
    assert not is_imported(joined, joined.index(b"x"), joined.index(b"x") + 1)


def test_a_search_that_knows_the_words_finds_the_same() -> None:
    dice = random.Random(3)
    names = [b"rank", b"ranks", b"is_rank", b"r\xc3\xa4nk", b"get_rank(", b"init", b"x", b".rank = ", b"a.b", b"(", b"RANK"]
    corpus = Corpus()
    for n in range(40):
        text = b"".join(dice.choice([*names, b" ", b"\n", b"_", b", ", b"z"]) for _ in range(dice.randrange(10)))
        corpus.add(f"{n}.py", text + b"-" * 400_000)  # several runs
    before = {name: [*corpus.containing(name)] for name in names}
    vocabulary = Vocabulary(corpus._runs)
    assert any(vocabulary.holding(name) != vocabulary.holding(b"(") for name in names)
    corpus._vocabulary = vocabulary
    assert {name: [*corpus.containing(name)] for name in names} == before


def test_the_words_are_listed_where_many_names_are_looked_for() -> None:
    corpus = Corpus()
    for n in range(5):
        corpus.add(f"{n}.py", b"def name%d(): pass\n" % n)
    for n in range(300):
        assert [*corpus.using(b"name%d()" % n)] == [*corpus.containing(b"other%d" % n)] == []
    assert corpus._vocabulary is not None
    assert [[*corpus.containing(b"name%d(" % n)] for n in range(5)] == [[f"{n}.py"] for n in range(5)]
