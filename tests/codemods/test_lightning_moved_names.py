"""DDP803, and that its table says what the installed Lightning has."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from codemods.data.lightning_names import GONE, GONE_CALLBACK_HOOKS, GONE_HOOKS, MOVED, OF_EVERY_STRATEGY, Moved
from codemods.files.left_alone import Left, hearing
from codemods.upgrades.lightning_moved_names import LightningMovedNames
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

PINNED = {"requirements.txt": "pytorch-lightning>=2.0\n"}
OLD = {"requirements.txt": "pytorch-lightning==1.4.2\n"}
OPEN = {"requirements.txt": "pytorch-lightning>=1.4\n"}


def test_example_of_the_page() -> None:
    sections = LightningMovedNames.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(LightningMovedNames, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from pytorch_lightning.utilities.distributed import rank_zero_only, rank_zero_info",
            "from pytorch_lightning.utilities import rank_zero_only, rank_zero_info",
        ),
        (
            "from pytorch_lightning.utilities.distributed import rank_zero_only as main_only  # once",
            "from pytorch_lightning.utilities import rank_zero_only as main_only  # once",
        ),
        ("from pytorch_lightning.core.lightning import LightningModule", "from pytorch_lightning import LightningModule"),
        ("from pytorch_lightning.callbacks.base import Callback", "from pytorch_lightning.callbacks import Callback"),
        ("from pytorch_lightning.utilities.seed import seed_everything", "from pytorch_lightning import seed_everything"),
        (
            "from lightning.pytorch.utilities.distributed import rank_zero_only",
            "from lightning.pytorch.utilities import rank_zero_only",
        ),
        (
            "import pytorch_lightning as pl\nlog = pl.utilities.distributed.rank_zero_info",
            "import pytorch_lightning as pl\nlog = pl.utilities.rank_zero_info",
        ),
        (
            "import pytorch_lightning as pl\nclass Net(pl.core.lightning.LightningModule): pass",
            "import pytorch_lightning as pl\nclass Net(pl.LightningModule): pass",
        ),
    ],
)
def test_places_of_every_version_need_no_pin(before: str, after: str) -> None:
    check_transformed(LightningMovedNames, f"{before}\n", f"{after}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from pytorch_lightning.profiler import AdvancedProfiler, SimpleProfiler",
            "from pytorch_lightning.profilers import AdvancedProfiler, SimpleProfiler",
        ),
        ("from pytorch_lightning.utilities.cli import LightningCLI", "from pytorch_lightning.cli import LightningCLI"),
        (
            "from pytorch_lightning.loggers.base import rank_zero_experiment",
            "from pytorch_lightning.loggers.logger import rank_zero_experiment",
        ),
        (
            "from pytorch_lightning.utilities.distributed import rank_zero_debug, rank_zero_only",
            "from pytorch_lightning.utilities.rank_zero import rank_zero_debug\n"
            "from pytorch_lightning.utilities import rank_zero_only",
        ),
        (
            "from pytorch_lightning.loggers import LightningLoggerBase, WandbLogger\n\n\n"
            "class Mine(LightningLoggerBase):\n    pass",
            "from pytorch_lightning.loggers import WandbLogger\nfrom pytorch_lightning.loggers import Logger\n\n\n"
            "class Mine(Logger):\n    pass",
        ),
        (
            "from pytorch_lightning.loggers.base import LightningLoggerBase\n\n\ndef add(log: LightningLoggerBase): ...",
            "from pytorch_lightning.loggers import Logger\n\n\ndef add(log: Logger): ...",
        ),
        (
            "from pytorch_lightning import Callback\n\n\nclass C(Callback):\n"
            "    def on_fit_end(self, trainer, pl_module):\n        trainer.training_type_plugin.barrier()",
            "from pytorch_lightning import Callback\n\n\nclass C(Callback):\n"
            "    def on_fit_end(self, trainer, pl_module):\n        trainer.strategy.barrier()",
        ),
        (
            "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n"
            "    def f(self, x):\n        return self.trainer.accelerator.training_type_plugin.broadcast(x)",
            "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n"
            "    def f(self, x):\n        return self.trainer.strategy.broadcast(x)",
        ),
        (
            "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n"
            "    def f(self):\n        self.trainer.accelerator.barrier()",
            "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n"
            "    def f(self):\n        self.trainer.strategy.barrier()",
        ),
    ],
)
def test_what_moved_later_asks_for_a_pin(before: str, after: str) -> None:
    check_transformed(LightningMovedNames, f"{before}\n", f"{after}\n", files=PINNED)
    (finding,) = check_transformed(LightningMovedNames, f"{before}\n", f"{after}\n", files=OPEN, unsafe=True)
    assert "requirements.txt:1" in finding.reason and "pip takes 2.x today" in finding.reason
    (finding,) = check_transformed(LightningMovedNames, f"{before}\n", f"{after}\n", unsafe=True)
    assert "no file pins Lightning" in finding.reason
    check_nothing(LightningMovedNames, f"{before}\n", files=OLD)


def test_a_version_that_still_has_the_old_place() -> None:
    source = "from pytorch_lightning.utilities.distributed import rank_zero_only\n"
    for spec in ("==1.9.5", "<2", "~=1.5", "==1.*"):
        check_nothing(LightningMovedNames, source, files={"requirements.txt": f"pytorch-lightning{spec}\n"})
    strategy = "import pytorch_lightning\n\n\ndef f(trainer):\n    trainer.training_type_plugin.barrier()\n"
    check_nothing(LightningMovedNames, strategy, files={"requirements.txt": "pytorch-lightning<1.8\n"})
    check_transformed(
        LightningMovedNames, strategy, strategy.replace("training_type_plugin", "strategy"),
        files={"requirements.txt": "pytorch-lightning==1.8.6\n"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "instead"),
    [
        ("from pytorch_lightning.metrics import Accuracy", "torchmetrics"),
        ("from pytorch_lightning.metrics.functional import accuracy", "torchmetrics"),
        ("import pytorch_lightning as pl\nacc = pl.metrics.Accuracy()", "torchmetrics"),
        ("from pytorch_lightning.lite import LightningLite", "Fabric"),
        ("from pytorch_lightning.strategies import DDPSpawnStrategy", 'start_method="spawn"'),
        ("from pytorch_lightning.utilities.apply_func import apply_to_collection", "lightning_utilities"),
        ("from pytorch_lightning.utilities.types import EPOCH_OUTPUT, STEP_OUTPUT", "DDP804"),
        ("from pytorch_lightning.utilities.distributed import gather_all_tensors", "torchmetrics"),
        ("import pytorch_lightning.utilities.distributed as d", "bound here"),
        ("from pytorch_lightning.utilities import distributed", "torch.distributed"),
        (
            "import pytorch_lightning\n\n\ndef f(trainer, kinds):\n    return isinstance(trainer.training_type_plugin, kinds)",
            "write trainer.strategy",
        ),
        ("import pytorch_lightning\n\n\ndef f(trainer):\n    trainer.training_type_plugin.start_training(0)", "start_training"),
    ],
)
def test_what_is_gone_is_told(source: str, instead: str) -> None:
    check_told(LightningMovedNames, f"{source}\n", reason=instead, files=PINNED)
    check_nothing(LightningMovedNames, f"{source}\n", files=OLD)


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from pytorch_lightning.utilities.distributed import rank_zero_only\n"
        "except ImportError:\n    from pytorch_lightning.utilities.rank_zero import rank_zero_only",
        "try:\n    from pytorch_lightning.utilities.rank_zero import rank_zero_only\n"
        "except ImportError:\n    from pytorch_lightning.utilities.distributed import rank_zero_only",
        "import pytorch_lightning as pl\nif pl.__version__ < '1.8':\n"
        "    from pytorch_lightning.utilities.distributed import rank_zero_only",
        "from pytorch_lightning.utilities import rank_zero_only",
        "from mylightning.utilities.distributed import rank_zero_only",
        "from .utilities.distributed import rank_zero_only  # as that of lightning",
        "from pytorch_lightning.callbacks.progress import TQDMProgressBar",
        "import pytorch_lightning\n\n\ndef f(net):\n    net.training_type_plugin.barrier()",
        "import pytorch_lightning\n\n\ndef f(trainer):\n    if hasattr(trainer, 'strategy'):\n"
        "        trainer.strategy.barrier()\n    else:\n        trainer.training_type_plugin.barrier()",
        "from accelerate import Accelerator  # no lightning\n\n\ndef f(accelerator):\n    accelerator.barrier()",
        "from pytorch_lightning import Trainer\n\n\ndef f(fabric):\n    fabric.accelerator.barrier()",
    ],
)
def test_nothing_to_say(source: str) -> None:
    check_nothing(LightningMovedNames, f"{source}\n", files=PINNED)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("\nLogger = object\n", "another meaning"),
        ("\n\nclass Logger:\n    pass\n", "another meaning"),
        ("\n\ndef Logger(folder): ...\n", "another meaning"),
        ("\n__all__ = ['LightningLoggerBase']\n", "written as a text"),
        ("\n\ndef f(LightningLoggerBase): ...\n", "binds LightningLoggerBase anew"),
    ],
)
def test_a_new_name_that_cannot_be_taken(more: str, reason: str) -> None:
    source = "from pytorch_lightning.loggers import LightningLoggerBase\n\n\nclass Mine(LightningLoggerBase):\n    pass\n" + more
    check_told(LightningMovedNames, source, reason=reason, files=PINNED)


def test_a_name_that_another_file_takes_from_here() -> None:
    source = "from pytorch_lightning.loggers import LightningLoggerBase\n"
    files = {**PINNED, "use.py": "from module import LightningLoggerBase\n"}
    check_told(LightningMovedNames, source, reason="use.py imports LightningLoggerBase from here", files=files)


@pytest.mark.parametrize("row", MOVED.values(), ids=lambda m: f"{m.old}.{m.name}")
def test_the_installed_lightning_has_the_new_place_and_not_the_old(row: Moved) -> None:
    pl = pytest.importorskip("pytorch_lightning")
    assert row.since <= row.gone
    new = importlib.import_module(".".join(p for p in (pl.__name__, row.new) if p))
    assert hasattr(new, row.new_name)
    with pytest.raises((ImportError, AttributeError)):
        getattr(importlib.import_module(f"{pl.__name__}.{row.old}"), row.name)


def test_what_is_gone_is_not_in_the_installed_lightning() -> None:
    pl = pytest.importorskip("pytorch_lightning")
    there = []
    for row in GONE:
        try:
            found = importlib.import_module(f"{pl.__name__}.{row.module}")
            there += [row] if not row.name or hasattr(found, row.name) else []
        except ImportError:
            pass
    assert not there


def test_every_strategy_has_what_is_renamed_without_asking() -> None:
    strategies = pytest.importorskip("pytorch_lightning.strategies")
    assert not [name for name in OF_EVERY_STRATEGY if not hasattr(strategies.DDPStrategy, name)]


# Hooks that no Trainer calls any more


def hooked(name: str, base: str = "Callback", more: str = "") -> str:
    inside = f"    def {name}(self, *given):\n        self.count = 0\n"
    return f"from pytorch_lightning import Callback, LightningDataModule, LightningModule\n\n\nclass Own({base}):\n{inside}{more}"


@pytest.mark.parametrize("name", [*GONE_HOOKS, *GONE_CALLBACK_HOOKS])
@pytest.mark.parametrize("files", [PINNED, OPEN, {}])
def test_hooks_of_callbacks_that_are_gone(name: str, files: dict[str, str]) -> None:
    found = check_told(LightningMovedNames, hooked(name), reason="write", files=files)
    assert f"Own.{name} is a hook no more" in found.message


@pytest.mark.parametrize("name", GONE_HOOKS)
def test_hooks_of_modules_that_are_gone(name: str) -> None:
    check_told(LightningMovedNames, hooked(name, "LightningModule"), reason="write", files=PINNED)


@pytest.mark.parametrize(
    ("source", "files"),
    [
        (hooked("on_epoch_start"), OLD),
        (hooked("on_epoch_start", more="    def on_train_epoch_start(self, *given):\n        self.on_epoch_start()\n"), PINNED),
        (hooked("on_epoch_start", more="\n\ngetattr(Own(), 'on_epoch_start')()\n"), PINNED),
        (hooked("on_batch_start", "LightningModule"), PINNED),
        (hooked("on_epoch_end", "LightningDataModule"), PINNED),
        (hooked("on_epoch_end", "Unseen").replace("Callback,", "Unseen,"), PINNED),
        (hooked("on_train_epoch_start"), PINNED),
        (hooked("on_epoch_end").replace("pytorch_lightning", "transformers"), PINNED),
    ],
)
def test_methods_that_are_no_such_hooks(source: str, files: dict[str, str]) -> None:
    assert not [f for f in findings_of(LightningMovedNames, source, files=files) if "hook no more" in f.message]


def test_the_installed_lightning_has_none_of_them() -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    assert not [n for n in (*GONE_HOOKS, *GONE_CALLBACK_HOOKS) if hasattr(lightning.Callback, n)]
    assert not [n for n in GONE_HOOKS if hasattr(lightning.LightningModule, n)]


# A vendored file that nobody uses


VENDORED = "from pytorch_lightning import Callback\n\n\nclass C(Callback):\n    def on_epoch_end(self, trainer, module): ...\n"
TORCH_ALONE = {"env.yml": "channels:\n  - pytorch\ndependencies:\n  - pytorch=1.13.1\n"}


@pytest.mark.parametrize("source", [VENDORED, "from pytorch_lightning.utilities.seed import seed_everything\n"])
def test_a_file_that_nobody_imports_where_no_lightning_is_installed(source: str) -> None:
    heard: list[Left] = []
    with hearing(heard.append):
        check_nothing(LightningMovedNames, source, files=TORCH_ALONE, path="parts/tools/calls.py")
    assert any("no program imports this file" in h.why for h in heard)


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "numpy==1.24\n"},
        {"requirements.txt": "torch==1.13.1\npytorch-lightning\n"},
        {**TORCH_ALONE, "README.md": "pip install pytorch-lightning==2.0\n"},
        {**TORCH_ALONE, "train.py": "from parts.tools.calls import C\n\nC()\n"},
        {**TORCH_ALONE, "run.yaml": "_target_: parts.tools.calls.C\n"},
    ],
)
def test_a_file_that_is_used_or_may_run_with_lightning(files: dict[str, str]) -> None:
    assert findings_of(LightningMovedNames, VENDORED, files, path="parts/tools/calls.py")


def test_what_the_instructions_were_tested_with() -> None:
    source = "from pytorch_lightning.profiler import SimpleProfiler\n\nprint(SimpleProfiler)\n"
    told = "- Lightning (tested with pytorch_lightning=={} and torchmetrics==0.5)\n"
    check_nothing(LightningMovedNames, source, files={"README.md": told.format("1.3.8")})
    assert findings_of(LightningMovedNames, source, files={"README.md": told.format("2.0.1")})


MOVED_IMPORT = "from pytorch_lightning.callbacks.base import Callback\n\n\nclass Averages(Callback):\n    pass\n"
RUN = (
    "import pytorch_lightning as pl\n\n\ndef main():\n    {line}\n    return Averages()\n\n\n"
    "if __name__ == '__main__':\n    main()\n"
)
BRING = "from parts.averages import Averages"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"if pl.__version__ <= '1.5':\n        {BRING}\n    else:\n        from parts.other import Averages", False),
        (f"old = version.parse(pl.__version__) < OLDEST\n    if old:\n        {BRING}", False),
        (f"if _LIGHTNING_LESS_1_8:\n        {BRING}", False),
        (f"if use_averages:\n        {BRING}", True),
        (f"if model_version == 'v2':\n        {BRING}", True),
        (BRING, True),
    ],
)
def test_a_file_that_is_imported_for_some_versions(line: str, *, told: bool) -> None:
    files = {**PINNED, "run.py": RUN.replace("{line}", line), "parts/other.py": "Averages = None\n"}
    heard: list[Left] = []
    with hearing(heard.append):
        assert bool(findings_of(LightningMovedNames, MOVED_IMPORT, files, path="parts/averages.py")) is told
    assert told or any("imported under a test of a version" in h.why for h in heard)


def test_a_file_that_another_imports_in_each_version() -> None:
    gated = RUN.replace("{line}", f"if pl.__version__ < '1.8':\n        {BRING}")
    files = {**PINNED, "run.py": gated, "more.py": f"{BRING}\n\nif __name__ == '__main__':\n    Averages()\n"}
    assert findings_of(LightningMovedNames, MOVED_IMPORT, files, path="parts/averages.py")


@pytest.mark.parametrize(("line", "told"), [("if pl.__version__ < '1.8':\n        attach()", False), ("attach()", True)])
def test_a_function_that_is_called_for_some_versions(line: str, *, told: bool) -> None:
    source = "def attach():\n    from pytorch_lightning.callbacks.base import Callback\n    return Callback\n"
    run = f"import pytorch_lightning as pl\nfrom module import attach\n\nif __name__ == '__main__':\n    {line}\n"
    assert bool(findings_of(LightningMovedNames, source, {**PINNED, "run.py": run})) is told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, False),
        ({"setup.py": "from setuptools import setup\nsetup(name='parts')\n"}, True),
        ({"conf.yaml": "callback:\n  _target_: parts.averages.Averages\n"}, True),
        ({"use.py": f"{BRING}\n\nif __name__ == '__main__':\n    Averages()\n"}, True),
    ],
)
def test_a_file_that_no_program_imports(more: dict[str, str], *, told: bool) -> None:
    program = "import pytorch_lightning as pl\n\nif __name__ == '__main__':\n    pl.Trainer(devices=2).fit(make())\n"
    files = {**PINNED, "train.py": program, **more}
    assert bool(findings_of(LightningMovedNames, MOVED_IMPORT, files, path="parts/averages.py")) is told


SEED = "from pytorch_lightning.utilities.seed import seed_everything\n"
PACKAGE = {**PINNED, "pyproject.toml": "[project]\nname = 'own'\n", "own/__init__.py": ""}


@pytest.mark.parametrize(
    ("files", "severity"),
    [
        ({"run.py": "from own.seeds import seed_everything\nseed_everything(1)\n"}, "crash"),
        ({"run.py": "import own.seeds\nown.seeds.seed_everything(1)\n"}, "crash"),
        ({"run.py": "print('nothing of it')\n"}, "risk"),
    ],
)
def test_an_import_that_no_program_comes_to_ends_no_run_of_today(files: dict[str, str], severity: str) -> None:
    (found,) = findings_of(LightningMovedNames, SEED, {**PACKAGE, **files}, path="own/seeds.py")
    assert found.severity == severity


@pytest.mark.parametrize(
    ("sources", "subject"),
    [
        ((SEED,), "Import seed_everything from pytorch_lightning"),
        ((SEED, SEED), "Import seed_everything from pytorch_lightning"),
        ((SEED, "from pytorch_lightning.callbacks.base import Callback\n"), "Import the names of Lightning that have moved"),
    ],
)
def test_the_subject_names_the_import(sources: tuple[str, ...], subject: str) -> None:
    found = [f for source in sources for f in findings_of(LightningMovedNames, source, PINNED)]
    assert LightningMovedNames.commit_subject(found) == subject


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (SEED, "pytorch_lightning.seed_everything is there in every Lightning since 1.2"),
        ("from pytorch_lightning.loggers.base import LightningLoggerBase\n", "and no older one may run here"),
    ],
)
def test_why_the_new_place_is_there(source: str, shown: str) -> None:
    (found,) = findings_of(LightningMovedNames, source, PINNED)
    assert [e.text for e in found.evidence if e.kind == "safe" and shown in e.text]


def test_a_place_that_an_older_version_lacks_is_no_reason() -> None:
    (found,) = findings_of(LightningMovedNames, "from pytorch_lightning.loggers.base import LightningLoggerBase\n", OPEN)
    assert not [e for e in found.evidence if e.kind == "safe"]
