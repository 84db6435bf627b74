"""Every form in which a test by rank is written, in every place where it can stand: before `here()`, in a function `main`."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_comparisons import text_rank_compared_with_number
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule
from ddpfix.testing import MAIN, project_of

HEAD = "import os, sys\nimport torch.distributed as dist\nFIRST = 0\n"

GLOBAL = [
    "rank == 0", "0 == rank", "not rank", "rank in (-1, 0)", "rank in {0}", "rank <= 0", "rank < 1", "0 >= rank", "1 > rank",
    "get_rank() == 0", "dist.get_rank() == 0", "not dist.get_rank()", "dist.get_rank() < 1",
    "torch.distributed.get_rank() == 0", "torch.distributed.distributed_c10d.get_rank() == 0",
    "int(os.environ['RANK']) == 0", "int(os.environ.get('RANK', 0)) == 0", "int(os.environ.get('RANK', '-1')) <= 0",
    "os.environ['RANK'] == '0'", "os.environ.get('RANK') == '0'", "os.environ.get('RANK', '0') == '0'",
    "os.environ.get('RANK') in ('0', None)", "os.environ.get('RANK') in (None, '0')", "os.getenv('RANK') in ('0', '-1')",
    "int(os.getenv('RANK', '0')) == 0", "int(os.environ.get('RANK') or 0) == 0", "not int(os.environ.get('RANK', 0))",
    "int(os.environ['SLURM_PROCID']) == 0", "os.environ.get('SLURM_PROCID', '0') == '0'",
    "'RANK' not in os.environ or os.environ['RANK'] == '0'", "os.environ.get('RANK') is None or int(os.environ['RANK']) == 0",
    "int(os.environ['OMPI_COMM_WORLD_RANK']) == 0", "str(rank) == '0'", "env_int('RANK', 0) == 0",
    "trainer.is_global_zero", "self.trainer.is_global_zero", "trainer.strategy.is_global_zero", "fabric.is_global_zero",
    "trainer.global_rank == 0", "self.global_rank == 0", "trainer.global_rank < 1", "not self.global_rank",
    "trainer.strategy.global_rank == 0", "rank_zero_only.rank == 0", "getattr(rank_zero_only, 'rank', 0) == 0",
    "state.is_world_process_zero", "trainer.is_world_process_zero()", "self.is_world_process_zero()",
    "args.process_index == 0", "accelerator.process_index == 0", "accelerator.is_main_process",
    "Accelerator().is_main_process", "PartialState().is_main_process", "accelerator.state.is_main_process",
    "is_main_process()", "utils.is_main_process()", "is_main", "is_master", "is_primary(args)", "args.is_master",
    "self.is_master", "is_rank_zero()", "is_rank0", "master_process", "is_first_worker()", "is_lead_process()",
    "args.rank == 0", "cfg.rank == 0", "config['rank'] == 0", "cfg.dist.rank == 0", "args.distributed_rank == 0",
    "cfg.distributed_training.distributed_rank == 0", "args.global_rank in [-1, 0]", "cfg.get('rank', 0) == 0",
    "hvd.rank() == 0", "MPI.COMM_WORLD.Get_rank() == 0", "comm.rank == 0", "xm.get_ordinal() == 0",
    "jax.process_index() == 0", "misc.get_rank() == 0", "getattr(args, 'rank', 0) == 0", "args.rank is None or args.rank == 0",
    "rank is None or rank == 0", "rank == -1 or rank == 0", "rank is 0", "bool(rank == 0)", "not (rank != 0)", "not rank > 0",
    "not dist.is_initialized() or dist.get_rank() == 0", "dist.is_initialized() and dist.get_rank() == 0",
    "(dist.get_rank() if dist.is_initialized() else 0) == 0", "dist.get_rank() == 0 if dist.is_initialized() else True",
    "True if not dist.is_initialized() else dist.get_rank() == 0", "(r := dist.get_rank()) == 0", "(first := rank == 0)",
    "world_size == 1 or rank == 0", "rank == 0 or world_size == 1", "dist.get_rank(group=None) == 0",
    "-1 <= rank <= 0", "rank == 0 == local_rank", "(rank == 0) is True", "(rank == 0) == True",
    "int(rank) == 0", "rank == FIRST", "xm.is_master_ordinal(local=False)", "xm.is_master_ordinal(False)",
]  # fmt: skip
LOCAL = [
    "local_rank == 0", "not local_rank", "args.local_rank == 0", "args.local_rank in (-1, 0)", "local_rank <= 0",
    "int(os.environ['LOCAL_RANK']) == 0", "os.environ.get('LOCAL_RANK', '0') == '0'",
    "os.environ.get('LOCAL_RANK') in (None, '0')", "xm.is_master_ordinal()", "rank == 0 or local_rank == 0",
    "int(os.environ.get('SLURM_LOCALID', 0)) == 0", "trainer.local_rank == 0", "self.local_rank == 0",
    "state.is_local_process_zero", "trainer.is_local_process_zero()", "accelerator.is_local_main_process",
    "accelerator.local_process_index == 0", "args.local_process_index == 0", "hvd.local_rank() == 0", "get_local_rank() == 0",
    "rank % 8 == 0", "rank % torch.cuda.device_count() == 0", "dist.get_rank() % args.gpus_per_node == 0",
    "dist.get_node_local_rank() == 0", "is_local_main_process()",
]  # fmt: skip
OPPOSITE = {Ranks.ZERO: Ranks.OTHERS, Ranks.LOCAL_ZERO: Ranks.LOCAL_OTHERS}
FORMS = [(t, Ranks.ZERO) for t in GLOBAL] + [(t, Ranks.LOCAL_ZERO) for t in LOCAL]


def reaching(body: str, *, head: str = HEAD, **files: str) -> Ranks:
    """The ranks that come to `here()` in a function with this body."""
    source = f"{head}def main(args, cfg, config, rank, local_rank, world_size, trainer, state, accelerator):\n"
    return ranks_in(source + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n", **files)


def ranks_in(source: str, **files: str) -> Ranks:
    project = project_of(source, {f"{name}.py": text for name, text in files.items()})
    module = project.module(MAIN)
    assert module is not None
    call = next(c for c in module.nodes(ast.Call) if dotted(c.func) == "here")
    return ranks_at(module, call, project=project)


# Where the test stands; T is the test, O its opposite. The second word says whom the place is for.
PLACES = {
    "under it": ("if T:\n    here()", True),
    "negated": ("if not (T):\n    here()", False),
    "in the else": ("if T:\n    a()\nelse:\n    here()", False),
    "in an elif": ("if not (T):\n    a()\nelif x:\n    here()", True),
    "after an early return": ("if not (T):\n    return\nhere()", True),
    "after an early return of the others": ("if T:\n    return\nhere()", False),
    "after an exit": ("if T:\n    a()\nelse:\n    sys.exit()\nhere()", True),
    "as an operand of and": ("(T) and here()", True),
    "as an operand of or": ("(T) or here()", False),
    "in a conditional expression": ("x = here() if (T) else None", True),
    "on a name": ("kept = T\nif kept:\n    here()", True),
    "on the opposite name": ("kept = not (T)\nif kept:\n    return\nhere()", True),
    "with another operand": ("if x and (T):\n    here()", True),
    "through bool": ("if bool(T):\n    here()", True),
    "as a condition of a comprehension": ("[here() for x in xs if (T)]", True),
    "in a match": ("match T:\n    case True:\n        here()", True),
    "as a guard of a case": ("match x:\n    case int() if (T):\n        here()", True),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("test", "ranks"), FORMS)
def test_each_form_in_each_place(test: str, ranks: Ranks, place: str) -> None:
    body, for_them = PLACES[place]
    assert reaching(body.replace("T", test, 1) if "T" in body else body) is (ranks if for_them else OPPOSITE[ranks])


@pytest.mark.parametrize(
    "test",
    ["rank != -1", "rank is not None", "rank >= 0", "args.local_rank == -1", "dist.is_initialized()", "world_size > 1",
     "os.environ.get('LOCAL_RANK')", "not os.environ.get('RANK')", "'RANK' in os.environ", "os.environ.get('RANK') is None",
     "args.lora_rank == 0", "item.rank == 0", "control.should_save", "ranks[0] == 0", "matrix_rank(x) == 0",
     "args.rank_by == 'x'", "optimizer.zero_grad()", "domain == 0", "first == 'x'", "__name__ == '__main__'"],
)  # fmt: skip
def test_what_says_nothing_of_ranks(test: str) -> None:
    assert reaching(f"if {test}:\n    here()") is Ranks.ALL


@pytest.mark.parametrize(
    "test",
    ["rank == 1", "rank == world_size - 1", "rank == src", "rank in (0, 1)", "dist.get_rank(group) == 0", "rank < 4",
     "trainer.data_parallel_rank == 0", "args.save or rank == 0", "get_rank(group) == src", "args.node_rank == 0",
     "rank // 8 == 0", "rank % num_stages == 0", "i % world_size == rank", "0 < rank < 3"],
)  # fmt: skip
def test_ranks_that_are_not_shown(test: str) -> None:
    assert reaching(f"if {test}:\n    here()") is Ranks.UNKNOWN


@pytest.mark.parametrize(
    "test", ["rank", "dist.get_rank()", "int(os.environ['RANK'])", "rank != 0", "rank > 0", "rank >= 1", "1 <= rank"]
)
def test_the_other_ranks(test: str) -> None:
    assert reaching(f"if {test}:\n    here()") is Ranks.OTHERS
    assert reaching(f"if {test}:\n    return\nhere()") is Ranks.ZERO


# The environment holds texts: beside a number they are never equal.


@pytest.mark.parametrize(
    "test",
    ["os.environ['RANK'] == 0", "os.environ.get('RANK') == 0", "os.getenv('LOCAL_RANK', '0') == 0",
     "os.environ.get('RANK') in (0, -1)", "me == 0", "os.environ.get('RANK', 0) == 0",
     "str(rank) == 0", "x and os.environ['RANK'] == 0", "not os.environ['RANK'] != 0"],
)  # fmt: skip
def test_a_text_is_no_number(test: str) -> None:
    body = f"me = os.environ['RANK']\nif {test}:\n    here()"
    assert reaching(body) is Ranks.UNKNOWN
    tree = SourceModule(MAIN, f"{HEAD}me = os.environ['RANK']\nif {test}:\n    pass\n".encode())
    assert text_rank_compared_with_number(tree, tree.nodes(ast.If)[0].test) is not None


def test_everybody_comes_to_the_else_of_a_test_that_never_holds() -> None:
    assert reaching("if os.environ['RANK'] == 0:\n    a()\nelse:\n    here()") is Ranks.ALL
    assert reaching("if os.environ['RANK'] != 0:\n    here()") is Ranks.ALL


@pytest.mark.parametrize(
    "test", ["os.environ['RANK'] == '0'", "int(os.environ['RANK']) == 0", "rank == 0", "os.environ['HOST'] == 0"]
)
def test_what_is_compared_rightly(test: str) -> None:
    tree = SourceModule(MAIN, f"{HEAD}if {test}:\n    pass\n".encode())
    assert text_rank_compared_with_number(tree, tree.nodes(ast.If)[0].test) is None
