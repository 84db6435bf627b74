"""Modes in which a program refuses to start several processes: what stands under them is of one."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.excluded_modes import is_in_mode_of_one
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.store.project import Project

MAIN = """\
    import argparse
    import torch.distributed as dist
    from draw import figures

    def check(args):
        {check}

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--distributed", action="store_true")
        parser.add_argument("--plot", action="store_true")
        parser.add_argument("--video", action="store_true")
        parser.add_argument("--mode", default="train")
        parser.add_argument("--out", default="figures")
        args = parser.parse_args()
        {call}
        if args.distributed:
            dist.init_process_group("nccl")
        {test}
            figures(args)

    if __name__ == "__main__":
        main()
    """
DRAW = "import os\n\ndef figures(args):\n    os.makedirs(args.out)\n"
CALL = "check(args)"
PLOT = "if args.plot:"


def read(check: str, call: str = CALL, test: str = PLOT, more: dict[str, str] | None = None) -> Project:
    text = textwrap.dedent(MAIN).format(check=check.replace("\n", "\n    "), call=call, test=test)
    files = {"main.py": text, "draw.py": DRAW, **(more or {})}
    return Project.of({path: text.encode() for path, text in files.items()})


def of_one(project: Project) -> bool:
    module, draw = project.module("main.py"), project.module("draw.py")
    assert module is not None and draw is not None
    (call,) = module.calls_named("figures")
    (makes,) = draw.calls_named("makedirs")
    found = is_in_mode_of_one(project, module, call)
    assert is_run_by_nobody(project, draw, makes) is found
    return found


@pytest.mark.parametrize(
    ("check", "test"),
    [
        ("if args.distributed:\n    assert not args.plot", PLOT),
        ("if args.distributed:\n    assert args.plot + args.video == 0, 'no DDP'", PLOT),
        ("if args.plot:\n    assert not args.distributed", "if args.plot and args.out:"),
        ("assert not (args.plot and args.distributed)", PLOT),
        ("if args.distributed and (args.plot or args.video):\n    raise SystemExit('no DDP')", PLOT),
        ("if args.plot:\n    if args.distributed:\n        exit(1)", PLOT),
        ("if args.world_size > 1 and args.plot:\n    parser.error('one process only')", PLOT),
        ("if args.mode == 'plot' and args.distributed:\n    raise ValueError", "if args.mode == 'plot':"),
        ("if args.distributed:\n    assert args.mode != 'plot'", "if args.mode == 'plot' and args.out:"),
    ],
)
def test_modes_that_a_check_excludes(check: str, test: str) -> None:
    assert of_one(read(check, test=test))


@pytest.mark.parametrize(
    ("check", "call", "test"),
    [
        ("pass", CALL, PLOT),
        ("if args.distributed:\n    assert not args.plot", "pass", PLOT),  # nobody makes the check
        ("if args.distributed:\n    assert not args.plot", "if args.video:\n        check(args)", PLOT),
        ("if args.distributed and args.video:\n    assert not args.plot", CALL, PLOT),  # in some modes only
        ("if args.distributed:\n    print('plots on rank 0', args.plot)", CALL, PLOT),
        ("if args.distributed:\n    assert not args.plot", CALL, "if not args.plot:"),
        ("if args.distributed:\n    assert not args.plot", CALL, "if args.plot or args.video:"),
        ("if args.distributed:\n    assert args.plot", CALL, PLOT),  # it is the other way round
        ("if not args.distributed:\n    assert not args.plot", CALL, PLOT),
        ("if dist.is_initialized():\n    assert not args.plot", CALL, PLOT),
        ("assert args.mode != 'plot' or not args.distributed", CALL, "if args.mode == 'draw':"),
        ("vars(args)['plot'] = True\nif args.distributed:\n    assert not args.plot", CALL, PLOT),
        ("args.plot = bool(args.out)\nif args.distributed:\n    assert not args.plot", CALL, PLOT),
    ],
)
def test_modes_that_stay(check: str, call: str, test: str) -> None:
    assert not of_one(read(check, call, test))


def test_another_program_that_has_the_option_and_makes_no_check() -> None:
    other = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--plot')\nargs = parser.parse_args()\n"
    project = read("if args.distributed:\n    assert not args.plot", more={"other.py": other})
    module = project.module("main.py")
    assert module is not None
    (call,) = module.calls_named("figures")
    assert not is_in_mode_of_one(project, module, call)


def test_another_program_that_has_the_setting_from_a_file() -> None:
    other = "from settings import cfg\n\nif __name__ == '__main__':\n    if cfg.plot:\n        figures(cfg)\n"
    for beside in (other, other.replace("__main__", "other")):
        project = read("if args.distributed:\n    assert not args.plot", more={"other.py": beside})
        module = project.module("main.py")
        assert module is not None
        (call,) = module.calls_named("figures")
        assert is_in_mode_of_one(project, module, call) is (beside != other)


def test_a_check_in_a_method_of_the_settings() -> None:
    settings = "class Settings:\n    def check(self):\n        if self.run.ddp:\n            assert not self.run.plot\n"
    project = read("pass", "cfg = Settings()\n    cfg.check()", "if cfg.run.plot:", more={"settings.py": settings})
    assert of_one(project)
