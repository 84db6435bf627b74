"""Which places a program of several processes comes to: asked of prints, bars and folders."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from ddpfix.testing import findings_of

RUN = """\
    import torch.distributed as dist

    def main():
        dist.init_process_group("nccl")
        {call}

    if __name__ == "__main__":
        main()
    """
CIRCLE = "\n    def a():\n        b()\n\n    def b():\n        a()\n        lib.report([])\n"
HELPER = "def report(rows):\n    print(rows)\n"
MODULE = """\
    import lightning.pytorch as pl

    class Base(pl.LightningModule):
        def training_step(self, batch, i):
            self.report()

        def report(self):
            print("size")

    class Big(Base):
        {own}
    """
TRAIN = "import lightning.pytorch as pl\nfrom lib import {name}\n\nif __name__ == '__main__':\n    pl.Trainer().fit({name}())\n"


def nobody(files: dict[str, str], at: str = "lib.py", name: str = "report") -> bool:
    """Whether nobody runs the function `name` of the file `at`."""
    project = Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})
    module = project.module(at)
    assert module is not None
    function = next(f for f in module.functions if f.name == name)
    return is_run_by_nobody(project, module, function.body[0])


def test_a_project_without_a_program_is_run_by_somebody_else() -> None:
    assert not nobody({"lib.py": HELPER})
    assert nobody({"lib.py": HELPER, "run.py": RUN.format(call="pass")})


@pytest.mark.parametrize(
    ("call", "more"),
    [
        ("lib.report([])", ""),
        ("dist.on_end(lib.report)", ""),
        ("middle()", "\n    def middle():\n        lib.report([])\n"),
        ("Tool().run()", "\n    class Tool:\n        def run(self):\n            lib.report([])\n"),
        ("getattr(lib, 'report')([])", ""),
    ],
)
def test_a_function_that_the_program_comes_to(call: str, more: str) -> None:
    assert not nobody({"lib.py": HELPER, "run.py": "    import lib\n" + RUN.format(call=call) + more})


@pytest.mark.parametrize(
    ("call", "more"),
    [
        ("pass", "\n    def middle():\n        lib.report([])\n"),
        ("pass", "\n    class Tool:\n        def run(self):\n            lib.report([])\n"),
        ("model.report([])", ""),  # a method of something else
        ("if dist.get_rank() == 0:\n            lib.report([])", ""),
        ("if args.dist == 'OFF':\n            lib.report([])", ""),
        ("if not args.distributed:\n            lib.report([])", ""),
        ("pass", CIRCLE),
    ],
)
def test_a_function_that_it_does_not_come_to_on_several_ranks(call: str, more: str) -> None:
    assert nobody({"lib.py": HELPER, "run.py": "    import lib\n" + RUN.format(call=call) + more})


def test_settings_strings_decorators_and_packages_may_come_to_it() -> None:
    run = RUN.format(call="pass")
    assert not nobody({"lib.py": HELPER, "run.py": run, "a.yaml": "hook: lib.report\n"})
    assert nobody({"lib.py": HELPER, "run.py": run, "a.yaml": "mode: report\n"})  # a word that means something else
    assert not nobody({"lib.py": "@register\n" + HELPER, "run.py": run})
    assert not nobody({"lib.py": "import fire\n" + HELPER, "run.py": run})
    package = {"p/__init__.py": "from p.lib import report\n", "setup.py": "", "run.py": run}
    assert not nobody({"p/lib.py": HELPER, **package}, at="p/lib.py")
    assert nobody({"p/lib.py": HELPER, **package, "p/__init__.py": ""}, at="p/lib.py")
    other = "import lib\nimport torch.distributed as dist\ndist.init_process_group()\nlib.report([])\n"
    assert not nobody({"lib.py": HELPER, "run.py": run, "one.py": other})
    assert nobody({"lib.py": HELPER, "run.py": run, "tests/test_lib.py": "import lib\nlib.report([])\n"})


def test_a_method_runs_where_objects_that_have_it_are_made() -> None:
    model = MODULE.format(own="pass")
    anew = MODULE.format(own="def report(self):\n            return 1")
    above = MODULE.format(own="def report(self):\n            super().report()")
    assert not nobody({"lib.py": model, "run.py": TRAIN.format(name="Base")})
    assert not nobody({"lib.py": model, "run.py": TRAIN.format(name="Big")})
    assert nobody({"lib.py": anew, "run.py": TRAIN.format(name="Big")})
    assert not nobody({"lib.py": above, "run.py": TRAIN.format(name="Big")})
    assert nobody({"lib.py": model, "run.py": RUN.format(call="pass")})
    assert not nobody({"lib.py": model, "run.py": RUN.format(call="pass"), "conf.yaml": "target: lib.Big\n"})
    loaded = TRAIN.format(name="Base").replace("Base())", "Base.load_from_checkpoint('a'))")
    assert not nobody({"lib.py": model, "run.py": loaded})


def test_a_program_that_prepares_data_is_one_process() -> None:
    run = RUN.format(call="pass")
    prepare = "import lib\n\nif __name__ == '__main__':\n    lib.report([])\n"
    assert nobody({"lib.py": HELPER, "run.py": run, "prepare.py": prepare})
    starts = "import lib\nfrom start import begin\n\nif __name__ == '__main__':\n    begin()\n    lib.report([])\n"
    start = "import torch.distributed as dist\n\ndef begin():\n    dist.init_process_group('nccl')\n"
    assert not nobody({"lib.py": HELPER, "run.py": run, "prepare.py": starts, "start.py": start})
    speaks = "def report(rows, rank):\n    print(rows)\n"
    assert not nobody({"lib.py": speaks, "run.py": run, "prepare.py": prepare})


TRAINER = "import lightning.pytorch as pl\n\ndef report(gpus, cfg=None):\n    print('a')\n    pl.Trainer({devices}).fit(net)\n"
DEVICES = """\
    def read(phase):
        cfg = load()
        if phase == "test":
            cfg.DEVICES = [0]
        return cfg
    """


def test_a_trainer_of_one_device_is_one_process() -> None:
    one = "from lib import report\n\nif __name__ == '__main__':\n    gpus = [{}]\n    report(gpus)\n"
    handed = TRAINER.format(devices="gpus=gpus, strategy='ddp'")
    assert nobody({"lib.py": handed, "run.py": one.format("0")})
    assert not nobody({"lib.py": handed, "run.py": one.format("0, 1")})
    assert not nobody({"lib.py": handed, "run.py": one.format("0"), "more.py": one.format("0, 1")})
    assert not nobody({"lib.py": TRAINER.format(devices="gpus=gpus, num_nodes=2"), "run.py": one.format("0")})
    assert nobody({"lib.py": TRAINER.format(devices="devices=1"), "run.py": one.format("0, 1")})


def test_devices_that_the_settings_pin_for_a_phase() -> None:
    program = """\
        import lightning.pytorch as pl
        from lib import read

        def main():
            cfg = read({phase})
            print("a")
            pl.Trainer(devices=list(range(len(cfg.DEVICES)))).test(net)

        if __name__ == "__main__":
            main()
        """
    assert nobody({"lib.py": DEVICES, "run.py": program.format(phase="'test'")}, at="run.py", name="main")
    assert not nobody({"lib.py": DEVICES, "run.py": program.format(phase="'train'")}, at="run.py", name="main")
    several = DEVICES.replace("[0]", "[0, 1]")
    assert not nobody({"lib.py": several, "run.py": program.format(phase="'test'")}, at="run.py", name="main")


def test_an_accelerator_that_shares_nothing() -> None:
    looks = "from accelerate import Accelerator\n\ndef report(net, samples):\n    accelerator = Accelerator()\n"
    looks += "    net = accelerator.prepare(net)\n    print('a')\n    {}\n"
    looks += "\nif __name__ == '__main__':\n    report(load(), read())\n"
    assert nobody({"lib.py": looks.format("net(samples)")})
    for line in ("accelerator.backward(net(samples))", "accelerator.gather(net(samples))", "run(net, accelerator)",
                 "net(samples[accelerator.process_index])", "if accelerator.is_main_process: net.save()"):  # fmt: skip
        assert not nobody({"lib.py": looks.format(line)}), line


@pytest.mark.parametrize(
    ("made", "alone"),
    [
        ("rows = accelerator.prepare(DataLoader(samples))", False),
        ("rows = DataLoader(samples)\n    net, rows = accelerator.prepare(net, rows)", False),
        ("rows = DataLoader(samples)\n    rows = accelerator.prepare_data_loader(rows)", False),
        ("rows = DataLoader(samples)\n    net = accelerator.prepare(net)", True),
        ("rows = prepare(DataLoader(samples))", True),
    ],
)
def test_an_accelerator_that_shares_out_a_loader(made: str, alone: bool) -> None:
    source = "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\nfrom own import prepare\n\n\n"
    source += f"def report(net, samples):\n    accelerator = Accelerator()\n    {made}\n    print([net(r) for r in rows])\n"
    source += "\nif __name__ == '__main__':\n    report(load(), read())\n"
    assert nobody({"lib.py": source}) is alone


@pytest.mark.parametrize(
    ("text", "is_run"),
    [
        ('__all__ = ["Tool"]', False),
        ("def kind(a) -> 'Tool':\n    return a", False),
        ('FOUND = {"tool": "lib.Tool"}', True),
        ('made = registry.get("Tool")', True),
    ],
)
def test_a_string_that_a_class_is_looked_up_by(text: str, is_run: bool) -> None:
    tool = "class Tool:\n    def report(self):\n        print(1)\n"
    files = {"lib.py": tool, "other.py": text, "run.py": RUN.format(call="import other")}
    assert nobody({**files, "run.py": RUN.format(call="import other; other.made.report()")}) is not is_run


@pytest.mark.parametrize(
    ("other", "is_run"),
    [
        ("class Tool:\n    def __init__(self):\n        self.title = 'Tool'\n", False),
        ("class Tool:\n    pass\n\n\nmade = registry.get('Tool')\n", True),
        ("class Kit:\n    def __init__(self):\n        self.made = registry.get('Tool')\n", True),
    ],
)
def test_a_text_by_which_a_class_of_another_file_names_itself(other: str, is_run: bool) -> None:
    tool = "class Tool:\n    def report(self):\n        print(1)\n"
    files = {"lib.py": tool, "other.py": other, "run.py": RUN.format(call="import other; other.Tool().report()")}
    assert nobody(files) is not is_run


LIT = "import lightning.pytorch as pl\n\n\nclass Data(pl.LightningDataModule):\n    def report(self):\n        print(1)\n"
ONE = "_target_: lightning.pytorch.Trainer\naccelerator: gpu\ndevices: 1\n"


@pytest.mark.parametrize(
    ("more", "alone"),
    [
        ({"tests/run.py": "import lightning.pytorch as pl\n\npl.Trainer(devices=1).fit(model)\n"}, True),
        ({"tests/run.py": "import lightning.pytorch as pl\n\npl.Trainer(devices=2).fit(model)\n"}, False),
        ({"conf/trainer.yaml": ONE}, True),
        ({"conf/trainer.yaml": ONE, "conf/many.yaml": ONE.replace("1", "4")}, False),
        ({"conf/trainer.yaml": ONE, "conf/open.yaml": ONE.replace("devices: 1\n", "")}, False),
        ({"conf/trainer.yaml": ONE, "run.sh": "python train.py trainer.devices=4\n"}, False),
        ({"conf/trainer.yaml": ONE, "run.sh": "python train.py trainer.devices=[3]\n"}, True),
        ({"conf/trainer.yaml": ONE, "run.sh": "python train.py trainer.devices=[0,3]\n"}, False),
    ],
)
def test_trainers_of_settings_and_of_demonstrations(more: dict[str, str], alone: bool) -> None:
    assert nobody({"lib.py": LIT, **more}) is alone


@pytest.mark.parametrize(
    ("devices", "alone"),
    [
        ("1 if torch.cuda.is_available() else None", True),
        ('"auto" if not torch.cuda.is_available() else 1', True),
        ("4 if torch.cuda.is_available() else 1", False),
        ("1 if quick else 8", False),
    ],
)
def test_one_device_where_there_is_a_gpu(devices: str, alone: bool) -> None:
    run = f"import lightning.pytorch as pl\nimport torch\n\npl.Trainer(devices={devices}).fit(model)\n"
    assert nobody({"lib.py": LIT, "run.py": run}) is alone


@pytest.mark.parametrize(
    ("lines", "alone"),
    [
        (["options = {'devices': 1, 'accelerator': 'gpu'}"], True),
        (["if quick:", "    options = {'devices': 1}", "else:", "    options = {'devices': [2], 'max_epochs': 9}"], True),
        (["if quick:", "    options = {'devices': 1}", "else:", "    options = {'devices': 4}"], False),
        (["if quick:", "    options = {'devices': 1}", "else:", "    options = read()"], False),
        (["options = {'devices': 1}", "options['devices'] = count"], False),
        (["options = {'max_epochs': 1}"], False),
        (["options = {**more, 'devices': 1}"], False),
    ],
)
def test_one_device_in_a_dict_that_the_trainer_is_handed(lines: list[str], alone: bool) -> None:
    run = "\n".join(["import lightning.pytorch as pl", "", *lines, "pl.Trainer(**options).fit(model)", ""])
    assert nobody({"lib.py": LIT, "run.py": run}) is alone


ALONE = """\
    import torch

    def main():
        {call}

    def run(rank, count, options):
        {start}
        for epoch in range(3):
            report(rank, epoch)

    def report(rank, rows):
        if rank == 0:
            print(rows)

    if __name__ == "__main__":
        main()
    """


@pytest.mark.parametrize(
    ("call", "start", "alone"),
    [
        ("run(0, 1, {})", "pass", True),
        ("run(rank=0, count=1, options={})", "pass", True),
        ("[run(0, 1, o) for o in read()]", "torch.cuda.set_device(rank)", True),
        ("run(0, 1, {})", "torch.distributed.init_process_group('nccl')", False),
        ("torch.multiprocessing.spawn(run, nprocs=4, args=(4, {}))", "pass", False),
        ("run(read(), 1, {})", "pass", False),
        ("run(3, 4, {})", "pass", False),
        ("run(0, int(os.environ['WORLD_SIZE']), {})", "pass", False),
    ],
)
def test_a_function_that_each_call_hands_rank_zero(call: str, start: str, alone: bool) -> None:
    assert nobody({"train.py": ALONE.format(call=call, start=start)}, at="train.py") is alone


SYSTEM = """\
import os
import platform
import sys

import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        note()
    system = platform.system()
    if {test}:
        print("a slower compiler is taken")
    build()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ('platform.system() == "Windows"', False),
        ('system == "Windows"', False),
        ('sys.platform == "win32"', False),
        ('os.name == "nt"', False),
        ('os.name != "nt"', True),
        ('system == "Linux"', True),
        ('name() == "Windows"', True),
    ],
)
def test_a_branch_for_windows_has_no_ranks_of_nccl(test: str, told: bool) -> None:
    assert bool(findings_of(UnguardedPrint, SYSTEM.format(test=test), path="train.py")) is told


PARTS = {
    "sets/rows.py": """\
        class Rows:
            def report(self):
                return 1

            def __init__(self):
                self.report()
        """,
    "train.py": """\
        import torch.distributed as dist
        from sets import SETS

        def main(name):
            dist.init_process_group("nccl")
            SETS[name]()

        if __name__ == "__main__":
            main("rows")
        """,
}
TABLE = {"sets/__init__.py": 'from sets.rows import Rows\n\nSETS = {"rows": Rows}\n'}


def test_a_table_of_classes_in_a_package_that_a_program_imports() -> None:
    assert not nobody({**PARTS, **TABLE}, "sets/rows.py")


def test_a_table_of_classes_in_a_package_that_nobody_imports() -> None:
    program = PARTS["train.py"].replace("from sets import SETS", "from others import SETS")
    start = {"train.py": program, "others.py": "SETS = {}\n"}
    assert nobody({**PARTS, **TABLE, **start}, "sets/rows.py")


IDLE = """\
    import lightning.pytorch as pl
    from rows import Rows, look

    def main(args):
        trainer = pl.Trainer(devices=args.devices)
        rows = {rows}
        print("rows")

    if __name__ == "__main__":
        main(None)
    """
ROWS = """\
    class Rows:
        def __init__(self, trainer):
            self.trainer = trainer

        def go(self):
            {go}

    def look(x):
        pass
    """


@pytest.mark.parametrize(
    ("rows", "go", "idle"),
    [("Rows(trainer)", "return self.trainer.logger", True),
     ("look(trainer)", "pass", True),
     ("Rows(trainer)", "self.trainer.test(self)", False),
     ("Rows(trainer)", "getattr(self.trainer, 'fit')(self)", False),
     ("other.take(trainer)", "pass", False),  # a library may let it run
     ("[trainer]", "pass", False)],
)  # fmt: skip
def test_a_trainer_that_is_made_and_never_runs(rows: str, go: str, idle: bool) -> None:
    files = {"main.py": IDLE.format(rows=rows), "rows.py": ROWS.format(go=go), "fit.py": TRAIN.format(name="Base")}
    assert nobody(files, at="main.py", name="main") is idle


@pytest.mark.parametrize(
    ("top", "alone"),
    [
        ("os.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = '1'", True),
        ("os.environ.update(RANK='0', WORLD_SIZE='1')", True),
        ("os.environ['WORLD_SIZE'] = '1'", False),
        ("os.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = count", False),
        ("if debug:\n    os.environ['RANK'] = '0'\n    os.environ['WORLD_SIZE'] = '1'", False),
        ("os.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = '1'\nmp.spawn(report, (), 4)", False),  # with ranks by hand
        ("os.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = '1'\nos.environ['RANK'] = str(rank)", False),
    ],
)
def test_tasks_that_are_told_that_they_are_alone(top: str, alone: bool) -> None:
    text = f"import os\nimport torch.distributed as dist\n{top}\ndist.init_process_group('gloo')\n\n{HELPER}\n"
    run = f"{text}\nif __name__ == '__main__':\n    report([])\n"
    assert nobody({"lib.py": run}) is alone


NESTED = """\
import torch.distributed as dist

def main(hooks, args):
    dist.init_process_group("nccl")
    {before}

    def report(rows):
        print(rows)
        {inside}

    {after}

if __name__ == "__main__":
    main([], None)
"""


@pytest.mark.parametrize(
    ("before", "inside", "after", "gone"),
    [
        ("pass", "pass", "# hooks.append(report)", True),  # its registration is gone
        ("pass", "report(rows[1:])", "pass", True),  # whoever is in it already
        ("pass", "pass", "hooks.append(vars(args))", True),
        ("pass", "pass", "hooks.append(report)", False),
        ("pass", "pass", "report([])", False),
        ("on_end = lambda: report([])", "pass", "hooks.append(on_end)", False),  # a name that is read before it is bound
        ("pass", "pass", "hooks.append(locals()['report'])", False),
        ("pass", "pass", "hooks.append(vars()['report'])", False),
        ("global report", "pass", "pass", False),  # a name of the file
        ("@hooks.append", "pass", "pass", False),
    ],
)
def test_a_function_inside_of_another_that_nothing_names(before: str, inside: str, after: str, gone: bool) -> None:
    text = NESTED.format(before=before, inside=inside, after=after)
    if before.startswith("@"):
        text = text.replace(f"    {before}\n\n    def", f"    {before}\n    def")
    assert nobody({"lib.py": text}) is gone
    if gone:  # whether the folder has programs or not
        assert nobody({"lib.py": text.replace("__main__", "__mine__")})


def test_a_function_inside_of_one_that_nothing_names() -> None:
    text = NESTED.format(before="pass", inside="def tell():\n            print(1)\n        tell()", after="pass")
    assert nobody({"lib.py": text}, name="tell")
    assert not nobody({"lib.py": text.replace("    pass\n\nif", "    report([])\n\nif")}, name="tell")
