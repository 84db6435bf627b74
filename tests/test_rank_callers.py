"""Who comes to a function or has an object at all: by every call, by who hands it on, in sections entered one by one."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import MANY, calls_of, uses_of
from codemods.store.project import Project
from ddpfix.testing import MAIN, project_of

DIST = "import contextlib\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"


def reaching(source: str, **files: str) -> Ranks:
    project = project_of(
        DIST + textwrap.dedent(source), {f"{name}.py": DIST + textwrap.dedent(text) for name, text in files.items()}
    )
    module = project.module(MAIN)
    assert module is not None
    return ranks_reaching(project, module, module.calls_named("here")[0])


WORK = "def work(*args):\n    here()\n"
PLACES = {
    "nobody calls it": (WORK, Ranks.ALL),
    "called under a guard": (f"{WORK}if dist.get_rank() == 0:\n    work()\n", Ranks.ZERO),
    "called twice, once by all": (f"{WORK}if dist.get_rank() == 0:\n    work()\nwork()\n", Ranks.ALL),
    "handed on by all": (f"{WORK}register(work)\n", Ranks.ALL),
    "handed on under a guard": (f"{WORK}if dist.get_rank() == 0:\n    Thread(target=work).start()\n", Ranks.UNKNOWN),
    "started in each process": (f"{WORK}if dist.get_rank() == 0:\n    mp.spawn(work, nprocs=2)\n", Ranks.ALL),
    "a method of that name elsewhere": (
        f"{WORK}class A:\n    def go(self):\n        self.work()\nif dist.get_rank() == 0:\n    work()\n", Ranks.ZERO),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_who_comes_to_a_function(name: str) -> None:
    source, ranks = PLACES[name]
    assert reaching(source) is ranks


def test_more_calls_than_one_looks_at_are_not_nobody() -> None:
    calls = "".join(f"    work({i})\n" for i in range(MANY + 1))
    guarded = f"{WORK}def main():\n    if dist.get_rank() == 0:\n        pass\n{calls}"
    assert reaching(guarded) is Ranks.UNKNOWN
    project = project_of(guarded)
    module = project.module(MAIN)
    assert module is not None
    assert calls_of(project, module, module.functions[0]) is None
    alone = project_of(WORK).module(MAIN)
    assert alone is not None
    assert calls_of(project_of(WORK), alone, alone.functions[0]) == ()


def test_a_common_name_is_looked_for_beside_its_class() -> None:
    others = {f"other{i}": "def f(x):\n    x.save()\n" for i in range(30)}
    source = "class Keeper:\n    def save(self):\n        here()\n"
    assert reaching(source, **others) is Ranks.UNKNOWN
    assert reaching(source, user="from module import Keeper\nk = Keeper()\nk.save()\n", **others) is Ranks.ALL
    only = "from module import Keeper\nk = Keeper()\nif dist.get_rank() == 0:\n    k.save()\n"
    assert reaching(source, user=only, **others) is Ranks.UNKNOWN


def test_a_function_of_that_name_in_another_file_is_another() -> None:
    other = f"{WORK}work()\n"
    assert reaching(f"{WORK}if dist.get_rank() == 0:\n    work()\n", other=other) is Ranks.ZERO
    assert reaching(f"{WORK}if dist.get_rank() == 0:\n    work()\n", other="from module import work\nwork()\n") is Ranks.ALL


def test_a_function_of_an_installed_package_is_no_call_of_a_method() -> None:
    guarded = "    def go(self):\n        if dist.get_rank() == 0:\n            self.load()\n"
    source = f"class Keeper:\n    def load(self):\n        here()\n{guarded}"
    assert reaching(f"{source}state = torch.load('a')\n") is Ranks.ZERO


# Objects


OBJECT = "class Board:\n    def __init__(self):\n        {0}\n    def update(self):\n        {1}\n"


@pytest.mark.parametrize("at", [("here()", "pass"), ("pass", "here()")])
def test_whoever_has_no_object_comes_to_no_method(at: tuple[str, str]) -> None:
    source = OBJECT.format(*at)
    guarded = "def main(a):\n    board = None\n    if dist.get_rank() == 0 and a:\n        board = Board()\n    run(board)\n"
    assert reaching(source + guarded) is Ranks.ZERO
    assert reaching(source + "board = Board()\n") is Ranks.ALL
    assert reaching(source) is Ranks.ALL
    assert reaching(source, main=f"from module import Board\n{guarded}") is Ranks.ZERO
    assert reaching(source, main=f"from module import Board\n{guarded}", other="import module\nb = module.Board()\n") is Ranks.ALL


def test_a_type_is_no_object_and_an_heir_is_one() -> None:
    source = OBJECT.format("pass", "here()")
    guarded = "def main(board: Board):\n    if dist.get_rank() == 0:\n        board = Board()\n"
    assert reaching(source + guarded) is Ranks.ZERO
    assert reaching(source + guarded + "class Wide(Board):\n    pass\nwide = Wide()\n") is Ranks.ALL
    assert reaching(source + guarded + "boards = {'a': Board}\n") is Ranks.ALL


# One after the other

SECTIONS = {
    "a context": "with accelerator.main_process_first():\n    here()\n",
    "a context behind a name": "c = accelerator.main_process_first() if a else contextlib.nullcontext()\nwith c:\n    here()\n",
    "barriers on both sides":
        "if dist.get_rank() > 0:\n    dist.barrier()\nhere()\nif dist.get_rank() == 0:\n    dist.barrier()\n",
    "barriers round a branch": """
        def load(path, local_rank):
            if local_rank not in (-1, 0):
                dist.barrier()
            if path.exists():
                here()
            else:
                build(path)
            if local_rank == 0:
                dist.barrier()
        """,
    "a context of the project": """
        @contextlib.contextmanager
        def wait_for_the_first():
            if dist.get_rank() != 0:
                dist.barrier()
            yield
            if dist.get_rank() == 0:
                dist.barrier()
        with wait_for_the_first():
            here()
        """,
    "a function called there": "def build():\n    here()\nwith accelerator.main_process_first():\n    build()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SECTIONS)
def test_who_enters_in_turn_is_not_shown(name: str) -> None:
    assert reaching(SECTIONS[name]) is Ranks.UNKNOWN


NO_SECTIONS = {
    "one barrier above": "if dist.get_rank() > 0:\n    dist.barrier()\nhere()\n",
    "barriers for all": "dist.barrier()\nhere()\ndist.barrier()\n",
    "behind both": "if dist.get_rank() > 0:\n    dist.barrier()\nif dist.get_rank() == 0:\n    dist.barrier()\nhere()\n",
    "what the context is made of": "with accelerator.main_process_first(here()):\n    pass\n",
    "another context": "with torch.no_grad():\n    here()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", NO_SECTIONS)
def test_what_is_no_section(name: str) -> None:
    assert reaching(NO_SECTIONS[name]) is Ranks.ALL


def test_tests_count_as_callers_where_there_are_no_others() -> None:
    head = f"from {MAIN.removesuffix('.py')} import work\n\n"
    files = {MAIN: WORK, "train.py": f"{head}work()\n", "tests/test_work.py": f"{head}x = work()\n"}
    project = Project.of({name: text.encode() for name, text in files.items()})
    module = project.module(MAIN)
    assert module is not None
    assert [site.module.path for site in calls_of(project, module, module.functions[0]) or ()] == ["train.py"]
    alone = Project.of({name: project.read(name) or b"" for name in (MAIN, "tests/test_work.py")})
    module = alone.module(MAIN)
    assert module is not None
    assert [site.module.path for site in calls_of(alone, module, module.functions[0]) or ()] == ["tests/test_work.py"]


BY_MODE = """
class Model:
    def validation(self, loader):
        if TEST:
            self.on_several(loader)
        else:
            self.on_one(loader)

    def on_several(self, loader):
        if dist.get_rank() == 0:
            self.on_one(loader)

    def on_one(self, loader):
        here()
"""


@pytest.mark.parametrize(
    ("test", "ranks"),
    [
        ("self.opt['dist']", Ranks.ZERO),
        ("self.opt['is_distributed']", Ranks.ZERO),
        ("self.opt.dist", Ranks.ZERO),
        ("self.opt['fast']", Ranks.ALL),
        ("self.opt[0]", Ranks.ALL),
    ],
)
def test_the_arm_of_a_run_with_one_process_brings_no_rank(test: str, ranks: Ranks) -> None:
    assert reaching(BY_MODE.replace("TEST", test)) is ranks


LOOP = """
    class Loop:
        def __init__(self, net):
            self.net = net

        def train(self, loader, epochs=1, *, verbose=False):
            self.net.train()
            for x in loader:
                self.net(x)
    """
OTHER = "class Loop:\n    def train(self, loader):\n        pass\n"


@pytest.mark.parametrize(
    ("lines", "is_ours"),
    [
        ("from loop import Loop\nmodel = Loop(net)\nmodel.train(rows, epochs=3)", True),
        ("from loop import Loop\nmodel = Loop(net)\nmodel.train(rows)", True),
        ("def go(model, rows):\n    model.train(rows, 3)", True),  # whose it is is not seen
        ("def go(model, rows):\n    model.train(*rows)", True),
        ("from loop import Loop\nLoop.train(model, rows)", True),
        ("def go(model):\n    model.train()", False),
        ("def go(model):\n    model.train(True, 3, False)", False),
        ("def go(model, rows):\n    model.train(rows, mode=1)", False),
        ("from other import Loop\nmodel = Loop()\nmodel.train(rows)", False),
        ("from other import Loop\nmodel = Loop()\nmodel = given(model)\nmodel.train(rows)", True),
        ("from other import Loop\nmodel = Loop()\nfor model in models:\n    model.train(rows)", True),
    ],
)
def test_whose_method_a_call_runs(lines: str, is_ours: bool) -> None:
    project = project_of(LOOP, {"other.py": OTHER, "run.py": lines}, path="loop.py")
    module = project.module("loop.py")
    assert module is not None
    function = next(f for f in module.functions if f.name == "train")
    calls = [s.module.path for s in uses_of(project, module, function).calls]
    assert calls == (["run.py"] if is_ours else [])


ASKED = """\
def report(x):
    here()

def work(x):
    try:
        {first}
        if dist.get_rank() == 0:
            report(gathered(x))
    except{caught}:
        {otherwise}
"""


@pytest.mark.parametrize(
    ("first", "caught", "otherwise", "ranks"),
    [("if dist.get_world_size() > 1:\n            x = 2 * x", "", "report(x)", Ranks.ZERO),
     ("size = dist.get_world_size()", " RuntimeError", "report(x)", Ranks.ZERO),
     ("x = prepare(x)", "", "report(x)", Ranks.ALL),  # what fails may be anything
     ("size = dist.get_world_size()", " OSError", "report(x)", Ranks.ALL),
     ("if dist.is_initialized() and dist.get_world_size() > 1:\n            x = 2 * x", "", "report(x)", Ranks.ALL),
     ("size = dist.get_world_size()", "", "report(x)\n        raise", Ranks.ALL)],
)  # fmt: skip
def test_a_handler_for_runs_without_a_group(first: str, caught: str, otherwise: str, ranks: Ranks) -> None:
    assert reaching(ASKED.format(first=first, caught=caught, otherwise=otherwise)) is ranks
