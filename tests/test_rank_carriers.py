"""No test that speaks of ranks is passed over for its names, and most others are not looked into."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from codemods.analysis.ranks.rank_carriers import may_speak_of_ranks, shows_rank
from codemods.analysis.ranks.rank_tests import split_of
from codemods.data import rank_names
from codemods.store.project import Project
from ddpfix.testing import MAIN, project_of

HERE = Path(__file__).parent.parent
TABLES = ("GLOBAL_NAMES", "LOCAL_NAMES", "GROUP_NAMES", "WEAK_NAMES", "ZERO_FLAGS", "WEAK_FLAGS", "LOCAL_FLAGS", "ARGUMENT_FLAGS")


@pytest.mark.parametrize("table", TABLES)
def test_every_name_of_a_rank_shows_it(table: str) -> None:
    names = getattr(rank_names, table)
    assert names and [name for name in names if not shows_rank(name)] == []


def speaks(source: str, **files: str) -> bool:
    project = project_of(textwrap.dedent(source), {f"{name}.py": textwrap.dedent(text) for name, text in files.items()})
    module = project.module(MAIN)
    assert module is not None
    return may_speak_of_ranks(module, module.nodes(ast.If)[-1].test, project)


HELPER = "from other import quiet\nif quiet():\n    pass\n"
SPEAKING = {
    "a name": "first = dist.get_rank() == 0\nshown = first\nif shown and x:\n    pass\n",
    "an attribute": "class A:\n    def f(self):\n        self.loud = rank == 0\n        if not self.loud:\n            pass\n",
    "a function": "def loud():\n    return os.environ['LOCAL_RANK'] == '0'\n\n\nif loud():\n    pass\n",
    "a function by its returns": (
        "def loud():\n    if get_rank() != 0:\n        return False\n    return True\n\n\nif loud():\n    pass\n"
    ),
    "a parameter by its default": "def f(x, loud=rank == 0):\n    if loud:\n        pass\n",
    "what is started": "def f(i, args):\n    if i == 0:\n        pass\n\n\nmp.spawn(f, nprocs=2)\n",
    "an arm": "loud = get_rank() == 0 if dist else True\nif loud:\n    pass\n",
    "a loop over ranks": "for i in range(x):\n    who = ranks[i]\n    if who == 0:\n        pass\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SPEAKING)
def test_what_a_rank_was_bound_to_may_speak_of_it(name: str) -> None:
    assert speaks(f"import os\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n{SPEAKING[name]}")


def test_a_name_from_another_file_is_asked_there() -> None:
    assert speaks(HELPER, other="import torch.distributed as dist\n\n\ndef quiet():\n    return dist.get_rank() != 0\n")
    assert speaks(HELPER, other="from third import quiet\n", third="quiet = int(os.environ['RANK']) > 0\n")
    assert not speaks(HELPER, other="def quiet():\n    return level < 2\n\n\ndef rank():\n    return 0\n")


QUIET = "def quiet():\n    return who() != 0\n"
WHO = "import torch.distributed as dist\n\n\ndef who():\n    return dist.get_rank()\n\n\n"
ELSEWHERE = {
    "a module that is imported whole": ("import other\nif other.quiet():\n    pass\n", {"other": WHO + QUIET}),
    "under another name": ("import other as o\nshown = not o.quiet()\nif shown:\n    pass\n", {"other": WHO + QUIET}),
    "a helper that asks a helper": (HELPER, {"other": WHO + QUIET}),
    "one in a third file": (HELPER, {"other": "from third import who\n\n\n" + QUIET, "third": WHO}),
    "two files that import each other": (
        HELPER,
        {"other": "from third import who\n\n\n" + QUIET, "third": "from other import quiet\n\n\n" + WHO + "x = quiet\n"},
    ),
    "a definition under a test": (HELPER, {"other": "if True:\n    def quiet():\n        return get_rank() != 0\n"}),
    "a definition behind two spaces": (HELPER, {"other": "def  quiet():\n    return get_rank() != 0\n"}),
    "a value that is taken apart": (
        "from other import mine\nif mine == 0:\n    pass\n",
        {"other": "import os\nall_of, mine = 2, int(os.environ['RANK'])\n"},
    ),
    "a docstring at the margin": (HELPER, {"other": "def quiet():\n    '''A.\n\nB.\n    '''\n    return get_rank() != 0\n"}),
    "a method of a base class": (
        "from other import Base\n\n\nclass A(Base):\n    def f(self):\n        if self.quiet():\n            pass\n",
        {"other": "class Base:\n    def quiet(self):\n        return get_rank() != 0\n"},
    ),
    "a property of a base class, named like another class's": (
        "from other import Base\n\n\nclass B:\n    def quiet(self):\n        return 1\n\n\n"
        "class A(Base):\n    def f(self):\n        if self.quiet:\n            pass\n",
        {"other": "class Base:\n    @property\n    def quiet(self):\n        return get_rank() != 0\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_is_followed_as_far_as_its_files_go(name: str) -> None:
    source, files = ELSEWHERE[name]
    assert speaks(source, **files)


def test_names_that_are_bound_to_each_other_are_told_whichever_is_asked_first() -> None:
    bound = "one = two\ntwo = one\ntwo = get_rank()\n"
    assert speaks(f"{bound}if one:\n    pass\nif two:\n    pass\n")
    project = project_of(f"{bound}if two == 0:\n    pass\nif one == 0:\n    pass\n")
    module = project.module(MAIN)
    assert module is not None
    assert [may_speak_of_ranks(module, node.test, project) for node in module.nodes(ast.If)] == [True, True]


@pytest.mark.parametrize(
    "test", ["x is None", "self.count > 3", "isinstance(x, dict)", "kind == 'b'", "done(x)", "log(rank=rank)", "args.out"]
)
def test_other_tests_do_not(test: str) -> None:
    assert not speaks(f"rank = 0\nx = log(rank)\nif {test}:\n    pass\n")


def test_no_test_of_a_rank_is_passed_over_in_the_fixtures() -> None:
    paths = sorted((HERE / "fixtures").rglob("*.py"))
    project = Project.of({str(p.relative_to(HERE)): p.read_bytes() for p in paths})
    seen = tested = passed = 0
    for path in project.python_files:
        module = project.module(path)
        for node in module.nodes(ast.If) if module is not None else ():
            assert module is not None
            may = may_speak_of_ranks(module, node.test, project)
            split = split_of(module, node.test, project)
            assert may or split is None, (path, node.lineno)
            seen, tested, passed = seen + 1, tested + (split is not None), passed + (not may)
    assert tested > 40 and passed > seen / 5
