"""What shows, before a file is parsed, that several processes may run it; what in its bytes a codemod needs."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.importing import users_of
from codemods.analysis.run_by_ranks import may_show_ranks, shows_ranks
from codemods.analysis.variance.comparisons import decides
from codemods.analysis.variance.outlets import says_shown
from codemods.data.rank_variance import SHOWN_NUMBERS
from codemods.data.rank_words import SHOWS_NUMBERS, TESTS_BEST
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.gate import Gate

LICENCE = b"# Copyright of nobody.\n# Software is distributed on an AS IS basis.\n# It ranks nowhere.\n"
CODEMODS = {c.code: c for c in all_codemods()}


def opens(code: str, source: bytes) -> bool:
    return bool(Gate([CODEMODS[code]]).open_for(source, "a.py"))


def test_the_head_of_a_licence_speaks_of_no_processes() -> None:
    project = Project.of({"a.py": LICENCE + b"x = 1\n", "b.py": LICENCE + b"import torch.distributed as dist\n"})
    assert not may_show_ranks(project, "a.py")
    assert may_show_ranks(project, "b.py")


def test_a_name_that_holds_a_word_by_chance_does_not_either() -> None:
    project = Project.of({"a.py": b"from .ctrl import Model\ncontrol = Model()\n", "b.py": b"import trl\n"})
    assert not may_show_ranks(project, "a.py")
    assert may_show_ranks(project, "b.py")


def test_a_question_of_an_own_function_is_seen_where_a_comment_alone_speaks_of_ranks() -> None:
    own = b"import torch.distributed as dist\n\ndist.init_process_group()\n\n\ndef barrier():\n    dist.barrier()\n"
    source = LICENCE + b"from comm import barrier\n\nbarrier()\n"
    project = Project.of({"comm.py": own, "a.py": source})
    module = project.module("a.py")
    assert module is not None and ranks_in_file(project, module) is not None
    assert shows_ranks(project, "a.py")


PLACES = {
    "one/helpers.py": b"x = 1\n",
    "two/helpers.py": b"x = 1\n",
    "one/train.py": b"import torch.distributed\nfrom .helpers import x\n",
    "two/plain.py": b"from torch.helpers import y\n",
    "tool.py": b"import sys\nsys.path.append('two')\nfrom helpers import x\n",
}


def test_an_import_of_another_file_of_the_same_name_is_none_of_this_one() -> None:
    project = Project.of(PLACES)
    assert users_of(project, "one/helpers.py") == ("one/train.py",)
    assert users_of(project, "two/helpers.py") == ("tool.py",)  # by the search path that it makes longer


def test_an_import_by_a_search_path_that_is_not_written_may_lead_to_each() -> None:
    project = Project.of({**PLACES, "tool.py": b"import sys\nsys.path.append(FOLDER)\nfrom helpers import x\n"})
    assert users_of(project, "one/helpers.py") == ("one/train.py", "tool.py")
    assert users_of(project, "two/helpers.py") == ("tool.py",)
    assert may_show_ranks(project, "one/helpers.py") and not may_show_ranks(project, "two/helpers.py")


def test_a_file_is_used_through_its_package() -> None:
    project = Project.of({
        "nets/__init__.py": b"from .small import Net\n", "nets/small.py": b"class Net: ...\n",
        "run.py": b"import torch.distributed as dist\nfrom nets import Net\n\ndist.barrier()\n",
    })  # fmt: skip
    assert may_show_ranks(project, "nets/small.py") and shows_ranks(project, "nets/small.py")


def test_an_import_in_a_form_that_is_not_read_counts() -> None:
    project = Project.of({"a.py": b"x = 1\n", "b.py": b"import rank_of; import a\n"})
    assert users_of(project, "a.py") == ("b.py",)


SHOWN = [
    *sorted(n for n in SHOWN_NUMBERS if "." not in n),
    "logger_info", "my_log", "Log_it", "LOGS", "train_stats", "summary", "Print2", "append_loss", "plot_all", "tb_history",
]  # fmt: skip
NOT_SHOWN = ["logits", "catalog", "warning_once", "prints_", "recorder", "epoch"]


@pytest.mark.parametrize("name", [*SHOWN, *NOT_SHOWN])
def test_the_gate_knows_the_calls_that_show_numbers(name: str) -> None:
    call = ast.parse(f"board.{name}(loss)").body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert says_shown(call.value) == (name in SHOWN)
    assert SHOWS_NUMBERS.search(f"board.{name} (loss)\n".encode()) == (name in SHOWN)


def test_a_logarithm_shows_nothing() -> None:
    assert not SHOWS_NUMBERS.search(b"x = math.log(y)\n")
    assert not opens("DDP106", b"import math\nloss = math.log(y)\nlogits = loss.mean()\n")


TESTS = (
    "if loss < best:\n    best = loss", "if acc > self.Highest_acc:\n    save(net)", "if loss < min(losses):\n    save(net)",
    "if max(\n    scores\n) < score:\n    save(net)", "is_best = loss < prev_val_loss\nif is_best:\n    save(net)",
    'if acc > record["best"]:\n    save(net)',
)  # fmt: skip


@pytest.mark.parametrize("text", TESTS)
def test_the_gate_knows_the_tests_for_the_best(text: str) -> None:
    module = SourceModule("a.py", f"def f():\n    {text.replace(chr(10), chr(10) + '    ')}\n".encode())
    assert any(decides(module, node) for node in module.nodes(ast.Compare)) or "max(" in text or "min(" in text
    assert any(site.search(module.data) for site in TESTS_BEST)


def test_elements_that_are_picked_of_a_tensor_are_no_gather() -> None:
    picked = b"y = torch.gather(x, 1, i)\nz = x.gather(-1, i)\nw = x.gather(dim=1, index=i)\nmask = torch.where(y > 0)\n"
    assert not opens("DDP114", picked)
    assert opens("DDP114", picked + b"dist.all_gather(parts, y)\n")
    assert opens("DDP114", picked + b"accelerator.gather(y)\n")
    assert opens("DDP114", picked + b"y = reduce_it(y)\n")


def test_a_split_of_a_text_is_no_split_of_data() -> None:
    assert not opens("DDP403", b"a, b = text.split(':')\n")
    assert opens("DDP403", b"a, b = random_split(data, [8, 2])\n") and opens("DDP403", b"x = rows.train_test_split(0.1)\n")


def test_a_file_whose_step_a_trainer_calls_may_be_run_by_several() -> None:
    step = b"from base import Task\n\n\nclass Model(Task):\n    def training_step(self, batch, index):\n        return batch\n"
    own = b"class Model:\n    def step(self, batch):\n        return batch\n"
    project = Project.of({"tasks/model.py": step, "tasks/other.py": own, "tests/test_model.py": step})
    assert may_show_ranks(project, "tasks/model.py")
    assert not may_show_ranks(project, "tasks/other.py")
