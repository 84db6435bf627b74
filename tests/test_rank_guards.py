"""Which ranks reach a statement: the marked line `here()` of each text."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks, decorated_ranks, early_exit, guards_over, negated, ranks_at, ranks_of_test
from codemods.files.source import SourceModule
from ddpfix.testing import MAIN, project_of


def ranks_here(source: str, **files: str) -> Ranks:
    project = project_of(source, {f"{name}.py": text for name, text in files.items()})
    module = project.module(MAIN)
    assert module is not None
    return ranks_at(module, here(module), project=project)


def here(module: SourceModule) -> ast.Call:
    return next(c for c in module.nodes(ast.Call) if dotted(c.func) == "here")


def under(test: str, head: str = "import torch.distributed as dist") -> Ranks:
    return ranks_here(f"{head}\ndef main(args, rank, trainer, accelerator, state):\n    if {test}:\n        here()\n")


ZERO_TESTS = [
    "rank == 0", "0 == rank", "not rank", "rank in (-1, 0)", "rank in [0, -1]", "rank < 1", "rank <= 0", "args.rank == 0",
    "args['rank'] == 0", "dist.get_rank() == 0", "not dist.get_rank()", "trainer.is_global_zero", "trainer.global_rank == 0",
    "state.is_world_process_zero", "trainer.is_world_process_zero()", "accelerator.is_main_process",
    "accelerator.process_index == 0", "int(os.environ['RANK']) == 0", "os.environ.get('RANK', '0') == '0'",
    "int(os.getenv('SLURM_PROCID', 0)) == 0", "rank_zero_only.rank == 0", "getattr(rank_zero_only, 'rank', 0) == 0",
    "rank is None or rank == 0", "not dist.is_initialized() or dist.get_rank() == 0", "rank == -1 or rank == 0",
    "args.save and rank == 0", "rank == 0 and step % 10 == 0", "dist.is_initialized() and dist.get_rank() == 0",
    "bool(rank == 0)", "not (rank != 0)", "not rank > 0", "(dist.get_rank() if dist.is_initialized() else 0) == 0",
]  # fmt: skip


@pytest.mark.parametrize("test", ZERO_TESTS)
def test_rank_zero_in_any_spelling(test: str) -> None:
    assert under(test) is Ranks.ZERO


@pytest.mark.parametrize(
    "test",
    ["args.local_rank == 0", "local_rank in (-1, 0)", "not local_rank", "accelerator.is_local_main_process",
     "state.is_local_process_zero", "int(os.environ.get('LOCAL_RANK', 0)) == 0", "self.local_rank == 0", "rank % 8 == 0"],
)  # fmt: skip
def test_local_is_not_global(test: str) -> None:
    assert under(test) is Ranks.LOCAL_ZERO


@pytest.mark.parametrize("test", ["rank != 0", "rank > 0", "not trainer.is_global_zero", "rank not in (-1, 0)", "rank >= 1"])
def test_the_other_ranks(test: str) -> None:
    assert under(test) is Ranks.OTHERS


@pytest.mark.parametrize(
    "test",
    ["rank == 1", "rank == world_size - 1", "rank == src", "rank in (0, 1)", "dist.get_rank(group) == 0",
     "trainer.data_parallel_rank == 0", "args.save or rank == 0"],
)  # fmt: skip
def test_some_ranks_that_are_not_shown(test: str) -> None:
    assert under(test) is Ranks.UNKNOWN


@pytest.mark.parametrize(
    "test",
    ["rank != -1", "rank is not None", "rank >= 0", "local_rank == -1", "dist.is_initialized()", "world_size > 1",
     "args.lora_rank == 0",
     "item.rank == 0", "control.should_save", "args.should_save", "ranks[0] == 0", "rank_dropout", "matrix_rank(x) == 0"],
)  # fmt: skip
def test_tests_that_say_nothing_of_ranks(test: str) -> None:
    assert under(test) is Ranks.ALL


def test_rank_is_a_low_rank_where_no_process_is_shown() -> None:
    assert under("rank == 0", head="import math") is Ranks.ALL


def test_rank_is_a_low_rank_beside_alpha() -> None:
    source = "import torch.distributed\ndef build(rank, alpha):\n    if rank == 0:\n        here()\n"
    assert ranks_here(source) is Ranks.ALL


def test_rank_is_a_low_rank_in_a_lora_class() -> None:
    source = """
    import torch.distributed
    class LoraLinear:
        def merge(self, rank):
            if rank == 0:
                here()
    """
    assert ranks_here(source) is Ranks.ALL


def test_rank_of_a_ranking_is_no_process() -> None:
    source = """
    import torch.distributed
    def show(items):
        for rank, item in enumerate(items):
            if rank == 0:
                here()
    """
    assert ranks_here(source) is Ranks.ALL


def test_should_save_is_a_flag_of_transformers_arguments_only() -> None:
    assert under("args.should_save", head="from transformers import Trainer") is Ranks.ZERO
    assert under("args.should_log", head="from transformers import Trainer") is Ranks.LOCAL_ZERO  # log_on_each_node=True
    assert under("control.should_save", head="from transformers import Trainer") is Ranks.ALL


def test_is_root_of_a_tree_is_no_process() -> None:
    assert under("node.is_root", head="import math") is Ranks.ALL


def test_a_name_bound_to_a_test() -> None:
    source = "import torch.distributed as dist\ndef f():\n    first = dist.get_rank() == 0\n    if first:\n        here()\n"
    assert ranks_here(source) is Ranks.ZERO


def test_a_name_bound_to_a_rank() -> None:
    source = "import os\ndef f():\n    me = int(os.environ['RANK'])\n    if me == 0:\n        here()\n"
    assert ranks_here(source) is Ranks.ZERO


def test_a_name_that_is_true_without_processes() -> None:
    source = """
    ddp = int(os.environ.get("RANK", -1)) != -1
    if ddp:
        first = global_rank == 0
    else:
        first = True
    if first:
        here()
    """
    assert ranks_here(source) is Ranks.ZERO


def test_an_attribute_bound_to_a_test() -> None:
    source = """
    class T:
        def __init__(self, args):
            self.chief = args.local_rank in (-1, 0)

        def save(self):
            if self.chief:
                here()
    """
    assert ranks_here(source) is Ranks.LOCAL_ZERO


def test_a_name_imported_from_another_file() -> None:
    source = "from env import FIRST\nif FIRST:\n    here()\n"
    assert ranks_here(source, env="import os\nFIRST = int(os.environ['RANK']) == 0\n") is Ranks.ZERO


def test_a_helper_of_the_project() -> None:
    helper = """
    import torch.distributed as dist
    def ready():
        if not dist.is_initialized():
            return True
        return dist.get_rank() == 0
    """
    assert ranks_here("from tools import ready\nif ready():\n    here()\n", tools=helper) is Ranks.ZERO


def test_a_helper_that_chooses_local_or_global() -> None:
    helper = """
    def is_global(args):
        return args.rank == 0 if args.world_size > 1 else True
    def is_local(args):
        return args.local_rank == 0
    def is_master(args, local=False):
        return is_local(args) if local else is_global(args)
    """
    start = "from tools import is_master\nif "
    assert ranks_here(f"{start}is_master(args):\n    here()\n", tools=helper) is Ranks.ZERO
    assert ranks_here(f"{start}is_master(args, local=True):\n    here()\n", tools=helper) is Ranks.LOCAL_ZERO


def test_a_helper_that_returns_the_rank() -> None:
    helper = "import torch.distributed as dist\ndef whoami():\n    return dist.get_rank() if dist.is_initialized() else 0\n"
    assert ranks_here("from tools import whoami\nif whoami() == 0:\n    here()\n", tools=helper) is Ranks.ZERO


def test_the_else_branch() -> None:
    assert ranks_here("if global_rank == 0:\n    pass\nelse:\n    here()\n") is Ranks.OTHERS
    assert ranks_here("if save and global_rank == 0:\n    pass\nelse:\n    here()\n") is Ranks.UNKNOWN


def test_an_elif_branch() -> None:
    assert ranks_here("if global_rank == 0:\n    pass\nelif x:\n    here()\n") is Ranks.OTHERS


def test_operands_and_conditional_expressions() -> None:
    assert ranks_here("global_rank == 0 and here()\n") is Ranks.ZERO
    assert ranks_here("global_rank == 0 or here()\n") is Ranks.OTHERS
    assert ranks_here("x = here() if global_rank == 0 else None\n") is Ranks.ZERO
    assert ranks_here("x = None if global_rank == 0 else here()\n") is Ranks.OTHERS


def test_the_test_itself_is_reached_by_all() -> None:
    assert ranks_here("if here() and global_rank == 0:\n    pass\n") is Ranks.ALL


def test_nested_guards_narrow() -> None:
    assert ranks_here("if is_main_process:\n    if is_local_main_process:\n        here()\n") is Ranks.ZERO
    assert ranks_here("if is_local_main_process:\n    for x in y:\n        if x:\n            here()\n") is Ranks.LOCAL_ZERO


@pytest.mark.parametrize("leave", ["return", "raise SystemExit"])
def test_an_early_exit(leave: str) -> None:
    assert ranks_here(f"def f(trainer):\n    if not trainer.is_global_zero:\n        {leave}\n    here()\n") is Ranks.ZERO


def test_an_early_exit_with_another_operand() -> None:
    assert ranks_here("def f(t, x):\n    if not t.is_global_zero or not x:\n        return\n    here()\n") is Ranks.ZERO
    assert ranks_here("def f(t, x):\n    if t.is_global_zero and x:\n        return\n    here()\n") is Ranks.UNKNOWN


def test_continue_in_the_same_loop_only() -> None:
    assert ranks_here("for x in y:\n    if global_rank != 0:\n        continue\n    here()\n") is Ranks.ZERO
    assert ranks_here("for x in y:\n    if global_rank != 0:\n        continue\nhere()\n") is Ranks.ALL


def test_a_return_inside_a_loop_or_a_context_above() -> None:
    assert ranks_here("def f():\n    with a:\n        if global_rank != 0:\n            return\n    here()\n") is Ranks.ZERO
    assert ranks_here("def f():\n    while x:\n        if global_rank != 0:\n            return\n    here()\n") is Ranks.UNKNOWN
    assert ranks_here("def f():\n    if x:\n        if global_rank != 0:\n            return\n    here()\n") is Ranks.UNKNOWN


def test_a_return_deep_in_a_guard_above() -> None:
    assert ranks_here("def f():\n    if global_rank == 0:\n        if done:\n            return\n    here()\n") is Ranks.UNKNOWN


def test_an_error_in_a_guard_above_is_another_matter() -> None:
    source = "def f():\n    if global_rank == 0:\n        if broken:\n            raise ValueError\n        work()\n    here()\n"
    assert ranks_here(source) is Ranks.ALL


def test_the_else_that_leaves() -> None:
    assert ranks_here("def f():\n    if global_rank == 0:\n        a()\n    else:\n        return\n    here()\n") is Ranks.ZERO


def test_a_return_of_an_inner_function_is_not_one_of_ours() -> None:
    source = "def f():\n    if global_rank == 0:\n        def g():\n            return 1\n        g()\n    here()\n"
    assert ranks_here(source) is Ranks.ALL


def test_the_body_of_an_ordered_context_is_reached_by_all() -> None:
    assert ranks_here("with accelerator.main_process_first():\n    here()\n") is Ranks.ALL


@pytest.mark.parametrize("decorator", ["rank_zero_only", "utilities.rank_zero_only", "accelerator.on_main_process"])
def test_decorators(decorator: str) -> None:
    assert ranks_here(f"@{decorator}\ndef f():\n    here()\n") is Ranks.ZERO


def test_a_local_decorator() -> None:
    assert ranks_here("@accelerator.on_local_main_process\ndef f():\n    here()\n") is Ranks.LOCAL_ZERO


WRAPPER = """
import functools
import torch.distributed as dist

def only_first(func):
    @functools.wraps(func)
    def inner(*args, **kwargs):
        if dist.get_rank() == 0:
            return func(*args, **kwargs)
        return None
    return inner

def master_only(func):
    def inner(*args, **kwargs):
        return func(*args, **kwargs)
    return inner
"""


def test_a_wrapper_of_the_project_is_looked_into() -> None:
    assert ranks_here("from tools import only_first\n@only_first\ndef f():\n    here()\n", tools=WRAPPER) is Ranks.ZERO


def test_a_wrapper_that_guards_nothing_in_spite_of_its_name() -> None:
    assert ranks_here("from tools import master_only\n@master_only\ndef f():\n    here()\n", tools=WRAPPER) is Ranks.ALL


def test_a_wrapper_that_decorates_its_own_inside() -> None:
    wrapper = "def again(func):\n    @again\n    def inner():\n        return func()\n    return inner\n"
    assert ranks_here("from tools import again\n@again\ndef f():\n    here()\n", tools=wrapper) is Ranks.ALL


def test_the_default_of_a_parameter_is_outside_the_decorator() -> None:
    module = SourceModule(MAIN, b"@rank_zero_only\ndef f():\n    pass\n")
    assert decorated_ranks(module, module.functions[0]) is Ranks.ZERO
    assert ranks_at(module, module.functions[0].decorator_list[0]) is Ranks.ALL


def test_the_functions_others_call() -> None:
    source = b"def f():\n    if global_rank != 0:\n        return\n    if global_rank == 0 and x:\n        a()\n    here()\n"
    module = SourceModule(MAIN, source)
    first, second = module.nodes(ast.If)
    assert early_exit(module, first) is Ranks.OTHERS
    assert early_exit(module, second) is None
    assert ranks_of_test(module, second.test) is Ranks.ZERO
    assert negated(Ranks.ZERO) is Ranks.OTHERS and negated(Ranks.LOCAL_ZERO) is Ranks.LOCAL_OTHERS
    assert [g.kind for g in guards_over(module, here(module))] == ["exit"]
