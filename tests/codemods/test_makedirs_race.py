from __future__ import annotations

import ast
import re

import pytest

from codemods.analysis.ranks.rank_tests import split_of
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.api.findings import Applicability
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.files.source import SourceModule
from codemods.ranks.makedirs_race import MakedirsRace
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of, project_of

HOOK = """\
    import os
    import lightning.pytorch as pl

    class Recorder(pl.Callback):
        def on_train_start(self, trainer, pl_module):
"""
SCRIPT = """\
    import os
    import shutil
    from pathlib import Path
    import torch.distributed as dist

"""


def hook(*lines: str) -> str:
    return HOOK + "".join(f"            {line}\n" for line in lines)


def script(*lines: str) -> str:
    return SCRIPT + "    def main(args):\n        dist.init_process_group()\n" + "".join(f"        {line}\n" for line in lines)


_ASKED = re.compile(r"if not os\.path\.(?:exists|isdir)\((.+)\):\s+os\.makedirs\(\1\)")


def loading(*lines: str) -> str:
    return script(*lines).replace("import shutil", "import torch")


def at_once(source: str) -> str:
    """The source with `exist_ok` in the place of the test for the folder."""
    return _ASKED.sub(r"os.makedirs(\1, exist_ok=True)", source)


def test_example_of_the_page() -> None:
    sections = MakedirsRace.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(MakedirsRace, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("os.makedirs(args.out)", "os.makedirs(args.out, exist_ok=True)"),
        ("os.makedirs(args.out, 0o755)", "os.makedirs(args.out, 0o755, exist_ok=True)"),
        ("os.makedirs(name=args.out)", "os.makedirs(name=args.out, exist_ok=True)"),
        ("Path(args.out).mkdir()", "Path(args.out).mkdir(exist_ok=True)"),
        ("Path(args.out, 'logs').mkdir(parents=True)", "Path(args.out, 'logs').mkdir(parents=True, exist_ok=True)"),
        ("Path.mkdir(Path(args.out), parents=True)", "Path.mkdir(Path(args.out), parents=True, exist_ok=True)"),
        ("args.out.mkdir(parents=True)", "args.out.mkdir(parents=True, exist_ok=True)"),
        ("(Path.home() / 'runs').parent.mkdir()", "(Path.home() / 'runs').parent.mkdir(exist_ok=True)"),
    ],
)
def test_every_spelling(before: str, after: str) -> None:
    check_transformed(MakedirsRace, script(before), script(after))


def test_a_path_by_its_assignment_and_by_its_annotation() -> None:
    source = """\
        from pathlib import Path
        import torch.distributed as dist

        def save(folder: Path, root):
            rank = dist.get_rank()
            logs = folder / "logs"
            logs.mkdir()
            folder.mkdir()
            root.mkdir()
        """
    wanted = source.replace("logs.mkdir()", "logs.mkdir(exist_ok=True)")
    wanted = wanted.replace("folder.mkdir()", "folder.mkdir(exist_ok=True)")
    check_transformed(MakedirsRace, source, wanted)


def test_a_path_held_by_the_object() -> None:
    source = """\
        from pathlib import Path
        import pytorch_lightning as pl

        class Saver(pl.Callback):
          def __init__(self, out):
            self.out = Path(out)

          def on_fit_start(self, trainer, pl_module):
            self.out.mkdir()
        """
    check_transformed(MakedirsRace, source, source.replace("mkdir()", "mkdir(exist_ok=True)"))


def test_tabs_and_a_test_that_does_not_help() -> None:
    head = "import os\nimport torch.distributed as dist\n"
    source = f"{head}def main(d):\n\tdist.barrier()\n\tif not os.path.isdir(d):\n\t\tos.makedirs(d)\n"
    check_transformed(MakedirsRace, source, at_once(source))


def test_aliases_and_a_call_over_several_lines() -> None:
    source = """\
        from os import makedirs as make
        import accelerate
        from accelerate import Accelerator
        import os as system

        def main(args):
            accelerator = Accelerator()
            make(args.a)
            system.makedirs(
                system.path.join(args.out, "a"),  # for the figures
                0o755,  # readable
            )
        """
    wanted = source.replace("0o755,  # readable", "0o755,  # readable\n                exist_ok=True,")
    wanted = wanted.replace("make(args.a)", "make(args.a, exist_ok=True)")
    check_transformed(MakedirsRace, source, wanted)


@pytest.mark.parametrize(
    "lines",
    [
        ("if not args.out.exists():", "    args.out.mkdir(parents=True)"),
        ("if not Path(args.out).is_dir():", "    # made once", "    Path(args.out).mkdir()  # by all"),
        ("if not os.path.isdir(args.out):", "    os.makedirs(args.out)"),
    ],
)
def test_a_test_that_exist_ok_makes_needless_goes(lines: tuple[str, ...]) -> None:
    kept = [line.removeprefix("    ") for line in lines[1:]]
    kept[-1] = re.sub(r"\)(?=$|  #)", ", exist_ok=True)", kept[-1]).replace("(, ", "(")
    check_transformed(MakedirsRace, script(*lines), script(*kept))


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (("if not os.path.exists(args.out):",), ("    args.fresh = True",)),  # more hangs on it
        (("if not os.path.exists(args.out):",), ("else:", "    args.note()")),
        (("if args.save and not os.path.exists(args.out):",), ()),
        (("if not os.path.isfile(args.out):",), ()),
        (("if not os.path.exists(args.other):",), ()),
        (("if args.first:", "    args.note()", "elif not os.path.exists(args.out):"), ()),
    ],
)
def test_a_test_on_which_more_hangs_stays(above: tuple[str, ...], below: tuple[str, ...]) -> None:
    before, after = (script(*above, f"    os.makedirs(args.out{more})", *below) for more in ("", ", exist_ok=True"))
    check_transformed(MakedirsRace, before, after)


def test_nested_calls_and_neighbours_are_all_fixed() -> None:
    before = script(
        "for name in ('a', 'b'):",
        "    if not os.path.exists(args.out):",
        "        os.makedirs(args.out)",
        "    os.makedirs(os.path.join(args.out, name))",
    )
    after = at_once(before).replace("os.path.join(args.out, name))", "os.path.join(args.out, name), exist_ok=True)")
    check_transformed(MakedirsRace, before, after)


def test_module_level_of_a_script() -> None:
    made = "if not os.path.exists('runs'): os.makedirs('runs')\n"
    source = f"import os\nimport lightning as L\n{made}L.Fabric(devices=2).launch()\n"
    check_transformed(MakedirsRace, source, at_once(source))


def test_a_helper_whose_file_knows_no_ranks() -> None:
    helper = """\
        import os

        def ensure(path):
            if not os.path.exists(path):
                os.makedirs(path)
        """
    head = "import torch.distributed as dist\nfrom pkg.files import ensure\n\n"
    train = f"{head}def main():\n    dist.barrier()\n    ensure('runs')\n"
    check_transformed(MakedirsRace, helper, at_once(helper), files={"train.py": train}, path="pkg/files.py")


def test_a_helper_that_is_handed_its_rank_or_that_nobody_asks_for() -> None:
    train = {"train.py": "import torch.distributed as dist\nfrom files import ensure\n\nensure('a', dist.get_rank())\n"}
    guarded = "import os\n\ndef ensure(path, rank=0):\n    if rank == 0:\n        os.makedirs(path)\n"
    check_nothing(MakedirsRace, guarded, files=train, path="files.py")
    unused = "import os\n\ndef ensure(path, n):\n    pass\n\n# convert()\ndef convert(p):\n    os.makedirs(p)\n"
    check_nothing(MakedirsRace, unused, files=train, path="files.py")


def test_a_helper_without_a_test_is_unsafe() -> None:
    helper = "import os\n\ndef ensure(path):\n    os.makedirs(path)\n"
    train = "import torch.distributed as dist\nfrom files import ensure\n\ndist.init_process_group()\nensure('runs')\n"
    wanted = helper.replace("makedirs(path)", "makedirs(path, exist_ok=True)")
    check_transformed(MakedirsRace, helper, wanted, files={"train.py": train}, path="files.py", unsafe=True)


def test_mkdir_becomes_makedirs_only_on_request() -> None:
    before, after = script("os.mkdir(args.out)"), script("os.makedirs(args.out, exist_ok=True)")
    found = check_transformed(MakedirsRace, before, after, unsafe=True)
    assert "parents" in found[0].reason


def test_a_bare_mkdir_is_told() -> None:
    source = "from os import mkdir\nimport torch.distributed as dist\n\ndist.init_process_group()\nmkdir('runs')\n"
    check_told(MakedirsRace, source, reason="no exist_ok")


@pytest.mark.parametrize(
    "line",
    [
        "os.makedirs(args.out, exist_ok=True)",
        "os.makedirs(args.out, exist_ok=False)",
        "os.makedirs(args.out, 0o755, False)",
        "os.makedirs(args.out, **options)",
        "os.makedirs(*arguments)",
        "Path(args.out).mkdir(0o777, True, True)",
        "store.mkdir('runs')",
        "fs.makedirs('s3://runs')",
    ],
)
def test_a_decision_or_another_object_is_left_alone(line: str) -> None:
    check_nothing(MakedirsRace, script(line))


@pytest.mark.parametrize("test", ["not os.path.isdir(args.out)", "not os.path.exists(args.out)"])
def test_a_default_that_is_written_out_under_the_test_decides_nothing(test: str) -> None:
    before = script(f"if {test}:", "    os.makedirs(args.out, exist_ok=False)")
    check_transformed(MakedirsRace, before, script("os.makedirs(args.out, exist_ok=True)"))


@pytest.mark.parametrize(
    ("test", "call"),
    [
        ("not os.path.isdir(args.root)", "os.makedirs(args.out, exist_ok=False)"),  # the test is for another folder
        ("not os.path.isdir(args.out)", "os.makedirs(args.out, exist_ok=args.again)"),
        ("rank == 0 and not os.path.isdir(args.out)", "os.makedirs(args.out, exist_ok=False)"),
    ],
)
def test_another_exist_ok_is_a_decision(test: str, call: str) -> None:
    check_nothing(MakedirsRace, script(f"if {test}:", f"    {call}"))


@pytest.mark.parametrize("caught", ["FileExistsError", "OSError", "(OSError, ValueError)", "Exception"])
def test_a_handled_error_is_left_alone(caught: str) -> None:
    check_nothing(MakedirsRace, script("try:", "    os.makedirs(args.out)", f"except {caught}:", "    pass"))


@pytest.mark.parametrize("answer", ["raise SystemExit('exists')", "args.out += '_1'", "return None"])
def test_an_error_that_leads_elsewhere_is_told(answer: str) -> None:
    lines = ("try:", "    os.makedirs(args.out)", "except FileExistsError:", f"    {answer}")
    check_told(MakedirsRace, script(*lines), reason="FileExistsError is caught")


def test_an_error_caught_by_the_caller_is_told() -> None:
    source = """\
        import os
        import torch.distributed as dist; WORLD = dist.group.WORLD

        def create(path):
            os.makedirs(path)

        def main():
            try:
                create("run")
            except FileExistsError:
                raise SystemExit("choose another name")
        """
    check_told(MakedirsRace, source, reason="FileExistsError is caught")


@pytest.mark.parametrize(
    "lines",
    [
        ("n = 0", "while os.path.exists(f'run{n}'):", "    n += 1", "os.makedirs(f'run{n}')"),
        ("for out in args.names:", "    if not os.path.exists(out):", "        os.makedirs(out)", "        break"),
        ("out = increment_path(args.out)", "os.makedirs(out)"),
    ],
)
def test_a_search_for_a_free_name_is_told(lines: tuple[str, ...]) -> None:
    check_told(MakedirsRace, script(*lines), reason="is searched for")


def test_waiting_for_a_file_is_no_search() -> None:
    before = script("while not os.path.exists('go'):", "    time.sleep(1)", "os.makedirs(args.out)")
    check_transformed(MakedirsRace, before, before.replace("(args.out)", "(args.out, exist_ok=True)"))


def test_a_folder_that_must_not_exist_is_told() -> None:
    lines = ("if os.path.exists(args.out):", "    raise ValueError('exists')", "os.makedirs(args.out)")
    check_told(MakedirsRace, script(*lines), reason="stops where the folder exists")
    otherwise = ("if not os.path.exists(args.out):", "    os.makedirs(args.out)", "else:", "    sys.exit(1)")
    check_told(MakedirsRace, script(*otherwise), reason="stops where the folder exists")


def test_a_folder_that_is_deleted_first_is_told() -> None:
    lines = ("if os.path.exists(args.out):", "    shutil.rmtree(args.out)", "os.makedirs(args.out)")
    check_told(MakedirsRace, script(*lines), reason="deleted here first")


@pytest.mark.parametrize(
    "lines",
    [
        ("if dist.get_rank() == 0:", "    os.makedirs(args.out)"),
        ("if args.rank != 0:", "    return", "os.makedirs(args.out)"),
        ("with accelerator.main_process_first():", "    os.makedirs(args.out)"),
        ("os.makedirs(f'{args.out}/rank{args.rank}')",),
        ("out = os.path.join(args.out, str(os.getpid()))", "os.makedirs(out)"),
        ("os.makedirs(tempfile.mkdtemp() + '/a')",),
    ],
)
def test_ranks_that_cannot_meet_are_left_alone(lines: tuple[str, ...]) -> None:
    check_nothing(MakedirsRace, script(*lines))


def test_a_decorated_function_and_a_guarded_caller_are_left_alone() -> None:
    source = """\
        import os
        import pytorch_lightning as pl
        from pytorch_lightning.utilities import rank_zero_only

        class Saver(pl.Callback):
            @rank_zero_only
            def on_train_start(self, trainer, pl_module):
                os.makedirs(self.a)
                self._deeper()

            def on_train_end(self, trainer, pl_module):
                if trainer.is_global_zero:
                    self._prepare()

            def _prepare(self):
                os.makedirs(self.b)

            def _deeper(self):
                os.makedirs(self.c)
        """
    check_nothing(MakedirsRace, source)


def test_a_helper_that_one_unguarded_hook_calls_is_fixed() -> None:
    source = """\
        import os
        import pytorch_lightning as pl

        class Saver(pl.Callback):
            def on_train_start(self, trainer, pl_module):
                self._prepare()

            def on_train_end(self, trainer, pl_module):
                if trainer.is_global_zero:
                    self._prepare()

            def _prepare(self):
                os.makedirs(self.b)
        """
    check_transformed(MakedirsRace, source, source.replace("(self.b)", "(self.b, exist_ok=True)"))


def test_prepare_data_is_left_alone() -> None:
    source = """\
        import os
        import pytorch_lightning as pl

        class Data(pl.LightningDataModule):
            def prepare_data(self):
                os.makedirs(self.root)
                self._download()

            def _download(self):
                os.makedirs(self.cache)
        """
    check_nothing(MakedirsRace, source)


def test_a_repository_without_ranks_and_its_tests_are_left_alone() -> None:
    check_nothing(MakedirsRace, "import os\nimport torch\n\ndef main(args):\n    os.makedirs(args.out)\n")
    check_nothing(MakedirsRace, script("os.makedirs(args.out)"), path="tests/test_train.py")
    one = "import os\n\ndef ranking(path):\n    os.makedirs(path)\n"
    check_nothing(MakedirsRace, one, files={"train.py": "from module import ranking\n\nranking('a')\n"})


def test_hooks_of_a_base_class_in_another_file() -> None:
    base = "import lightning.pytorch as pl\n\nclass Base(pl.Callback):\n    pass\n"
    source = """\
        import os
        from base import Base

        class Saver(Base):
            def on_fit_end(self, trainer, pl_module):
                if not os.path.exists(self.out):
                    os.makedirs(self.out)
        """
    wanted = at_once(source)
    use = "from saver import Saver\nfrom lightning.pytorch import Trainer\n\nTrainer(callbacks=[Saver()])\n"
    check_transformed(MakedirsRace, source, wanted, files={"base.py": base, "train.py": use}, path="saver.py")


NAMED = """\
import os
import time
import torch.distributed as dist


def describe(args):
    stamp = time.strftime("%Y%m%d_%H%M%S")
    return {"stamp": stamp, "task": args.task, "name": f"{stamp}_{args.task}"}


def stamp_of(args):
    if args.name:
        return f"{args.name}_{time.strftime('%H%M%S')}"
    return time.strftime("%H%M%S") + "_run"


def main(args):
    dist.init_process_group("nccl")
    LINES
"""


def named(*lines: str) -> str:
    return NAMED.replace("LINES", "\n    ".join((*lines, "os.makedirs(out, exist_ok=True)")))


@pytest.mark.parametrize(
    "lines",
    [
        ("info = describe(args)", "out = os.path.join(args.root, info['name'])"),
        ("info = describe(args)", "name = info['name']", "out = os.path.join(args.root, name)"),
        ("out = os.path.join(args.root, stamp_of(args))",),
        (
            "if args.resume:", "    out = args.resume", "else:", "    out = describe(args)['name']",
            "    os.makedirs(out, exist_ok=True)",
        ),
    ],
)
def test_a_folder_that_a_function_names_after_the_time(lines: tuple[str, ...]) -> None:
    check_told(MakedirsRace, named(*lines), reason="broadcast")


@pytest.mark.parametrize(
    "source",
    [
        named("info = describe(args)", "out = os.path.join(args.root, info['task'])"),  # another key
        named("info = describe(args)", "info = told(info)", "out = os.path.join(args.root, info['name'])"),
        named("out = stamp_of(args)").replace('return f"{args.name}', 'return args.name or f"{args.name}').replace(
            "    return time.strftime(\"%H%M%S\") + \"_run\"", "    return args.name"),  # not on every way
        named("out = stamp_of(args)").replace("    if args.name:", "    dist.broadcast_object_list(args.all)\n    if args.name:"),
    ],
)  # fmt: skip
def test_folders_that_a_function_does_not_name_after_the_time_or_not_always(source: str) -> None:
    check_nothing(MakedirsRace, source)


def test_two_in_one_hook_keep_their_comments() -> None:
    before = hook("os.makedirs(self.a)  # figures", "os.makedirs(self.b)", "print('ready')")
    after = before.replace("(self.a)", "(self.a, exist_ok=True)").replace("(self.b)", "(self.b, exist_ok=True)")
    check_transformed(MakedirsRace, before, after)


@pytest.mark.parametrize(
    "lines",
    [
        ("out = os.path.join('runs', datetime.now().strftime('%H%M'))", "os.makedirs(out, exist_ok=True)"),
        ("out = f'runs/{time.strftime(\"%H%M\")}'", "os.makedirs(out)"),
        ("os.makedirs(f'runs/{int(time.time())}', exist_ok=True)",),
        ("out = time.strftime('%Y-%m-%d') + time.strftime('_%H%M')", "os.makedirs(out, exist_ok=True)"),
        ("out = f'runs/{datetime.now()}'", "os.makedirs(out, exist_ok=True)"),
    ],
)
def test_a_folder_named_after_the_time_is_told(lines: tuple[str, ...]) -> None:
    check_told(MakedirsRace, script("import time", "from datetime import datetime", *lines), reason="broadcast")


def test_a_folder_named_after_the_time_in_a_branch_of_one_process() -> None:
    body = "    out = time.strftime('%H%M')\n    os.makedirs(out, exist_ok=True)\n"
    source = (
        "import os, sys, time\nimport torch.distributed as dist\n\n\ndef of_all(args):\n    dist.init_process_group()\n\n\n"
        f"def main(args):\n{body}\n\nif __name__ == '__main__':\n    args = sys.argv\n"
    )
    alone = source + "    if args.distributed:\n        of_all(args)\n    else:\n        main(args)\n"
    check_nothing(MakedirsRace, alone)
    check_told(MakedirsRace, source + "    of_all(args)\n    main(args)\n", reason="broadcast")


@pytest.mark.parametrize(
    "lines",
    [
        ("out = [time.strftime('%H%M')]", "dist.broadcast_object_list(out)", "os.makedirs(out[0], exist_ok=True)"),
        ("if dist.get_rank() == 0:", "    os.makedirs(time.strftime('%H%M'), exist_ok=True)"),
        ("out = f'{time.time()}-{rank}'", "os.makedirs(out, exist_ok=True)"),
        ("out = os.path.join('runs', time.strftime('%Y-%m-%d'))", "os.makedirs(out, exist_ok=True)"),
        ("out = datetime.now().strftime('%m%d')", "os.makedirs(out, exist_ok=True)"),
        ("out = time.strftime('%Y%m%d', time.localtime())", "os.makedirs(out, exist_ok=True)"),
        ("start = time.time()", "os.makedirs(args.out, exist_ok=True)"),
    ],
)
def test_folders_that_the_ranks_agree_on(lines: tuple[str, ...]) -> None:
    check_nothing(MakedirsRace, script("import time", "from datetime import datetime", *lines))


def test_a_folder_that_one_process_alone_makes() -> None:
    helper = "import os\nimport torch.distributed as dist\n\ndef folder(path):\n    if not os.path.exists(path):\n"
    helper += "        os.makedirs(path)\n\ndef get_rank():\n    return dist.get_rank()\n"
    train = "import torch.distributed as dist\nfrom module import folder, get_rank\n\nif __name__ == '__main__':\n"
    train += "    dist.init_process_group('nccl')\n    {}folder('logs')\n"
    prepare = "from module import folder\n\nif __name__ == '__main__':\n    folder('pairs')\n"
    guarded = train.format("if get_rank() == 0: ")
    check_nothing(MakedirsRace, helper, files={"train.py": guarded, "prepare.py": prepare})
    assert len(findings_of(MakedirsRace, helper, files={"train.py": train.format(""), "prepare.py": prepare})) == 1
    check_nothing(MakedirsRace, helper, files={"train.py": train.format("pass  # ")})


FIT = """\
    import os
    from lightning.pytorch import Trainer

    def main(model, out):
        if not os.path.exists(out):
            os.makedirs(out)
        Trainer(devices=4).predict(model)
"""


def test_a_folder_above_the_start_of_lightnings_processes() -> None:
    """Its launcher starts the others in `predict`: they find the folder."""
    check_nothing(MakedirsRace, FIT)
    wanted = at_once(FIT)
    check_transformed(MakedirsRace, FIT, wanted, files={"run.sh": "srun python main.py\n"})
    check_nothing(MakedirsRace, FIT, files={"run.sh": "python module.py\nsrun python other.py\n"})
    check_transformed(MakedirsRace, FIT, wanted, files={"run.sh": "python module.py\nsrun python module.py\n"})
    check_transformed(MakedirsRace, FIT, wanted, files={"run.sh": "python module.py\ntorchrun $SCRIPT --out x\n"})
    several = FIT.replace("devices=4", "devices=4, num_nodes=2")
    check_transformed(MakedirsRace, several, at_once(several))
    untested = FIT.replace("if not os.path.exists(out):", "if out:")
    check_transformed(MakedirsRace, untested, untested.replace("makedirs(out)", "makedirs(out, exist_ok=True)"))


def test_a_folder_that_the_starter_has_made() -> None:
    source = """\
        import os
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def settings(out_dir):
            os.makedirs(out_dir, exist_ok=True)
            return {"out_dir": out_dir}

        def logger(folder):
            if not os.path.exists(folder):
                os.makedirs(folder)

        def worker(rank, settings):
            dist.init_process_group("gloo", rank=rank, world_size=2)
            logger(settings["out_dir"])

        def main(args):
            mp.spawn(worker, nprocs=2, args=(settings(args.out),))
        """
    check_nothing(MakedirsRace, source)
    other = source.replace('logger(settings["out_dir"])', 'logger(settings["logs"])')
    check_transformed(MakedirsRace, other, at_once(other))


def test_a_folder_of_a_sample() -> None:
    check_nothing(MakedirsRace, """\
        import os
        import lightning.pytorch as pl

        class Net(pl.LightningModule):
            def test_step(self, batch, index):
                if not os.path.exists(batch["name"][0]):
                    os.makedirs(batch["name"][0])
        """)


def test_where_every_rank_goes_on_to_fetch() -> None:
    source = """\
        import os
        import urllib.request
        import torch.distributed as dist

        def fetch(out):
            dist.barrier()
            if not os.path.exists(out):
                os.makedirs(out)
            {}urllib.request.urlretrieve("https://example.org/a.bin", out + "/a.bin")
        """
    check_nothing(MakedirsRace, source.format(""))
    first = source.format("if dist.get_rank() == 0: ")
    check_transformed(MakedirsRace, first, at_once(first))


def test_no_way_of_every_rank() -> None:
    """The helper is called under a test of the main process, or by a function in which nothing shows several."""
    helper = "import os\n\ndef ensure(path):\n    if not os.path.exists(path):\n        os.makedirs(path)\n"
    shows = "import torch.distributed as dist\nfrom files import ensure\n\ndef show(out):\n    ensure(out)\n"
    check_nothing(MakedirsRace, helper, files={"show.py": shows}, path="files.py")


def saved(*lines: str, config: str = "automatic_checkpoint_naming=True", save: str = "accelerator.save_state()") -> str:
    head = "import datetime\nimport os\nfrom accelerate import Accelerator\nfrom accelerate.utils import ProjectConfiguration\n\n"
    made = f"project = ProjectConfiguration(project_dir=os.path.join(args.out, name), {config})"
    body = (*lines, made, "accelerator = Accelerator(project_config=project)", "for step in range(3):", f"    {save}")
    return f"{head}def main(args):\n" + "".join(f"    {line}\n" for line in body)


CLOCK = "name = datetime.datetime.now().strftime('%H.%M.%S')"


@pytest.mark.parametrize(
    "source",
    [
        saved(CLOCK),
        saved(CLOCK, "args.name = args.kind + '_' + name", "name = args.name"),
        saved("name = 'a'", CLOCK.replace("name", "stamp"), save="accelerator.save_state(os.path.join(args.out, stamp))"),
    ],
)
def test_states_of_one_run_in_folders_of_each_clock(source: str) -> None:
    check_told(MakedirsRace, source, reason="save their parts of one state into folders of their own")


@pytest.mark.parametrize(
    "source",
    [
        saved("name = args.name"),
        saved(CLOCK, config="total_limit=3"),  # such a state has a path of its own, or none
        saved(CLOCK, save="if accelerator.is_main_process:\n            accelerator.save_state()"),  # one part: one folder
        saved(CLOCK, save="accelerator.save_state('last')"),
        saved(CLOCK, "name = broadcast_object_list([name])[0]"),
        saved(CLOCK.replace("name =", "name = str(args.process_index) +")),
        saved(CLOCK, save="pass"),
    ],
)
def test_states_in_one_folder(source: str) -> None:
    check_nothing(MakedirsRace, source)


def test_a_method_whose_callers_are_not_seen() -> None:
    head = "import os\nimport time\nfrom accelerate import Accelerator\n\nclass Loop:\n    def save(self, out):\n"
    path = "os.path.join(out, str(int(time.time())))"
    check_nothing(MakedirsRace, f"{head}        where = {path}\n        self.accelerator.save_state(where)\n")


# Names that each rank works out from what is there

MADE = ("os.makedirs(out, exist_ok=True)",)


@pytest.mark.parametrize(
    "lines",
    [
        ("n = len(os.listdir(args.root))", "out = os.path.join(args.root, f'run{n}')"),
        ("out = f'{args.root}/run{len(list(Path(args.root).glob(\"run*\")))}'",),
        ("taken = [int(p.name[3:]) for p in Path(args.root).iterdir()]", "new = max(taken, default=0) + 1", "out = f'run{new}'"),
        ("runs = sorted(os.listdir(args.root))", "last = int(runs[-1])", "out = str(last + 1)"),
        ("n = 0", "while os.path.exists(f'run{n}'):", "    n += 1", "out = f'run{n}'"),
        ("for n in range(99):", "    out = f'run{n}'", "    if not os.path.exists(out):", "        break"),
    ],
)
def test_the_next_name_that_is_free_is_told(lines: tuple[str, ...]) -> None:
    found = check_told(MakedirsRace, script(*lines, *MADE), reason="choose the name on rank 0")
    assert "works out for itself which name is free for out" in found.message


def test_a_name_that_a_function_or_a_setting_works_out() -> None:
    head = SCRIPT + "    def next_run(root):\n        n = len(os.listdir(root))\n        return Path(root) / str(n)\n\n"
    body = script("args.out = next_run(args.root)", "os.makedirs(args.out, exist_ok=True)").removeprefix(SCRIPT)
    check_told(MakedirsRace, head + body, reason="choose the name on rank 0")


@pytest.mark.parametrize(
    "lines",
    [
        ("n = len(os.listdir(args.root))", "print(n)", "out = args.root", *MADE),
        ("last = max(os.listdir(args.root))", "out = os.path.join(args.root, last)", *MADE),
        ("out = f'run{len(args.parts)}'", *MADE),
        ("out = f'run{args.epoch + 1}'", *MADE),
        ("if dist.get_rank() == 0:", "    out = f'run{len(os.listdir(args.root))}'", "    os.makedirs(out, exist_ok=True)"),
        ("n = [len(os.listdir(args.root))]", "dist.broadcast_object_list(n, src=0)", "out = f'run{n[0]}'", *MADE),
        ("out = f'run{len(os.listdir(args.root))}_rank{dist.get_rank()}'", *MADE),
        ("while not os.path.exists(args.ready):", "    args.wait()", "out = args.root", *MADE),
    ],
)
def test_names_that_all_ranks_agree_on(lines: tuple[str, ...]) -> None:
    check_nothing(MakedirsRace, script(*lines))


def test_a_name_that_is_worked_out_before_the_processes_start() -> None:
    source = (
        SCRIPT + "    import torch.multiprocessing as mp\n\n    def work(rank, out):\n        dist.init_process_group()\n\n"
        "    def main():\n        out = f'run{len(os.listdir(\"runs\"))}'\n        os.makedirs(out, exist_ok=True)\n"
        "        mp.spawn(work, nprocs=2, args=(out,))\n\n    if __name__ == '__main__':\n        main()\n"
    )
    check_nothing(MakedirsRace, source)


NEXT = (
    "    def next_run(root, make=False):\n        for n in range(99):\n            path = f'{root}/{n}'\n"
    "            if not os.path.exists(path):\n                break\n        if make:\n"
    "            os.makedirs(path, exist_ok=True)\n        return path\n\n"
)


def test_a_folder_that_only_some_calls_ask_for() -> None:
    source = SCRIPT + NEXT + script("out = next_run(args.root{0})", "print(out)").removeprefix(SCRIPT)
    check_told(MakedirsRace, source.replace("{0}", ", make=True"), reason="on rank 0")
    check_nothing(MakedirsRace, source.replace("{0}", ""))


def test_a_setting_that_another_function_works_out() -> None:
    head = SCRIPT + NEXT + "    def start(args):\n        args.out = next_run(args.root)\n        main(args)\n\n"
    body = script("out = Path(args.out)", "os.makedirs(out / 'weights', exist_ok=True)").removeprefix(SCRIPT)
    check_told(MakedirsRace, head + body, reason="choose the name on rank 0")


def test_nothing_where_the_handler_raises_other_errors_alone() -> None:
    handled = "try:", "    os.makedirs(args.out)", "except OSError as e:", "    if e.errno != errno.EEXIST:", "        raise"
    check_nothing(MakedirsRace, script(*handled))
    check_told(MakedirsRace, script(*handled[:3], "    if e.errno == errno.EEXIST:", "        raise"), reason="caught here")


def test_a_search_for_the_name_of_another_file() -> None:
    search = "count = 1", "while os.path.exists(f'old.{count}.yaml'):", "    count += 1"
    made = "if not os.path.exists(args.data):", "    os.makedirs(args.data)"
    after = ("os.makedirs(args.data, exist_ok=True)",)
    check_transformed(MakedirsRace, script(*search, *made), script(*search, *after))
    check_told(MakedirsRace, script(*search, "os.makedirs(f'{args.data}/{count}')"), reason="searched for")


def trainer_that_saves(pin: str, called: str = "_save") -> dict[str, str]:
    """A network in main.py whose `store` only a Trainer of another file calls."""
    return {
        "requirements.txt": f"transformers{pin}\n",
        "trainer.py": "from transformers import Trainer\nimport torch.distributed as dist\n\n\nclass Pairs(Trainer):\n"
        f"    def {called}(self, output_dir=None):\n        self.model.store(output_dir)\n",
    }


STORED = """\
    import os
    import torch
    import torch.distributed as dist
    from torch import nn

    class Pair(nn.Module):
        def store(self, folder):
            os.makedirs(os.path.join(folder, 'left'))
            torch.save(self.left.state_dict(), os.path.join(folder, 'left', 'model.bin'))

        def loss(self, x):
            return dist.get_world_size() * x
"""
STORED_ANYWAY = STORED.replace("'left'))\n", "'left'), exist_ok=True)\n", 1)


@pytest.mark.parametrize("pin", ["==4.30.2", ">=4.30,<5", ""])
def test_nothing_of_what_only_the_save_of_a_trainer_calls(pin: str) -> None:
    check_nothing(MakedirsRace, STORED, files=trainer_that_saves(pin))
    check_nothing(UnguardedSave, STORED_ANYWAY, files=trainer_that_saves(pin))


def test_what_a_trainer_calls_on_every_rank() -> None:
    assert findings_of(MakedirsRace, STORED, trainer_that_saves("==4.30.2", "evaluate"))
    assert findings_of(UnguardedSave, STORED_ANYWAY, trainer_that_saves("==4.30.2", "evaluate"))


SPAWNING = """\
import os

import torch.distributed as dist
START

def work(rank, args):
    dist.init_process_group("nccl", rank=rank)


def main(args):
    if not os.path.exists(args.out):
        os.makedirs(args.out)
    CALL


if __name__ == "__main__":
    main(parse())
"""
STARTER = "import torch.multiprocessing as mp\n\n\ndef start(job, args):\n    mp.spawn(job, nprocs=2, args=(args,))\n"


@pytest.mark.parametrize(
    "call", ["start(work, args)", "if args.many:\n        start(work, args)\n    else:\n        work(0, args)"]
)
def test_the_parent_whose_helper_in_another_file_starts_the_processes(call: str) -> None:
    source = SPAWNING.replace("START", "from starting import start\n").replace("CALL", call)
    check_nothing(MakedirsRace, source, files={"starting.py": STARTER})
    direct = SPAWNING.replace("START", "import starting\n").replace("CALL", "starting.start(work, args)")
    check_nothing(MakedirsRace, direct, files={"starting.py": STARTER})


@pytest.mark.parametrize(
    "starter",
    [
        "def start(job, args):\n    job(0, args)\n",
        "import multiprocessing as mp\n\n\ndef start(job, args):\n    mp.get_context('spawn').Pool(2).map(job, args)\n",
        STARTER.replace("def start", "def others") + "\n\ndef start(job, args):\n    job(0, args)\n",
    ],
)
def test_a_helper_that_starts_no_processes_changes_nothing(starter: str) -> None:
    call = "dist.init_process_group('nccl')\n    start(work, args)"
    source = SPAWNING.replace("START", "from starting import start\n").replace("CALL", call)
    assert findings_of(MakedirsRace, source, {"starting.py": starter})


FLAGGED = """\
import helpers


def train(gpu, per_node, args):
    shown = not args.many or (args.many and args.rank % per_node == 0)
    if TEST:
        helpers.log_folder(args)
"""
HELPERS = """\
import os
import torch.distributed as dist


def log_folder(args):
    if not os.path.exists(args.out):
        os.mkdir(args.out)
    return args.out
"""
ENTRY = """\
import os
import sys
import torch.distributed as dist
import torch.multiprocessing as mp
from flagged import train


def work(gpu, per_node, args):
    args.rank = int(os.environ["RANK"])
    SETS
    dist.init_process_group("nccl", rank=args.rank)
    train(gpu, per_node, args)


if __name__ == "__main__":
    mp.spawn(work, nprocs=2, args=(2, parse()))
"""


def flagged(test: str, sets: str = "args.rank = args.rank * per_node + gpu") -> dict[str, str]:
    return {"flagged.py": FLAGGED.replace("TEST", test), "run.py": ENTRY.replace("SETS", sets)}


def test_callers_under_a_flag_for_the_first_process_of_a_node() -> None:
    many = {k: v.replace("args.many", "args.distributed") for k, v in flagged("shown").items()}
    check_nothing(MakedirsRace, HELPERS, files=many, path="helpers.py")


def test_callers_under_another_flag_come_with_every_rank() -> None:
    many = {k: v.replace("args.many", "args.distributed") for k, v in flagged("args.verbose").items()}
    assert findings_of(MakedirsRace, HELPERS, many, path="helpers.py")


@pytest.mark.parametrize("sets", ["args.rank = len(args.names)", "args.rank = 64"])
def test_a_size_of_that_name_is_no_rank(sets: str) -> None:
    files = flagged("args.rank == 0", sets)
    files["run.py"] = files["run.py"].replace('    args.rank = int(os.environ["RANK"])\n', "")
    project = project_of(HELPERS, files)
    module = project.module("flagged.py")
    assert module is not None
    assert split_of(module, module.nodes(ast.If)[0].test, project) is None


OF_ITEMS = (
    "import os\nimport torch\nimport torch.distributed as dist\nfrom torch.utils.data import DataLoader, DistributedSampler\n\n\n"
    "def judge(model, data, out):\n    dist.init_process_group('nccl')\n"
    "    for names, x in DataLoader(data, sampler=DistributedSampler(data)):\n        path = os.path.join(out, names[0])\n"
    "        {folder}\n        if not os.path.exists(folder):\n            os.makedirs(folder)\n"
    "        torch.save(model(x), path)\n"
)


@pytest.mark.parametrize("folder", ["folder = os.path.dirname(path)", "folder, _ = os.path.split(path)"])
def test_the_folder_round_the_files_of_a_share(folder: str) -> None:
    before = OF_ITEMS.format(folder=folder)
    check_transformed(MakedirsRace, before, at_once(before))
    assert "of two ranks that come to it at once" in findings_of(MakedirsRace, before)[0].message


@pytest.mark.parametrize("folder", ["folder = path + '.parts'", "folder = os.path.join(out, names[0])"])
def test_a_folder_for_each_item_of_a_share(folder: str) -> None:
    check_nothing(MakedirsRace, OF_ITEMS.format(folder=folder))


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("os.path.join(out, names[0], names[0] + '.pt')", True),
        ("f'{out}/{names[0]}/{names[0]}.pt'", True),
        ("os.path.join(out, '{}/{}.pt'.format(names[0], names[0]))", True),
        ("os.path.join(out, names[1], names[0])", False),
        ("os.path.join(out, kinds[0], names[0])", False),
        ("f'{out}/{names[0]}.pt'", False),
    ],
)
def test_the_folder_round_a_file_that_both_bear_the_name_of_a_sample(path: str, own: bool) -> None:
    source = OF_ITEMS.format(folder="folder = os.path.dirname(path)").replace("os.path.join(out, names[0])", path)
    assert bool(findings_of(MakedirsRace, source)) is not own


OF_FIELDS = (
    "import os\nimport torch\nimport torch.distributed as dist\nfrom torch.utils.data import DataLoader, DistributedSampler\n\n\n"
    "def render(model, data, out):\n    dist.init_process_group('nccl')\n"
    "    for batch in DataLoader(data, sampler=DistributedSampler(data)):\n        kinds = batch['kind']\n"
    "        for {fields} in {items}:\n            {folder}\n            if not os.path.exists(folder):\n"
    "                os.makedirs(folder)\n            {file}\n"
)


@pytest.mark.parametrize(
    ("fields", "items", "folder", "file"),
    [
        ("kind, file", "zip(kinds, batch['file'])", "folder = os.path.join(out, kind)",
         "model(file).save(os.path.join(folder, file))"),
        ("i, (kind, file)", "enumerate(zip(kinds, batch['file']))", "folder = f'{out}/{kind}'",
         "model(file).save(f'{out}/{kind}/{file}')"),
        ("kind, file", "zip(batch['kind'], batch['file'])", "folder = out + '/' + kind",
         "torch.save(model(file), out + '/' + kind + '/' + file)"),
        ("file", "batch['file']", "folder = os.path.join(out, file.split('/')[0])",
         "model(file).save(os.path.join(folder, f'{os.path.basename(file)}.png'))"),
        ("file", "batch['file']", "top = file.split(os.sep)[0]; folder = os.path.join(out, top)",
         "last = file.split('/')[-1]; model(file).save(f'{folder}/{last}')"),
        ("file", "batch['file']", "folder = os.path.join(out, 'x'); folder = os.path.join(folder, file.split('/')[0])",
         "model(file).save(f'{folder}/{os.path.basename(file)}.png')"),
        ("kind, file", "zip(kinds, batch['file'])", "folder = os.path.join(out, kind)",
         "file = file.replace('.jpg', '.png'); model(file).save(os.path.join(folder, file))"),
    ],
)  # fmt: skip
def test_the_folder_of_a_kind_of_samples(fields: str, items: str, folder: str, file: str) -> None:
    before = OF_FIELDS.format(fields=fields, items=items, folder=folder, file=file)
    found = findings_of(MakedirsRace, before)
    assert len(found) == 1 and found[0].applicability is Applicability.SAFE and "samples that several ranks" in found[0].message


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("folder = os.path.join(out, file)", "model(kind).save(os.path.join(folder, 'image.png'))"),
        ("folder = os.path.join(out, file)", "model(kind).save(os.path.join(folder, file))"),
        ("folder = os.path.join(out, file)", "name = file; model(kind).save(os.path.join(folder, name))"),
        ("folder = os.path.join(out, file)", "model(kind).save(os.path.join(folder, f'{kind}.png'))"),
        ("folder = os.path.join(out, file)", "os.makedirs(os.path.join(folder, kind), exist_ok=True)"),
        ("folder = os.path.join(out, file)", "inner = os.path.join(folder, kind); os.makedirs(inner, exist_ok=True)"),
        ("folder = os.path.join(out, file)", "model(kind).save(os.path.join(folder, STYLE))"),
        ("folder = os.path.join(out, file)", "model(kind).save(os.path.join(out, kind))"),
        ("folder = os.path.join(out, file.split('/')[-1])", "model(kind).save(f'{folder}/{os.path.basename(file)}')"),
        ("folder = os.path.join(out, file.split('_')[0])", "model(kind).save(f'{folder}/{os.path.basename(file)}')"),
        ("folder = os.path.join(out, kind.split('/')[0])", "model(kind).save(f'{folder}/{os.path.basename(file)}.png')"),
    ],
)
def test_a_folder_that_one_sample_has_for_itself(folder: str, file: str) -> None:
    source = OF_FIELDS.format(fields="kind, file", items="zip(kinds, batch['file'])", folder=folder, file=file)
    check_nothing(MakedirsRace, source)


MPI = {
    "dist_util.py": "import os\nimport torch.distributed as dist\nfrom mpi4py import MPI\n\n\ndef setup_dist():\n"
    "    os.environ['RANK'] = str(MPI.COMM_WORLD.rank)\n    dist.init_process_group('nccl')\n"
}
OF_MPI = (
    "import os\nimport dist_util\n\n\ndef main(args):\n    if not os.path.exists(args.out):\n"
    "        os.makedirs(args.out)\n{start}\n"
    "\n\nif __name__ == '__main__':\n    main(parse())\n"
)


def test_a_program_that_joins_by_a_helper_below() -> None:
    before = OF_MPI.format(start="    dist_util.setup_dist()")
    after = at_once(before)
    check_transformed(MakedirsRace, before, after, files={**MPI, "run.sh": "mpiexec -n 8 python module.py\n"})


def test_a_program_that_joins_nobody() -> None:
    check_nothing(MakedirsRace, OF_MPI.format(start="    print(args)"), files=MPI)
    alone = OF_MPI.format(start="    if args.join:\n        return\n    print(dist_util.__doc__)")
    check_nothing(MakedirsRace, alone, files=MPI)
LOGGER = """
import os


class Logger:
    def __init__(self, folder):
        if not os.path.exists(folder):
            os.mkdir(folder)
        self.folder = folder
"""
STARTED = """
import torch.distributed as dist
import torch.multiprocessing as mp
from module import Logger


def main(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    is_main = rank == 0
    if is_main:
        log = Logger("out")


if __name__ == "__main__":
    mp.spawn(main, args=(2,), nprocs=2)
"""


def test_a_folder_of_an_object_that_one_rank_makes() -> None:
    alone = "from module import Logger\n\n\ndef main():\n    Logger('tests')\n\n\nif __name__ == '__main__':\n    main()\n"
    check_nothing(MakedirsRace, LOGGER, files={"train.py": STARTED})
    check_nothing(MakedirsRace, LOGGER, files={"train.py": STARTED, "report.py": alone})
    every = STARTED.replace("    if is_main:\n        log", "    log")
    assert findings_of(MakedirsRace, LOGGER, {"train.py": every})
    assert findings_of(MakedirsRace, LOGGER, {"train.py": STARTED, "again.py": every})


MAKES_FOR_ALL = [
    ("writer = SummaryWriter(args.out)",),
    ("writer = SummaryWriter(log_dir=args.out)",),
    ("os.makedirs(args.out, exist_ok=True)",),
    ("Path(args.out).mkdir(parents=True, exist_ok=True)",),
    ("path = './log'", "args.out = path", "writer = SummaryWriter(path)"),
    ("if args.big:", "    path = 'a'", "    args.out = path", "    writer = SummaryWriter(path)",
     "else:", "    args.out = 'b'", "    writer = SummaryWriter(args.out)"),
    ("if not os.path.exists(args.out) and dist.get_rank() == 0:", "    os.makedirs(args.out)", "dist.barrier()"),
    ("if dist.get_rank() == 0:", "    os.makedirs(args.out, exist_ok=True)", "dist.barrier()"),
]  # fmt: skip
ASKS = ("if not os.path.exists(args.out):", "    os.makedirs(args.out)")


@pytest.mark.parametrize("above", MAKES_FOR_ALL)
def test_every_rank_has_made_the_folder_above(above: tuple[str, ...]) -> None:
    check_nothing(MakedirsRace, script(*above, *ASKS))


@pytest.mark.parametrize(
    "above",
    [
        ("writer = SummaryWriter(args.logs)",),
        ("if args.big:", "    writer = SummaryWriter(args.out)"),
        ("writer = SummaryWriter(args.out)", "args.out = args.out + '/best'"),
        ("if args.big:", "    writer = SummaryWriter(args.out)", "else:", "    args.note()"),
        ("path = './log'", "args.out = path", "path = './more'", "writer = SummaryWriter(path)"),
        ("if dist.get_rank() == 0:", "    os.makedirs(args.out, exist_ok=True)"),  # nobody waits for it
        ("dist.barrier()", "if dist.get_rank() == 0:", "    os.makedirs(args.out, exist_ok=True)"),
        ("if args.big and dist.get_rank() == 0:", "    os.makedirs(args.out, exist_ok=True)", "dist.barrier()"),
        ("if dist.get_rank() == 0:", "    os.makedirs(args.logs, exist_ok=True)", "dist.barrier()"),
    ],
)
def test_the_folder_may_be_missing_below_a_writer(above: tuple[str, ...]) -> None:
    after = ("os.makedirs(args.out, exist_ok=True)",)
    check_transformed(MakedirsRace, script(*above, *ASKS), script(*above, *after))


BY_OTHERS = """\
import os
import torch.distributed as dist
import torch.multiprocessing as mp


def ensure(folder, wanted=True):
    if not os.path.exists(folder):
        os.makedirs(folder)


def ensure_some(folder, wanted=True):
    if wanted:
        os.makedirs(folder, exist_ok=True)


def work(rank, out):
    dist.init_process_group("gloo")
    {above}
    if not os.path.exists(out):
        os.makedirs(out)


if __name__ == "__main__":
    folder = "runs"
    {before}
    mp.spawn(work, args=({given},), nprocs=2)
"""


@pytest.mark.parametrize(
    ("above", "before", "given"),
    [
        ("ensure(out)", "pass", "folder"),
        ("ensure(wanted=False, folder=out)", "pass", "folder"),
        ("pass", "os.makedirs(folder, exist_ok=True)", "folder"),
        ("pass", "if not os.path.isdir(folder):\n        os.mkdir(folder)", "folder"),
        ("pass", "ensure(folder)", "folder"),
    ],
)
def test_a_folder_that_others_have_made(above: str, before: str, given: str) -> None:
    found = findings_of(MakedirsRace, BY_OTHERS.format(above=above, before=before, given=given))
    assert 20 not in [f.span.line for f in found]


@pytest.mark.parametrize(
    ("above", "before", "given"),
    [
        ("pass", "pass", "folder"),
        ("ensure_some(out)", "pass", "folder"),
        ("ensure('logs')", "pass", "folder"),
        ("pass", "ensure(folder)", "folder + '/a'"),
        ("pass", "ensure(folder)\n    folder = input()", "folder"),
    ],
)
def test_a_folder_that_others_have_not_made(above: str, before: str, given: str) -> None:
    found = findings_of(MakedirsRace, BY_OTHERS.format(above=above, before=before, given=given))
    assert 20 in [f.span.line for f in found]


BUILD = """\
import torch
from builder import Builder

def main(args):
    num_gpus = torch.cuda.device_count()
{}    Builder(args.out).build()
"""


def _is_of_one(line: str) -> bool:
    module = SourceModule("build.py", BUILD.format(line).encode())
    (call,) = module.calls_named("Builder")
    return is_of_one_process(module, call)


def test_a_program_that_asserts_one_gpu() -> None:
    assert _is_of_one("    assert num_gpus == 1, 'one only'\n")


@pytest.mark.parametrize("line", ["    assert num_gpus >= 1\n", "", "    assert num_gpus == 1\n    import torch.distributed\n"])
def test_a_program_that_asserts_no_one_gpu(line: str) -> None:
    assert not _is_of_one(line)


COPY = """\
import os
import shutil
import torch.distributed as dist


def keep(file, folder):
    if not os.path.exists(folder):
        os.makedirs(folder)
    shutil.copy(file, folder)


def train(config):
    dist.init_process_group("gloo")
    out = os.path.join(config["out"], config["name"])
    {made}
    out = os.path.join(config["out"], config["name"])
    if not os.path.exists(out):
        os.makedirs(out)
    return out


if __name__ == "__main__":
    config = read()
    out = train(config)
    keep("a.json", out)
"""


def test_a_folder_that_the_same_text_has_named_above() -> None:
    check_nothing(MakedirsRace, COPY.format(made="os.makedirs(out, exist_ok=True)"))
    assert [f.span.line for f in findings_of(MakedirsRace, COPY.format(made="print(out)"))] == [18]
    changed = COPY.format(made='os.makedirs(out, exist_ok=True)\n    config["name"] = "b"')
    assert [f.span.line for f in findings_of(MakedirsRace, changed)] == [19]
    elsewhere = COPY.format(made="print(out)").replace('"a.json", out', '"a.json", config["logs"]')
    assert [f.span.line for f in findings_of(MakedirsRace, elsewhere)] == [8, 18]


GIVEN = """\
import os
import torch.distributed as dist


class Log:
    def start(self, folder):
        if not os.path.exists(folder):
            os.makedirs(folder)


class Nothing:
    def __getattr__(self, name):
        return lambda *a, **k: None


real = Log()
silent = Nothing()


def get_log():
    if dist.get_rank() > 0:
        return silent
    else:
        return real


def main(args):
    dist.init_process_group("nccl")
    {start}
"""


@pytest.mark.parametrize("start", ["get_log().start(args.out)", "log = get_log()\n    log.start(args.out)"])
def test_an_object_that_rank_zero_alone_is_given(start: str) -> None:
    check_nothing(MakedirsRace, GIVEN.format(start=start))


@pytest.mark.parametrize(
    "source",
    [
        GIVEN.format(start="Log().start(args.out)"),
        GIVEN.replace("return silent", "return real").format(start="get_log().start(args.out)"),
    ],
)
def test_an_object_that_every_rank_is_given(source: str) -> None:
    assert findings_of(MakedirsRace, source)


def test_a_folder_named_after_a_clock_of_another_name() -> None:
    check_told(MakedirsRace, script("from time import time", "os.makedirs(f'/tmp/{time()}')"), reason="broadcast")


BASE = """\
import os

import torch.distributed as dist
from settings import config


class Log:
    def __init__(self, folder=None, rank=0):
        self.rank = rank
        if folder is not None:
            if not os.path.exists(folder):
                os.makedirs(folder, exist_ok=True)
            self.file = open(os.path.join(folder, f"log_{{rank}}.txt"), "a")


class Base:
    def __init__(self, args):
        dist.init_process_group("nccl")
        self.out = args.out
        {made}

    def keep(self, rows):
        if not os.path.exists({path}):
            os.makedirs({path})
        return rows


def main(args):
    Base(args).keep([dist.get_rank()])


if __name__ == "__main__":
    main(read())
"""


@pytest.mark.parametrize(
    ("made", "path"),
    [
        ('self.log = Log(config.get("task"), rank=dist.get_rank())', 'config.get("task")'),
        ("self.log = Log(self.out, rank=dist.get_rank())", "self.out"),
        ("os.makedirs(self.out, exist_ok=True)", "self.out"),
    ],
)
def test_the_constructor_has_made_the_folder(made: str, path: str) -> None:
    check_nothing(MakedirsRace, BASE.format(made=made, path=path), path="train.py")


@pytest.mark.parametrize(
    ("made", "path"),
    [
        ('self.log = Log(config.get("task"), rank=dist.get_rank())', 'config.get("other")'),
        ("self.log = Log(rank=dist.get_rank())", "self.out"),
        ("if args.big:\n            os.makedirs(self.out, exist_ok=True)", "self.out"),
        ("if args.small:\n            return\n        os.makedirs(self.out, exist_ok=True)", "self.out"),
        ("os.makedirs(self.out, exist_ok=True)\n        self.out = args.more", "self.out"),
        ("os.makedirs(self.out, exist_ok=True)\n\n    def turn(self, out):\n        self.out = out", "self.out"),
    ],
)
def test_the_constructor_may_have_made_another_folder(made: str, path: str) -> None:
    found = findings_of(MakedirsRace, BASE.format(made=made, path=path), path="train.py")
    assert any(f.symbol.endswith("keep") for f in found)


@pytest.mark.parametrize(
    "used",
    [
        "if args.start.endswith('.pt'):\n            return torch.load(args.start)",
        "if args.start.endswith(('.h5', '.pt')):\n            return 1",
        "if os.path.isfile(args.start):\n            return 1",
        "return torch.load(args.start)",
        "return open(args.start)",
    ],
)
def test_the_test_stays_where_the_path_may_be_that_of_a_file(used: str) -> None:
    """The test has left a checkpoint alone that training goes on from; without it `makedirs` would end the run."""
    before = loading("if not os.path.exists(args.start):", "    os.makedirs(args.start)", used)
    after = before.replace("os.makedirs(args.start)", "os.makedirs(args.start, exist_ok=True)")
    check_transformed(MakedirsRace, before, after)


@pytest.mark.parametrize(
    "used",
    [
        "return torch.load(os.path.join(args.out, 'a.pt'))",
        "if args.out.endswith('/'):\n            return 1",
        "if args.name.endswith('.pt'):\n            return 1",
        "return os.listdir(args.out)",
    ],
)
def test_other_uses_are_those_of_a_folder(used: str) -> None:
    before = loading("if not os.path.exists(args.out):", "    os.makedirs(args.out)", used)
    check_transformed(MakedirsRace, before, at_once(before))


def test_a_name_that_becomes_the_file_below() -> None:
    lines = ("if not os.path.exists(out):", "    os.makedirs(out)", "out = os.path.join(out, 'a.pt')", "return torch.load(out)")
    before = loading("out = args.out", *lines)
    check_transformed(MakedirsRace, before, at_once(before))


TRAINED = """import os
from transformers import Seq2SeqTrainer


def main(model, data, args):
    trainer = Seq2SeqTrainer(model=model, args=args)
    RUN
    if not os.path.exists(args.output_dir):
        os.makedirs(args.output_dir)
    print(trainer)
"""


@pytest.mark.parametrize("run", ["found = trainer.predict(data)", "trainer.train()\n    print(1)"])
def test_the_folder_of_a_trainer_that_has_run(run: str) -> None:
    check_nothing(MakedirsRace, TRAINED.replace("RUN", run))
    heir = TRAINED.replace("= Seq2SeqTrainer(", "= Own(").replace("\n\n\n", "\n\n\nclass Own(Seq2SeqTrainer):\n    pass\n\n\n", 1)
    check_nothing(MakedirsRace, heir.replace("RUN", run))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RUN", "print(trainer)"),  # rank 0 may be slower than the rest
        ("RUN", "if args.do_train:\n        trainer.train()"),
        ("RUN\n    if not", "trainer.train()\n    args = others()\n    if not"),
        ("args=args", "args=others()"),
        ("args.output_dir", "args.other_dir"),
    ],
)
def test_folders_that_a_trainer_does_not_make(old: str, new: str) -> None:
    assert findings_of(MakedirsRace, TRAINED.replace(old, new).replace("RUN", "trainer.train()"))


LOGGED = """\
import logging
import os

from accelerate import Accelerator


class Runner:
    def __init__(self, args):
        logging.basicConfig(handlers=[logging.StreamHandler(), logging.FileHandler({path})])
        self.accelerator = Accelerator()
        self.folder = args.out
        if not os.path.exists(self.folder):
            os.makedirs(self.folder)


if __name__ == "__main__":
    Runner(parse()).accelerator.backward(1)
"""


def test_a_folder_that_a_log_file_was_opened_in_is_there() -> None:
    check_nothing(MakedirsRace, LOGGED.format(path="os.path.join(args.out, 'run.log')"))


@pytest.mark.parametrize(
    "path", ["os.path.join(args.logs, 'run.log')", "os.path.join(args.out, 'run.log'), delay=True", "'run.log'"]
)
def test_a_log_file_elsewhere_or_one_that_is_opened_later_shows_nothing(path: str) -> None:
    assert findings_of(MakedirsRace, LOGGED.format(path=path))


NUMBERED = """\
import glob
import os

import torch.distributed as dist


def free_name():
    return "runs/" + str(len(glob.glob("runs/*")) + 1)


def main():
    dist.init_process_group("nccl")
    folder = free_name()
    {between}
    if dist.get_rank() == 0:
        os.makedirs(folder)
    train(folder)


if __name__ == "__main__":
    main()
"""


def test_a_name_that_each_rank_counts_and_rank_zero_makes() -> None:
    (found,) = findings_of(MakedirsRace, NUMBERED.format(between="pass"))
    assert found.span.line == 13
    assert found.message.startswith("every rank works out for itself which name is free for folder, and rank 0 makes")


@pytest.mark.parametrize(
    "source",
    [
        NUMBERED.format(between="dist.barrier()"),  # all have counted before it is there
        NUMBERED.format(between="folder = [folder]; dist.broadcast_object_list(folder); folder = folder[0]"),
        NUMBERED.format(between="pass").replace("    train(folder)", "        train(folder)"),
        NUMBERED.format(between="pass").replace("folder = free_name()", "folder = 'runs/1'"),
        NUMBERED.format(between="pass").replace("folder = free_name()", "folder = free_name() if dist.get_rank() == 0 else ''"),
    ],
)
def test_names_that_the_ranks_agree_on(source: str) -> None:
    assert not findings_of(MakedirsRace, source)


def test_folders_that_are_made_under_one_test() -> None:
    """Two ranks that come past the test both go on to the second folder."""
    lines = ("if not os.path.exists(args.out):", "    os.makedirs(args.out)", "    os.makedirs(args.best)", "    note(args)")
    before = script(*lines)
    after = before.replace("(args.out)\n            os", "(args.out, exist_ok=True)\n            os")
    check_transformed(MakedirsRace, before, after.replace("(args.best)", "(args.best, exist_ok=True)"))


def test_folders_that_are_made_under_one_test_in_two_ways() -> None:
    before = script("if not os.path.exists(args.out):", "    os.makedirs(args.out)", "    os.mkdir(args.best)", "    note(args)")
    after = before.replace("makedirs(args.out)", "makedirs(args.out, exist_ok=True)")
    check_transformed(MakedirsRace, before, after.replace("mkdir(args.best)", "makedirs(args.best, exist_ok=True)"), unsafe=True)


def test_a_folder_named_by_the_microsecond_is_each_process_s_own() -> None:
    lines = (
        "args.out = f'logs/{datetime.datetime.now():%H-%M-%S-%f}/'", "out = args.out",
        "if not os.path.exists(out):", "    os.makedirs(out)",
    )  # fmt: skip
    head = "    import datetime\n"
    check_nothing(MakedirsRace, head + script(*lines))
    shared = (line.replace("{datetime.datetime.now():%H-%M-%S-%f}", "new") for line in lines)
    assert findings_of(MakedirsRace, head + script(*shared))


def test_an_exit_of_a_training_is_no_search() -> None:
    loop = "for step in args.steps:", "    if step > 9:", "        break"
    made = "    if not os.path.exists(args.out):", "        os.makedirs(args.out)"
    after = *loop, "    os.makedirs(args.out, exist_ok=True)"
    check_transformed(MakedirsRace, script(*loop, *made), script(*after))


STARTER = """\
import os
import time
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, folder):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    os.makedirs(folder, exist_ok=True)


GUARDfolder = time.strftime("%H%M%S")
INos.makedirs(folder, exist_ok=True)
INmp.spawn(worker, nprocs=2, args=(folder,))
"""


def test_a_clock_that_the_starter_alone_reads() -> None:
    check_nothing(MakedirsRace, STARTER.replace("GUARD", 'if __name__ == "__main__":\n    ').replace("IN", "    "))
    loose = STARTER.replace("GUARD", "").replace("IN", "")
    check_told(MakedirsRace, loose[: loose.index("mp.spawn")], reason="take the time")


def test_a_helper_that_prepare_data_alone_calls() -> None:
    helper = "import os\nfrom torch.utils.data import DataLoader\nimport lightning.pytorch as pl\n\n\n"
    helper += "def fetch(folder):\n    os.makedirs(folder)\n\n\n"
    data = "class Rows(pl.LightningDataModule):\n    def HOOK(self):\n        fetch('rows')\n\n\n"
    fit = "pl.Trainer(devices=2).fit(Net(), Rows())\n"
    check_nothing(MakedirsRace, helper + data.replace("HOOK", "prepare_data") + fit)
    assert findings_of(MakedirsRace, helper + data.replace("HOOK(self)", "setup(self, stage)") + fit)


NAMED_LATER = """\
import datetime
import os
import torch.distributed as dist


def open_log(name):
    LINES


dist.init_process_group("nccl")
open_log("runs/a")
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("folder = os.path.dirname(name)", "name = f'{name}_{datetime.datetime.now()}.log'", "os.makedirs(folder)"), False),
        (("name = f'{name}_{datetime.datetime.now()}'", "folder = os.path.join(name, 'logs')", "os.makedirs(folder)"), True),
        (("for _ in range(2):", "    folder = os.path.join(name, 'logs')", "    os.makedirs(folder)",
          "    name = f'{name}_{datetime.datetime.now()}'"), True),  # the next round has it
        (("os.makedirs(name, exist_ok=True)", "name = f'{name}_{datetime.datetime.now()}'"), None),
    ],
)  # fmt: skip
def test_a_time_that_comes_into_the_name_behind_the_folder(lines: tuple[str, ...], told: bool | None) -> None:
    found = findings_of(MakedirsRace, NAMED_LATER.replace("LINES", "\n    ".join(lines)))
    assert len(found) == (told is not None)
    assert all(("after its own clock" in f.message) is told for f in found)


NEXT_RUN = """\
import os
from pathlib import Path

from transformers import Trainer, TrainingArguments


def next_run(root, keep=False):
    numbers = [int(p.name) for p in Path(root).iterdir()] + [-1]
    number = NUMBER
    return Path(root) / str(number)


def main(model, data):
    if int(os.environ["LOCAL_RANK"]) == 0:
        print("go")
    ABOVE
    folder = next_run("runs")
    BEHIND
    arguments = TrainingArguments(output_dir=str(folder), ddp_find_unused_parameters=FalseMORE)
    Trainer(model, arguments, train_dataset=data).train()


main(None, None)
"""
BY_ITSELF = {"NUMBER": "max(numbers) + 1", "ABOVE": "pass", "BEHIND": "pass", "MORE": ""}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, True),
        ({"NUMBER": "max(numbers) + (0 if keep else 1)"}, True),
        ({"NUMBER": "len(os.listdir(root))"}, True),
        ({"NUMBER": "max(numbers)"}, False),  # the last, which is there
        ({"NUMBER": "7 if len(os.listdir(root)) else 0"}, False),
        ({"BEHIND": "torch.distributed.barrier()"}, False),  # all have counted before the Trainer makes the folder
        ({"BEHIND": "torch.distributed.broadcast_object_list([folder])"}, False),
        ({"MORE": ", save_strategy='no'"}, False),
    ],
)
def test_the_next_free_folder_of_a_trainer(given: dict[str, str], told: bool) -> None:
    source = NEXT_RUN
    for word, text in {**BY_ITSELF, **given}.items():
        source = source.replace(word, text)
    found = [f for f in findings_of(MakedirsRace, source) if "which name is free" in f.message]
    assert len(found) == told
    helper, rest = source.split("def main", 1)
    apart = "import os\nfrom transformers import Trainer, TrainingArguments\nfrom runs import next_run\n\n\ndef main" + rest
    found = findings_of(MakedirsRace, apart, {"runs.py": helper})
    assert len(found) == told
    assert all(f.span.line == apart[: apart.index("folder = ")].count("\n") + 1 for f in found)


STAMPED_APART = """\
import json
import os
import time

import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter


def main(args):
    dist.init_process_group("nccl")
    out = os.path.join("runs", time.strftime(FORM))
    args["out"] = out
    if dist.get_rank() == 0:
        os.makedirs(MADE)
    USED


main({})
"""


@pytest.mark.parametrize("made", ["out", 'args["out"]', "out, exist_ok=True"])
@pytest.mark.parametrize(
    ("used", "told"),
    [
        ("writer = SummaryWriter(out)", True),
        ("writer = SummaryWriter(log_dir=os.path.join(out, 'events'))", True),
        ("with open(f'{out}/args.json', 'w') as f:\n        json.dump(args, f)", True),
        ("log = make_logger(out)", False),  # who writes there is not seen
        ("if dist.get_rank() == 0:\n        writer = SummaryWriter(out)", False),
        ("writer = SummaryWriter('events')", False),
        ("dist.broadcast_object_list([out])\n    writer = SummaryWriter(out)", False),
    ],
)
def test_a_folder_that_rank_0_alone_makes_after_its_clock(made: str, used: str, told: bool) -> None:
    source = STAMPED_APART.replace("MADE", made).replace("USED", used)
    found = [f for f in findings_of(MakedirsRace, source.replace("FORM", "'%H%M%S'")) if "after its own clock" in f.message]
    assert len(found) == told
    assert all(f.span.line == 11 and "line 14" in f.message for f in found)
    assert not findings_of(MakedirsRace, source.replace("FORM", "'%Y%m%d'"))  # the same on all ranks


IN_A_FIELD = """import os
from datetime import datetime
import torch.distributed as dist


def work(args):
    dist.init_process_group("nccl")
    os.makedirs(os.path.join(args.out, "states"), exist_ok=True)


def main(args):
    args.out = os.path.join(args.out, datetime.now().strftime("%m%d_%H%M%S"))
    work(args)


if __name__ == "__main__":
    main(read())
"""


def test_a_clock_that_is_read_into_a_field() -> None:
    (found,) = [f for f in findings_of(MakedirsRace, IN_A_FIELD) if "after its own clock" in f.message]
    assert found.span.line == 12


@pytest.mark.parametrize(
    ("old", "new"),
    [("%m%d_%H%M%S", "%Y%m%d"),  # the same on all ranks
     ("    work(args)", "    torch.multiprocessing.spawn(work, args=(args,))"),  # one process reads it, for all
     ("    args.out = os", "    if dist.get_rank() == 0:\n        args.out = os"),
     ("    work(args)", "    dist.broadcast_object_list([args])\n    work(args)"),
     ("    work(args)", "    args.out = 'runs'\n    work(args)"),
     ('.strftime("%m%d_%H%M%S")', '.strftime("%m%d_%H%M%S") + str(os.getpid())')],
)  # fmt: skip
def test_a_field_that_is_the_same_on_all_ranks(old: str, new: str) -> None:
    assert old in IN_A_FIELD
    source = IN_A_FIELD.replace(old, new).replace("import os\n", "import os\nimport torch\n")
    assert not [f for f in findings_of(MakedirsRace, source) if "after its own clock" in f.message]


ROWS = """import os

import numpy as np
import torch.distributed as dist


def rows_of(root, name):
    folder = os.path.join(root, name)
    {test}
{arms}

def main(root):
    dist.init_process_group("nccl")
    return rows_of(root, "train")


if __name__ == "__main__":
    main("data")
"""
_READS = '        return np.load(os.path.join(folder, "rows.npy"))\n'
_WRITES = '        os.makedirs(folder)\n        np.save(os.path.join(folder, "rows.npy"), made(root))\n'


@pytest.mark.parametrize(
    ("test", "arms"),
    [
        ("if os.path.isdir(folder):", f"{_READS}    else:\n{_WRITES}    return np.load(os.path.join(folder, 'rows.npy'))\n"),
        ("if not os.path.exists(folder):", f"{_WRITES}    return np.load(os.path.join(folder, 'rows.npy'))\n"),
    ],
)
def test_a_folder_that_says_what_is_made_stays_an_error(test: str, arms: str) -> None:
    check_told(MakedirsRace, ROWS.format(test=test, arms=arms), reason="two ranks would write them at once")


@pytest.mark.parametrize(
    "arms",
    [
        "        os.makedirs(folder)\n    return np.load(os.path.join(root, 'rows.npy'))\n",
        '        os.makedirs(folder)\n    np.save(os.path.join(folder, f"{dist.get_rank()}.npy"), made(root))\n',
    ],
)
def test_a_folder_that_is_only_made_under_its_test(arms: str) -> None:
    found = findings_of(MakedirsRace, ROWS.format(test="if not os.path.exists(folder):", arms=arms))
    assert found and all(f.edits for f in found)


@pytest.mark.parametrize(("given", "told"), [("exist_ok=True", False), ("mode=0o755", True)])
def test_a_partial_that_says_so(given: str, *, told: bool) -> None:
    source = (
        "import torch.distributed as dist\nfrom functools import partial\nfrom os import makedirs\n\n"
        f"makedirs = partial(makedirs, {given})\n\n\ndef main():\n    dist.init_process_group('nccl')\n    makedirs('out')\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    assert bool(findings_of(MakedirsRace, source)) is told


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("not cfg.TRAIN.DDP.ENABLED", False),
        ('not cfg["ddp"]["use"]', False),
        ("not cfg.LOG.ENABLED", True),
        ("cfg.DDP.ENABLED", True),
    ],
)
def test_a_switch_in_a_section_of_the_settings(test: str, *, told: bool) -> None:
    source = (
        "import os\nimport torch.distributed as dist\n\n\ndef save(folder):\n    if not os.path.exists(folder):\n"
        "        os.makedirs(folder)\n\n\ndef main(cfg):\n    dist.init_process_group('nccl')\n"
        f"    if {test}:\n        save(cfg.out)\n    elif dist.get_rank() == 0:\n        save(cfg.out)\n\n\n"
        "if __name__ == '__main__':\n    main(parse())\n"
    )
    assert bool(findings_of(MakedirsRace, source)) is told


NAMED_BY_EACH = """import os
import socket
import uuid
from pathlib import Path

import torch.distributed as dist
import wandb


def choose(cfg):
    again = cfg.before is not None
    return cfg, cfg.before if again else NUMBER


def make(folder):
    if not os.path.exists(folder):
        os.makedirs(folder)


def main(cfg):
    dist.init_process_group("nccl")
    cfg, number = choose(cfg)
    WAY


if __name__ == "__main__":
    main(parse())
"""
WAYS = (
    "path = Path(cfg.root) / number / 'settings.yaml'\n    if not path.parent.exists():\n        path.parent.mkdir(parents=True)",
    "if not os.path.exists(os.path.join(cfg.root, number)):\n        os.makedirs(os.path.join(cfg.root, number))",
    "make(f'{cfg.root}/{number}')",
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("wandb.util.generate_id()", False),
        ("str(uuid.uuid4())", False),
        ("str(os.getpid())", False),
        ("socket.gethostname()", True),
        ("cfg.name", True),
    ],
)
def test_a_number_that_is_new_in_each_process(way: str, number: str, *, told: bool) -> None:
    assert bool(findings_of(MakedirsRace, NAMED_BY_EACH.replace("NUMBER", number).replace("WAY", way))) is told
