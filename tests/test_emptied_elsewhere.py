"""What the other ranks set to None or False is a test of the rank, where it is asked for behind that."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule
from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

HEAD = "import torch.distributed as dist\n\n\n"


def coming(source: str, **others: str) -> Ranks:
    files = {"main.py": source, **{f"{name}.py": text for name, text in others.items()}}
    data = {path: text.encode() for path, text in files.items()}
    project = Project(data, data.__getitem__)
    module = project.module("main.py")
    assert isinstance(module, SourceModule)
    here = next(c for c in module.nodes(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == "here")
    return ranks_at(module, here, project=project)


def script(*lines: str) -> str:
    return f"{HEAD}def main(args, cfg, rank):\n" + "".join(f"    {line}\n" for line in lines)


def task(*lines: str, step: str = "if self.track:", base: str = "") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    head = f"{HEAD}class Task{base}:\n    def __init__(self, cfg):\n{body}"
    return f"{head}\n    def step(self):\n        {step}\n            here()\n"


TAKEN = ("if dist.get_rank() != 0:", "    self.track = False")


@pytest.mark.parametrize(
    "lines",
    [
        ("track = args.track", "if rank != 0:", "    track = False", "if track:", "    here()"),
        ("track = args.track", "if rank != 0:", "    track = None", "if track is not None:", "    here()"),
        ("if rank != 0:", "    args.folder = None", "if args.folder is not None:", "    here()"),
        ("if rank != 0:", "    args.folder = ''", "if args.folder and args.keep:", "    here()"),
        ("if rank == 0:", "    pass", "else:", "    args.folder = None", "if args.folder:", "    here()"),
        ("if args.distributed:", "    if rank > 0:", "        cfg.folder = None", "if cfg.folder is not None:", "    here()"),
        ("if rank != 0:", "    args.folder = None", "if args.folder is not None:", "    args.folder = join(args.folder)",
         "if args.folder is not None:", "    here()"),
        ("if rank != 0:", "    args.folder = None", "if rank == 0:", "    args.folder = 'a'", "if args.folder:", "    here()"),
    ],
)  # fmt: skip
def test_rank_zero_alone_keeps_it(lines: tuple[str, ...]) -> None:
    assert coming(script(*lines)) is Ranks.ZERO


@pytest.mark.parametrize(
    "lines",
    [
        ("self.track = cfg.track", *TAKEN),
        ("self.track = cfg.track", "self.cfg = cfg", "if cfg.use_ddp:", *(f"    {line}" for line in TAKEN)),
    ],
)
def test_a_field(lines: tuple[str, ...]) -> None:
    assert coming(task(*lines)) is Ranks.ZERO


def test_the_rank_that_a_helper_hands_out_in_a_dict() -> None:
    helper = "def info():\n    rank = dist.get_rank()\n    return {'rank': rank, 'size': dist.get_world_size()}\n\n\n"
    lines = ("self.track = cfg.track", "self.where = info()", "if self.where['rank'] not in [0, -1]:", "    self.track = False")
    source = task(*lines).replace("class Task", f"{helper}class Task")
    assert coming(source) is Ranks.ZERO
    assert coming(source.replace("{'rank': rank", "{'rank': 7")) is Ranks.ALL


def test_a_setting_below_a_field() -> None:
    lines = ("self.cfg = cfg.run", "if dist.get_rank() != 0:", "    self.cfg.folder = None")
    source = task(*lines, step="if self.cfg.folder is not None:")
    assert coming(source) is Ranks.ZERO
    assert coming(source, other="def set_up(cfg):\n    cfg.run.folder = None\n") is Ranks.ZERO
    assert coming(source, other="def set_up(cfg):\n    cfg.run.folder = 'a'\n") is Ranks.ALL, "others may fill it again"


@pytest.mark.parametrize(
    "lines",
    [
        ("track = args.track", "if track:", "    here()", "if rank != 0:", "    track = False"),
        ("if rank != 0:", "    track = False", "track = args.track", "if track:", "    here()"),
        ("track = args.track", "if rank != 0 and args.quiet:", "    track = False", "if track:", "    here()"),
        ("track = args.track", "if args.quiet:", "    if rank != 0:", "        track = False", "if track:", "    here()"),
        ("track = args.track", "if not args.ddp:", "    if rank != 0:", "        track = False", "if track:", "    here()"),
        ("track = args.track", "if rank == 1:", "    track = False", "if track:", "    here()"),
        ("track = args.track", "if rank != 0:", "    track = False", "if track is not None:", "    here()"),
        ("track = args.track", "if rank != 0:", "    track = True", "if track:", "    here()"),
        ("track = args.track", "for _ in args.rows:", "    if rank != 0:", "        track = False", "if track:", "    here()"),
        ("track = args.track", "if rank != 0:", "    track = False", "track |= args.force", "if track:", "    here()"),
        ("if rank != 0:", "    args.folder = None", "setattr(args, 'folder', 'a')", "if args.folder:", "    here()"),
    ],
)
def test_the_others_may_have_it_too(lines: tuple[str, ...]) -> None:
    assert coming(script(*lines)) is Ranks.ALL


@pytest.mark.parametrize(
    "source",
    [
        task("self.track = cfg.track", *TAKEN) + "\n    def again(self):\n        self.track = True\n",
        task("self.track = cfg.track", *TAKEN, base="(Base)"),
        task("self.track = cfg.track", "self.step()", *TAKEN),
        task("self.track = cfg.track") + "\n    def quiet(self, rank):\n        if rank != 0:\n            self.track = False\n",
    ],
)
def test_fields_that_the_others_may_have_too(source: str) -> None:
    assert coming(source) is Ranks.ALL


def test_one_run_where_the_others_track_nothing() -> None:
    lines = ("self.track = cfg.track", *TAKEN)
    source = task(*lines).replace("        here()", "        self.begin()").replace("import torch", "import wandb\nimport torch")
    source += "\n    def begin(self):\n        wandb.init(project='a')\n"
    check_nothing(TrackerOnEveryRank, source)
    assert findings_of(TrackerOnEveryRank, source.replace("self.track = False", "self.track = cfg.again"))
