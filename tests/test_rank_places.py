"""Where a statement stands, and what stands round it elsewhere: functions, classes, files, wrappers, spawned workers."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from ddpfix.testing import MAIN, project_of
from tests.test_rank_forms import ranks_in

DIST = "import functools\nimport os\nimport sys\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"


def of(source: str, **files: str) -> Ranks:
    return ranks_in(DIST + textwrap.dedent(source), **{name: DIST + textwrap.dedent(text) for name, text in files.items()})


ZERO = {
    "at module level": """
        if __name__ == "__main__":
            if dist.get_rank() == 0:
                here()
        """,
    "behind a module level exit": """
        if dist.get_rank() != 0:
            sys.exit(0)
        here()
        """,
    "in a class body": """
        class A:
            if dist.get_rank() == 0:
                x = here()
        """,
    "in a lambda": "f = lambda: here() if dist.get_rank() == 0 else None\n",
    "in a lambda made under the test": """
        def f():
            if dist.get_rank() == 0:
                return lambda: here()
        """,
    "in a function that only they define": """
        def f():
            if dist.get_rank() == 0:
                def g():
                    here()
                g()
        """,
    "in a function defined behind an early return": """
        def f():
            if dist.get_rank():
                return
            def g():
                here()
            g()
        """,
    "in a class that only they define": """
        if dist.get_rank() == 0:
            class A:
                def f(self):
                    here()
        """,
    "in a loop": """
        def f(xs):
            for x in xs:
                if dist.get_rank() != 0:
                    break
                here()
        """,
    "behind an exception": """
        def f():
            if dist.get_rank() != 0:
                raise RuntimeError("only rank 0")
            here()
        """,
    "behind os._exit": """
        def f():
            if dist.get_rank() != 0:
                os._exit(0)
            here()
        """,
    "behind an exit in both arms": """
        def f(x):
            if dist.get_rank() != 0:
                if x:
                    return 1
                else:
                    return 2
            here()
        """,
    "in a try": """
        def f():
            try:
                if dist.get_rank() != 0:
                    return
                here()
            finally:
                clean()
        """,
    "in the else of a try": """
        def f():
            try:
                if dist.get_rank() != 0:
                    return
            except ValueError:
                pass
            else:
                here()
        """,
    "behind a try that only cleans up": """
        def f():
            try:
                if dist.get_rank() != 0:
                    return
            finally:
                clean()
            here()
        """,
    "in an except of theirs": """
        def f():
            if dist.get_rank() == 0:
                try:
                    a()
                except ValueError:
                    here()
        """,
    "in a case": """
        def f():
            match dist.get_rank():
                case 0:
                    here()
                case _:
                    pass
        """,
    "in a case of several": """
        def f(rank):
            match rank:
                case -1 | 0:
                    here()
        """,
    "behind a case that returns": """
        def f(rank):
            match rank:
                case 0:
                    pass
                case _:
                    return
            here()
        """,
    "in a while": """
        def f():
            while dist.get_rank() == 0 and more():
                here()
        """,
    "an attribute of the class": """
        class A:
            def __init__(self):
                self.first = dist.get_rank() == 0
            def f(self):
                if self.first:
                    here()
        """,
    "a property of the class": """
        class A:
            @property
            def first(self):
                return dist.get_rank() == 0
            def f(self):
                if not self.first:
                    return
                here()
        """,
    "a property that is the rank": """
        class A:
            @functools.cached_property
            def me(self):
                return int(os.environ["RANK"])
            def f(self):
                if self.me == 0:
                    here()
        """,
    "a method of the class": """
        class A:
            def ready(self):
                if not dist.is_initialized():
                    return True
                return dist.get_rank() == 0
            def f(self):
                if self.ready():
                    here()
        """,
    "a field of the arguments": """
        def f(args):
            args.rank = int(os.environ["RANK"])
            args.writes = args.rank == 0
            if args.writes:
                here()
        """,
    "a field that is the rank": """
        def f(args):
            args.me = dist.get_rank()
            if args.me == 0:
                here()
        """,
    "a helper with two returns": """
        def ready():
            if dist.get_rank() == 0:
                return True
            return False
        if ready():
            here()
        """,
    "a helper with an else": """
        def ready():
            if dist.get_rank() != 0:
                return False
            else:
                return True
        if ready():
            here()
        """,
    "a helper of a helper": """
        def whoami():
            if not dist.is_available() or not dist.is_initialized():
                return 0
            return dist.get_rank()
        def ready():
            return whoami() == 0
        def f():
            ok = ready()
            if ok:
                here()
        """,
    "a rank that is worked out": """
        def f(gpu, args):
            me = args.nr * args.gpus + args.local_rank
            if me == 0:
                here()
        """,
    "a spawned worker that says so": """
        def work(rank, world_size):
            dist.init_process_group("nccl", rank=rank, world_size=world_size)
            if rank == 0:
                here()
        mp.spawn(work, nprocs=2)
        """,
    "a decorator": "@rank_zero_only\ndef f():\n    here()\n",
    "a decorator with arguments": "@accelerator.on_main_process()\ndef f():\n    here()\n",
    "a decorated method": """
        class A:
            @master_only
            def f(self):
                here()
        """,
    "a wrapper that gives the function back": """
        def only_first(func):
            if dist.get_rank() == 0:
                return func
            return lambda *a, **k: None
        @only_first
        def f():
            here()
        """,
    "a wrapper that chooses": """
        def only_first(func):
            def nothing(*args):
                return None
            return func if dist.get_rank() == 0 else nothing
        @only_first
        def f():
            here()
        """,
    "a wrapper with an early return": """
        def only_first(func):
            @functools.wraps(func)
            def inner(*args, **kwargs):
                if dist.get_rank() != 0:
                    return None
                return func(*args, **kwargs)
            return inner
        @only_first
        def f():
            here()
        """,
    "a wrapper with arguments": """
        def only_first(default=None):
            def decorate(func):
                def inner(*args, **kwargs):
                    return func(*args, **kwargs) if dist.get_rank() == 0 else default
                return inner
            return decorate
        @only_first(default=3)
        def f():
            here()
        """,
    "a wrapper that is a class": """
        class OnlyFirst:
            def __init__(self, func):
                self.func = func
            def __call__(self, *args, **kwargs):
                if dist.get_rank() == 0:
                    return self.func(*args, **kwargs)
        @OnlyFirst
        def f():
            here()
        """,
}  # fmt: skip


@pytest.mark.parametrize("name", ZERO)
def test_only_rank_zero_comes_here(name: str) -> None:
    assert of(ZERO[name]) is Ranks.ZERO


OTHERS_WAY = {
    "the finally": (
        "def f():\n    try:\n        if dist.get_rank():\n            return\n    finally:\n        here()\n",
        Ranks.ALL),
    "another case": ("def f(rank):\n    match rank:\n        case 0:\n            a()\n        case _:\n            here()\n",
                     Ranks.OTHERS),
    "a case of another rank": ("def f(rank):\n    match rank:\n        case 1:\n            here()\n", Ranks.UNKNOWN),
    "the rest of such cases": (
        "def f(rank):\n    match rank:\n        case 1:\n            a()\n        case _:\n            here()\n", Ranks.UNKNOWN),
    "a match of something else": ("def f(x):\n    match x:\n        case 0:\n            here()\n", Ranks.ALL),
    "a try that may swallow": (
        "def f():\n    try:\n        if dist.get_rank():\n            return\n    except OSError:\n        pass\n    here()\n",
        Ranks.UNKNOWN),
    "a default of the function": ("if dist.get_rank() == 0:\n    pass\ndef f(x=here()):\n    pass\n", Ranks.ALL),
    "the iterable": ("[x for x in here() if dist.get_rank() == 0]\n", Ranks.ALL),
    "the body of an ordered context": ("with accelerator.main_process_first():\n    here()\n", Ranks.ALL),
    "a spawned worker": ("def work(gpu, n):\n    if gpu == 0:\n        here()\nmp.spawn(work, nprocs=2)\n", Ranks.LOCAL_ZERO),
    "a worker nobody spawns": ("def work(gpu, n):\n    if gpu == 0:\n        here()\n", Ranks.ALL),
    "a field by the local rank": (
        "def f(args):\n    args.gpu = int(os.environ['LOCAL_RANK'])\n    if args.gpu == 0:\n        here()\n", Ranks.LOCAL_ZERO),
    "a local decorator": ("@accelerator.on_local_main_process\ndef f():\n    here()\n", Ranks.LOCAL_ZERO),
    "a helper of some ranks": ("def ok(r):\n    return dist.get_rank() == r\nif ok(1):\n    here()\n", Ranks.UNKNOWN),
    "a name that is bound anew": ("def f(x):\n    first = dist.get_rank() == 0\n    first = x\n    if first:\n        here()\n",
                                  Ranks.ALL),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS_WAY)
def test_who_else_comes_here(name: str) -> None:
    source, ranks = OTHERS_WAY[name]
    assert of(source) is ranks


# In other files


def test_a_field_that_another_file_sets() -> None:
    setup = "def init(args):\n    args.is_writer_rank = dist.get_rank() == 0\n"
    assert of("def f(args):\n    if args.is_writer_rank:\n        here()\n", setup=setup) is Ranks.ZERO


def test_a_property_of_an_object_from_another_file() -> None:
    trainer = "class T:\n    @property\n    def saves_on_this_rank(self):\n        return dist.get_rank() == 0\n"
    source = "def f(trainer):\n    if not trainer.saves_on_this_rank:\n        return\n    here()\n"
    assert of(source, trainer=trainer) is Ranks.ZERO
    other = "class U:\n    @property\n    def saves_on_this_rank(self):\n        return self.local_rank == 0\n"
    assert of(source, trainer=trainer, other=other) is Ranks.ALL


def test_a_method_of_an_object_from_another_file() -> None:
    env = "class Env:\n    def is_first_of_all(self):\n        return int(os.environ['RANK']) == 0\n"
    assert of("def f(env):\n    if env.is_first_of_all():\n        here()\n", env=env) is Ranks.ZERO


def test_a_wrapper_and_a_helper_two_files_away() -> None:
    ranks = "def ready():\n    return dist.get_rank() == 0\n"
    wrap = """
        from ranks import ready
        def quiet(func):
            def inner(*args):
                if ready():
                    return func(*args)
            return inner
        """
    assert of("from wrap import quiet\n@quiet\ndef f():\n    here()\n", wrap=wrap, ranks=ranks) is Ranks.ZERO


def test_a_worker_that_another_file_spawns() -> None:
    launch = "from main import work\nmp.spawn(work, nprocs=2)\n"
    assert of("def work(gpu):\n    if gpu == 0:\n        here()\n", launch=launch) is Ranks.LOCAL_ZERO


def test_a_name_that_a_package_gives_on() -> None:
    project = project_of(
        "from tools import ready\nif ready():\n    here()\n",
        {"tools/__init__.py": "from .deep import ready\n",
         "tools/deep.py": DIST + "def ready():\n    return dist.get_rank() == 0\n"},
    )  # fmt: skip
    module = project.module(MAIN)
    assert module is not None
    assert ranks_at(module, module.calls_named("here")[0], project=project) is Ranks.ZERO


def test_a_method_that_is_only_called_under_a_guard() -> None:
    source = """
    class Saver:
        def save(self):
            here()
        def end(self):
            if self.trainer.is_global_zero:
                self.save()
    """
    project = project_of(source)
    module = project.module(MAIN)
    assert module is not None
    assert ranks_reaching(project, module, next(c for c in module.nodes(ast.Call) if ast.unparse(c) == "here()")) is Ranks.ZERO
