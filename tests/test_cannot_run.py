from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.cannot_run import cannot_be_imported, is_behind_an_end
from codemods.analysis.ranks.first_device import is_tied_to_first_device
from codemods.analysis.ranks.one_device import has_trainers_of_one_device
from codemods.analysis.ranks.shown_runs import is_never_reached
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of


def project_of(files: dict[str, str]) -> Project:
    return Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})


@pytest.mark.parametrize(
    ("body", "dead"),
    [
        ("return 1\nwork()", True),
        ("raise ValueError\nwork()", True),
        ("if a:\n    return 1\nelse:\n    raise ValueError\nwork()", True),
        ("if False:\n    work()", True),
        ("assert False, a\nwork()", True),
        ("assert a\nwork()", False),
        ("if a:\n    return 1\nwork()", False),
        ("for i in a:\n    if i:\n        break\nwork()", False),
        ("try:\n    return 1\nexcept ValueError:\n    pass\nwork()", False),
    ],
)
def test_behind_an_end(body: str, dead: bool) -> None:
    project = project_of({"a.py": "def f(a):\n" + textwrap.indent(body, "    ")})
    module = project.module("a.py")
    assert module is not None
    (call,) = module.calls_named("work")
    assert is_behind_an_end(module, call) is dead


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("from pkg.models import Net", True),  # there is no such file
        ("from .models import Net", True),
        ("from pkg.tools import made_up", True),
        ("from .tools import made_up", True),
        ("from pkg.tools import helper", False),
        ("from pkg import Missing", True),  # the package hands out no such name
        ("from pkg import tools", False),
        ("from pkg import given", False),
        ("from pkg.tools import Late", False),  # bound under a test
        ("from pkg._ext import kernel", False),  # built on the spot
        ("from datasets.load import fetch", False),  # an installed package may bear the name of a folder elsewhere
        ("from other.models import Net", False),
        ("import pkg.tools", False),
        ("try:\n    from .models import Net\nexcept ImportError:\n    Net = None", False),
    ],
)
def test_imports_that_lead_nowhere(line: str, gone: bool) -> None:
    tools = "def helper(): ...\nif 1:\n    class Late: ...\n"
    package = {"pkg/__init__.py": "from .tools import helper as given\n", "pkg/tools.py": tools, "pkg/data/datasets/a.py": ""}
    project = project_of({**package, "pkg/train.py": line})
    module = project.module("pkg/train.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone


@pytest.mark.parametrize(
    ("lines", "gone"),
    [
        ("from parts import tools\nfrom parts.tools import helper\nfrom parts.nets import Net", True),
        ("from parts.nets import Net", False),  # nothing shows that this is the folder, and no installed package
    ],
)
def test_a_part_of_a_folder_without_init(lines: str, gone: bool) -> None:
    project = project_of({"parts/tools.py": "def helper(): ...\n", "train.py": lines})
    module = project.module("train.py")
    assert module is not None and cannot_be_imported(project, module) is gone


SCRIPT = """\
import torch.distributed as dist
{}


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("the model is built")
    train(rank)


if __name__ == "__main__":
    main()
"""


def test_a_script_that_does_not_start_prints_nothing() -> None:
    files = {"pkg/tools.py": "def helper(): ...\n", "pkg/__init__.py": ""}
    assert findings_of(UnguardedPrint, SCRIPT.format("from pkg.tools import helper"), files=files, path="train.py")
    check_nothing(UnguardedPrint, SCRIPT.format("from pkg.tools import old_helper"), files=files, path="train.py")


LOOP = """\
from accelerate import Accelerator


def run(config, batch):
    accelerator = Accelerator(mixed_precision="fp16")
    return batch.to({})
"""


@pytest.mark.parametrize(
    ("where", "setting", "tied"),
    [
        ("config.device", 'device: str = "cuda:0"', True),
        ("config.device", 'device: str = "cuda"', False),
        ("accelerator.device", 'device: str = "cuda:0"', False),
        ("batch.device", 'device: str = "cuda:0"', False),
    ],
)
def test_a_file_that_is_tied_to_the_first_device(where: str, setting: str, tied: bool) -> None:
    project = project_of({"loop.py": LOOP.format(where), "settings.py": f"class Settings:\n    {setting}\n"})
    module = project.module("loop.py")
    assert module is not None
    assert is_tied_to_first_device(project, module) is tied


TRAINER = "from lightning.pytorch import Trainer\n\nTrainer({}).fit(model)\n"


@pytest.mark.parametrize(
    ("given", "settings", "one"),
    [
        ("devices=1", "", True),
        ("devices=2", "", False),
        ("**options", "trainer:\n  devices: 1\n", True),
        ("**options", "trainer:\n  gpus: [2]\nmodel:\n  num_nodes: 27\n", True),
        ("**options", "trainer:\n  devices: 4\n", False),
        ("**options", "", False),
        ("", "trainer:\n  devices: 1\n", False),
    ],
)
def test_trainers_of_one_device(given: str, settings: str, one: bool) -> None:
    project = project_of({"train.py": TRAINER.format(given), "config.yaml": settings})
    module = project.module("train.py")
    assert module is not None
    assert has_trainers_of_one_device(project, module) is one
    spread = project_of({"train.py": TRAINER.format(given), "config.yaml": settings, "run.sh": "srun python train.py\n"})
    assert not has_trainers_of_one_device(spread, module)


@pytest.mark.parametrize(
    ("path", "one"), [("conf/trainer/spread.yaml", False), ("conf/trainers/spread.yml", False), ("conf/loader/spread.yaml", True)]
)
def test_a_choice_of_trainers_in_a_folder_of_its_own(path: str, one: bool) -> None:
    chosen = {"train.py": TRAINER.format("**options"), "conf/base.yaml": "trainer:\n  devices: 1\n", path: "devices: 2\n"}
    project = project_of(chosen)
    module = project.module("train.py")
    assert module is not None
    assert has_trainers_of_one_device(project, module) is one


HOLDER = """\
from lightning.pytorch import Trainer


class Assessor:
    def __init__(self, model, device):
        self.model, self.count = model, 2
        self.device = device

    def assess(self):
        Trainer({}).fit(self.model)


def run(model):
    GIVEN = {}
    Assessor(model, GIVEN).assess()
"""


@pytest.mark.parametrize(
    ("devices", "given", "one"),
    [("devices=self.device", "[0]", True), ("devices=self.device", "[0, 1]", False), ("devices=self.device", "chosen()", False),
     ("devices=self.count", "[0]", False)],
)  # fmt: skip
def test_a_trainer_of_the_device_that_an_object_is_given(devices: str, given: str, one: bool) -> None:
    project = project_of({"train.py": HOLDER.format(devices, given)})
    module = project.module("train.py")
    assert module is not None
    assert has_trainers_of_one_device(project, module) is one


GROUP = """\
import os
import torch.distributed as dist


def is_master():
    return dist.get_rank() == 0 if dist.is_initialized() else True


{}


def train(model):
    local = int(os.environ["LOCAL_RANK"])
    print("training begins")
    model.backward()


def save(model):
    if {}:
        keep(model)


dist.init_process_group("nccl")
train(1)
save(1)
"""


@pytest.mark.parametrize(
    ("helper", "asked", "test"),
    [
        ("", "is_master()", "is_master()"),
        ("def get_rank():\n    return dist.get_rank() if dist.is_initialized() else 0", "get_rank() == 0", "get_rank() == 0"),
        ("def get_rank():\n    return dist.get_rank()", "get_rank() == 0", 'int(os.environ.get("RANK", 0)) == 0'),
    ],
)
def test_the_files_own_helper_stands_for_the_environment(helper: str, asked: str, test: str) -> None:
    launched = {"run.sh": "torchrun --nproc_per_node=8 module.py\n"}
    (found,) = findings_of(UnguardedPrint, GROUP.format(helper, asked), files=launched)
    assert f"`{test}`" in found.evidence[0].text


def test_the_flag_of_the_class_stands_for_the_environment() -> None:
    source = """\
        import os
        import torch.distributed as dist

        class Run:
            @property
            def is_first(self):
                return int(os.environ["RANK"]) == 0

            def train(self):
                print("training begins")
                self.loss.backward()

            def close(self):
                if self.is_first:
                    keep(self)

        dist.init_process_group("nccl")
        Run().train()
        """
    (found,) = findings_of(UnguardedPrint, textwrap.dedent(source))
    assert "`self.is_first`" in found.evidence[0].text


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        ({}, True),
        ({"pkg/run.py": "from pkg.train import fit"}, False),  # the program needs what is not there, too: it lies elsewhere
        ({"pkg/run.py": "from . import train"}, False),
        ({"pkg/run.py": "import pkg.train as t"}, False),
        ({"pkg/run.py": "def late():\n    from pkg.train import fit"}, True),
        ({"tests/test_train.py": "from pkg.train import fit"}, True),
        ({"other/run.py": "from other.train import fit", "other/train.py": ""}, True),
        ({"run.sh": "torchrun --nproc_per_node=2 pkg/train.py"}, False),
        ({"README.md": "`python -m torch.distributed.launch --nproc_per_node=2 pkg/train.py --lr 1`"}, False),
        ({"run.sh": "python pkg/train.py"}, True),
    ],
)
def test_what_is_not_there_lies_elsewhere(files: dict[str, str], gone: bool) -> None:
    project = project_of({"pkg/__init__.py": "", "pkg/train.py": "from pkg.models import Net\n", **files})
    module = project.module("pkg/train.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone


@pytest.mark.parametrize(
    ("line", "gone"),
    [("from conf.config_mine import Config", False), ("from conf.nets import Net", True), ("from typing import Any", False)],
)
def test_settings_that_each_user_writes_and_the_library(line: str, gone: bool) -> None:
    project = project_of({"conf/__init__.py": "", "typing.py": "", "conf/config_theirs.py": "", "train.py": line})
    module = project.module("train.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone


@pytest.mark.parametrize("how", ["strategy", "distributed_backend"])
def test_devices_that_share_one_process(how: str) -> None:
    project = project_of({"train.py": TRAINER.format(f"gpus=4, {how}='dp'")})
    module = project.module("train.py")
    assert module is not None
    assert has_trainers_of_one_device(project, module)


ROUNDS = """\
for epoch in range(3):
    epoch += 1
    STOP
    work(epoch)
"""


@pytest.mark.parametrize(("stop", "dead"), [("exit()", True), ("continue", True), ("if epoch == 2:\n        break", False)])
def test_what_a_script_does_not_come_to(stop: str, dead: bool) -> None:
    project = project_of({"a.py": ROUNDS.replace("STOP", stop)})
    module = project.module("a.py")
    assert module is not None
    (call,) = module.calls_named("work")
    assert is_never_reached(project, module, module.span(call)) is dead


@pytest.mark.parametrize(
    ("line", "beside", "others", "gone"),
    [
        ("from parts import Old", "import tools.args", {}, True),
        ("from parts import Kept", "import tools.args", {}, False),
        ("from parts import Old", "import json", {}, False),  # an installed package may be meant
        ("from parts import Old", "import tools.gone", {}, False),
        ("from parts import Old", "import tools.args", {"lib/parts.py": "class Old: ...\n"}, False),
        ("from parts import Old", "import tools.args", {"parts/__init__.py": "from outside import *\n"}, False),
        ("from parts import Old", "import tools.args", {"parts/__init__.py": "def __getattr__(name): ...\n"}, False),
        ("try:\n    from parts import Old\nexcept ImportError:\n    Old = None", "import tools.args", {}, False),
        ("from parts import Old", "import tools.args", {"run.sh": "torchrun work/train.py\n"}, False),  # it is launched
    ],
)
def test_a_name_that_others_need_too(line: str, beside: str, others: dict[str, str], gone: bool) -> None:
    """Both files end with ImportError: the part is there, and lacks the name, so that nobody has it elsewhere."""
    files = {"parts/__init__.py": "class Kept: ...\n", "tools/args.py": "", **others}
    files["work/write.py"] = "from .train import load\n"
    project = project_of({**files, "work/train.py": f"{beside}\n{line}\n\ndef load(): ...\n"})
    module = project.module("work/train.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone


MAIN = "if __name__ == '__main__':\n    Rows()\n"


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        ({}, True),
        ({"data/README.md": "fetch them\n"}, False),  # there is such a folder
        ({"README.md": "pip install data\n"}, False),
        ({"README.md": "Make a folder\n\n- data/ for the rows\n"}, False),
        ({".gitignore": "data/\n"}, False),
        ({"requirements.txt": "torch\ndata>=1\n"}, False),
        ({"test.py": f"from data.rows import Rows\n\n{MAIN}"}, False),  # it lies elsewhere: two programs need it
        ({"data2/rows.py": "class Columns: ...\n"}, False),
        ({"main.py": f"from data2.rows import Columns as Rows\n\n{MAIN}"}, False),  # nobody has the name from there
        ({"run.sh": "torchrun example.py\n"}, False),
    ],
)
def test_a_part_that_has_moved(files: dict[str, str], gone: bool) -> None:
    main = {"main.py": f"from data2.rows import Rows\n\n{MAIN}", "data2/rows.py": "class Rows: ...\nclass Columns: ...\n"}
    project = project_of({**main, "example.py": f"from data.rows import Rows\n\n{MAIN}", **files})
    module = project.module("example.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        ({}, True),
        ({"lib2/rows.py": "class Rows: ...\n"}, False),  # which one is meant is open
        ({"rows.py": "class Rows: ...\n"}, False),
        ({"rows/cell.py": ""}, False),
        ({"test.py": f"from rows import Rows\n\n{MAIN}"}, False),  # two programs need it so
        ({"main.py": f"from lib.rows import Columns as Rows\n\n{MAIN}"}, False),
        ({"run.sh": "export PYTHONPATH=lib\n"}, False),
        ({"run.sh": "torchrun example.py\n"}, False),
        ({"lib/setup.py": "setup(py_modules=['rows'])\n"}, False),
        ({"example.py": f"import sys\nsys.path.append('lib')\nfrom rows import Rows\n\n{MAIN}"}, False),
    ],
)
def test_a_part_that_lies_in_a_folder_now(files: dict[str, str], gone: bool) -> None:
    main = {"main.py": f"from lib.rows import Rows\n\n{MAIN}", "lib/rows.py": "class Rows: ...\nclass Columns: ...\n"}
    project = project_of({**main, "example.py": f"from rows import Rows\n\n{MAIN}", **files})
    module = project.module("example.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ({"conf.py": "lr = 1\n"}, True),  # it is there, and lacks the name
        ({"conf.py": "lr = 1\n\ndef read(path):\n    exec(f'from {path} import make')\n"}, True),
        ({"conf.py": "lr = 1\nexec(open('own').read())\n"}, False),
        ({"conf.py": "lr = 1\n\ndef read(path):\n    exec(open(path).read(), globals())\n"}, False),
        ({"conf.py": "from own import *\n"}, False),
        ({"conf.py": "table = {}\n"}, False),
    ],
)
def test_settings_that_are_there_without_the_name(settings: dict[str, str], gone: bool) -> None:
    files = {**settings, "parts/net.py": "class Net: ...\n", "train.py": "from conf import table\nfrom parts.net import Net\n"}
    renamed = {path.replace("conf.py", "config.py"): text.replace("from conf ", "from config ") for path, text in files.items()}
    project = project_of(renamed)
    module = project.module("train.py")
    assert module is not None
    assert cannot_be_imported(project, module) is gone
