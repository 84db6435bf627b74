"""The flag's spellings: where it is written, what it comes to, which edit turns it round."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.model.flag_edits import switched
from codemods.analysis.model.flag_setting import Framework, Setting, State
from codemods.analysis.model.loose_flags import loose_settings
from codemods.analysis.model.unused_flag import wrappers
from codemods.api.findings import ReplaceExpression, SetKeyword
from codemods.files.source import SourceModule
from codemods.store.project import Project

HEAD = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
import pytorch_lightning as pl
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.plugins import DDPPlugin
from accelerate import DistributedDataParallelKwargs
from transformers import Seq2SeqTrainingArguments, TrainingArguments
from trl import SFTConfig
"""


def load(source: str, files: dict[str, str] | None = None) -> tuple[Project, SourceModule]:
    texts = {"m.py": HEAD + textwrap.dedent(source), **(files or {})}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("m.py")
    assert module is not None
    return project, module


def settings(source: str, files: dict[str, str] | None = None) -> list[tuple[Framework, Setting]]:
    return [(w.framework, s) for w in wrappers(*load(source, files)) for s in w.settings]


@pytest.mark.parametrize(
    ("source", "framework", "state"),
    [
        ("DDP(m, find_unused_parameters=True)", Framework.TORCH, State.ON),
        ("nn.parallel.DistributedDataParallel(m, find_unused_parameters=False)", Framework.TORCH, State.OFF),
        ("torch.nn.parallel.DistributedDataParallel(m)", Framework.TORCH, State.DEFAULT),
        ("DDP(m, None, None, 0, True, True, None, 25, True)", Framework.TORCH, State.UNKNOWN),
        ("DDP(m, find_unused_parameters=args.search)", Framework.TORCH, State.UNKNOWN),
        ("DDP(m, **options)", Framework.TORCH, State.UNKNOWN),
        ("DDP(m, **dict(find_unused_parameters=True))", Framework.TORCH, State.ON),
        ("DDP(m, **{**base, 'find_unused_parameters': True})", Framework.TORCH, State.ON),
        ("search = True\nDDP(m, find_unused_parameters=search)", Framework.TORCH, State.ON),
        ("kw = {}\nkw['find_unused_parameters'] = True\nDDP(m, **kw)", Framework.TORCH, State.ON),
        ("DistributedDataParallelKwargs(find_unused_parameters=True)", Framework.ACCELERATE, State.ON),
        ("TrainingArguments('o', ddp_find_unused_parameters=True)", Framework.HF, State.ON),
        ("TrainingArguments('o')", Framework.HF, State.DEFAULT),
        ("TrainingArguments('o', ddp_find_unused_parameters=None)", Framework.HF, State.DEFAULT),
        ("Seq2SeqTrainingArguments('o', ddp_find_unused_parameters=False)", Framework.HF, State.OFF),
        ("SFTConfig(ddp_find_unused_parameters=True)", Framework.HF, State.ON),
        ("pl.Trainer(strategy='ddp')", Framework.LIGHTNING, State.DEFAULT),
        ("pl.Trainer(strategy='ddp_find_unused_parameters_true')", Framework.LIGHTNING, State.ON),
        ("pl.Trainer(strategy='ddp_find_unused_parameters_false')", Framework.LIGHTNING, State.OFF),
        ("pl.Trainer(strategy=DDPStrategy(find_unused_parameters=True))", Framework.LIGHTNING, State.ON),
        ("pl.Trainer(plugins=[DDPPlugin(find_unused_parameters=False)])", Framework.LIGHTNING, State.OFF),
        ("s = DDPStrategy()\npl.Trainer(strategy=s)", Framework.LIGHTNING, State.DEFAULT),
    ],
)
def test_one_setting(source: str, framework: Framework, state: State) -> None:
    found = settings(source)
    assert [(f, s.state) for f, s in found] == [(framework, state)]


@pytest.mark.parametrize(
    ("pin", "arguments", "state"),
    [
        ("torch==2.13.0", "m, None, None, 0, True, True, None, 25, True", State.ON),
        ("torch==2.13.0", "m, None, None, 0, True, True, None, True", State.DEFAULT),
        ("torch==1.13.1", "m, None, None, 0, True, None, 25, True", State.ON),
        ("torch==2.3.0", "m, None, None, 0, True, None, 25, False, True", State.OFF),
        ("torch==2.8.0", "m, None, None, 0, True, None, 25, True", State.UNKNOWN),
        ("torch>=2.0", "m, None, None, 0, True, None, 25, True", State.UNKNOWN),
        ("torch==2.13.0", "m, *rest, None, 0, True, True, None, 25, True", State.UNKNOWN),
    ],
)
def test_the_place_of_an_unnamed_flag_is_that_of_the_pinned_torch(pin: str, arguments: str, state: State) -> None:
    ((_, found),) = settings(f"DDP({arguments})", {"requirements.txt": f"{pin}\n"})
    assert found.state is state


HELPER = """\
def wrap(model, search{default}):
    return DDP(model, find_unused_parameters=search)
"""


@pytest.mark.parametrize(
    ("default", "calls", "expected"),
    [
        ("", "wrap(a, True)\nwrap(b, search=True)\n", [(State.ON, 13), (State.ON, 14)]),
        ("=False", "wrap(a)\nwrap(b)\n", [(State.OFF, 10)]),
        ("=True", "wrap(a)\nwrap(b, search=True)\n", [(State.ON, 10), (State.ON, 14)]),
        ("=True", "wrap(a)\nwrap(b, search=False)\n", [(State.UNKNOWN, 11)]),
        ("", "wrap(a, args.search)\n", [(State.UNKNOWN, 11)]),
        ("=True", "wrap(a, **options)\n", [(State.UNKNOWN, 11)]),
    ],
)
def test_the_flag_of_a_helper_is_what_its_callers_agree_on(
    default: str, calls: str, expected: list[tuple[State, int]]
) -> None:
    found = settings(HELPER.format(default=default) + "\n" + calls)
    assert [(s.state, s.node.lineno) for _, s in found] == expected


OPTIONS = """\
parser.add_argument("--search-unused", action="store_true", default=False)
args = parser.parse_args()
DDP(m, find_unused_parameters=args.search_unused)
"""


@pytest.mark.parametrize(
    ("job", "state", "text"),
    [
        ("torchrun train.py --lr 0.1\n", State.OFF, "the default of --search-unused (False)"),
        ("torchrun train.py --search-unused \\\n  --lr 0.1\n", State.UNKNOWN, "jobs/train.sh:1 gives True"),
        ("# torchrun train.py --search-unused\n", State.OFF, "the default of --search-unused (False)"),
    ],
)
def test_a_job_file_that_gives_the_option_is_read(job: str, state: State, text: str) -> None:
    ((_, found),) = settings(OPTIONS, {"jobs/train.sh": job})
    assert found.state is state
    assert text in found.text


def test_a_dict_returned_by_a_method_and_by_a_function_of_another_file() -> None:
    source = """\
    class Task:
        def options(self):
            return {"find_unused_parameters": True}

        def wrap(self, m):
            return DDP(m, **self.options())
    """
    assert [s.state for _, s in settings(source)] == [State.ON]
    files = {"helpers.py": "def options():\n    return dict(find_unused_parameters=True)\n"}
    found = settings("from helpers import options\nDDP(m, **options())", files)
    assert [(s.state, s.module.path) for _, s in found] == [(State.ON, "helpers.py")]


def test_every_arm_of_a_conditional_strategy() -> None:
    found = settings("s = 'ddp' if n > 1 else 'auto'\npl.Trainer(strategy=s)")
    assert [(s.state, s.conditional, s.text) for _, s in found] == [(State.DEFAULT, True, "'ddp'")]
    both = settings("if a:\n    s = 'ddp'\nelse:\n    s = DDPStrategy(find_unused_parameters=True)\npl.Trainer(strategy=s)")
    assert [s.state for _, s in both] == [State.DEFAULT, State.ON]


def test_no_strategy_of_ddp_is_no_setting() -> None:
    for strategy in ("'auto'", "None", "'deepspeed'", "make()"):
        assert settings(f"pl.Trainer(strategy={strategy})") == []


def test_a_name_that_is_a_parameter_or_read_twice_is_unknown() -> None:
    assert [s.state for _, s in settings("def f(m, search=True):\n    DDP(m, find_unused_parameters=search)")] == [State.UNKNOWN]
    twice = "search = True\nDDP(m, find_unused_parameters=search)\nprint(search)"
    assert [s.state for _, s in settings(twice)] == [State.UNKNOWN]


def test_static_graph_is_read_beside_it() -> None:
    found = wrappers(*load("DDP(m, static_graph=True)\nDDP(m)\nDDP(m, static_graph=flag)"))
    assert [w.static_graph for w in found] == [True, False, None]


def test_a_class_of_another_name_is_no_wrapper() -> None:
    assert settings("class DDP2: pass\nDDP2(m, find_unused=True)") == []
    assert settings("from mine import DistributedDataParallel as D\nD(m)") == []


def test_edits() -> None:
    def edit(source: str, to: str) -> object:
        return switched(settings(source)[0][1], to)

    keyword = edit("DDP(m, find_unused_parameters=True)", "False")
    assert isinstance(keyword, SetKeyword)
    assert (keyword.name, keyword.value) == ("find_unused_parameters", "False")
    assert isinstance(edit("DDP(m)", "True"), SetKeyword)
    name = edit('pl.Trainer(strategy="ddp")', "ddp_spawn")
    assert isinstance(name, ReplaceExpression)
    assert name.code == '"ddp_spawn"'
    assert isinstance(edit("kw = dict(find_unused_parameters=True)\nDDP(m, **kw)", "False"), ReplaceExpression)
    assert edit("DDP(m, **options)", "False") is None


def test_what_nothing_in_the_file_takes() -> None:
    source = """\
    config = dict(ddp_find_unused_parameters=True, other=1)
    trainer = {"strategy": "ddp_find_unused_parameters_true"}
    kwargs = {"find_unused_parameters": True}
    strategy = "ddp_find_unused_parameters_true"
    if name == "ddp_find_unused_parameters_true":
        print("ddp_find_unused_parameters_true")
    """
    found = list(loose_settings(*load(source)))
    assert sorted(s.node.lineno for s in found) == [10, 11, 12, 13]
    assert all(s.state is State.ON for s in found)
