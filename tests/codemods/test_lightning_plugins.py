"""DDP802, and that its table says what the installed Lightning has."""

from __future__ import annotations

import pytest

from codemods.data.lightning_arguments import PLUGIN_CLASSES, TOLD_PLUGIN_CLASSES
from codemods.upgrades.lightning_plugins import LightningPlugins
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

PINNED = {"requirements.txt": "pytorch-lightning>=2.0\n"}
OLD = {"requirements.txt": "pytorch-lightning==1.4.2\n"}
HEAD = "import pytorch_lightning as pl\n"
BOTH = HEAD + "from pytorch_lightning.plugins import DDPPlugin\n"
NEW = HEAD + "from pytorch_lightning.strategies import DDPStrategy\n"


def test_example_of_the_page() -> None:
    sections = LightningPlugins.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(LightningPlugins, before, after, files=PINNED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            HEAD + 'pl.Trainer(plugins="ddp_find_unused_parameters_false")',
            HEAD + 'pl.Trainer(strategy="ddp_find_unused_parameters_false")',
        ),
        (BOTH + "pl.Trainer(plugins=DDPPlugin())", NEW + "pl.Trainer(strategy=DDPStrategy())"),
        (BOTH + "plug = DDPPlugin()\npl.Trainer(plugins=plug)", NEW + "plug = DDPStrategy()\npl.Trainer(strategy=plug)"),
        (BOTH + "pl.Trainer(plugins=[DDPPlugin()], max_epochs=1)", NEW + "pl.Trainer(strategy=DDPStrategy(), max_epochs=1)"),
        (
            HEAD + "from pytorch_lightning.plugins import DDPPlugin, SLURMEnvironment\n"
            "pl.Trainer(plugins=[SLURMEnvironment(), DDPPlugin()])",
            HEAD + "from pytorch_lightning.plugins import SLURMEnvironment\n"
            "from pytorch_lightning.strategies import DDPStrategy\n"
            "pl.Trainer(plugins=[SLURMEnvironment()], strategy=DDPStrategy())",
        ),
        (
            HEAD + "pl.Trainer(plugins=pl.plugins.DDPPlugin(find_unused_parameters=False))",
            HEAD + "pl.Trainer(strategy=pl.strategies.DDPStrategy(find_unused_parameters=False))",
        ),
        (
            HEAD + "from pytorch_lightning.plugins.training_type import DDPPlugin\nkind = DDPPlugin",
            HEAD + "from pytorch_lightning.strategies import DDPStrategy\nkind = DDPStrategy",
        ),
        (
            HEAD + "from pytorch_lightning.plugins.training_type import DeepSpeedPlugin, DDPPlugin\n"
            "plug = DeepSpeedPlugin(config=path) if path else DDPPlugin()",
            HEAD + "from pytorch_lightning.strategies import DeepSpeedStrategy, DDPStrategy\n"
            "plug = DeepSpeedStrategy(config=path) if path else DDPStrategy()",
        ),
        (
            HEAD + "from pytorch_lightning.plugins import DDPPlugin as Plug\npl.Trainer(plugins=Plug())",
            HEAD + "from pytorch_lightning.strategies import DDPStrategy as Plug\npl.Trainer(strategy=Plug())",
        ),
    ],
)
def test_strategies(before: str, after: str) -> None:
    check_transformed(LightningPlugins, before + "\n", after + "\n", files=PINNED)
    check_transformed(LightningPlugins, before + "\n", after + "\n", unsafe=True)
    check_nothing(LightningPlugins, before + "\n", files=OLD)


def test_the_versions_between() -> None:
    files = {"requirements.txt": "pytorch-lightning==1.7.7\n"}  # has both class names, and no strategy in plugins=
    check_transformed(
        LightningPlugins, BOTH + "pl.Trainer(plugins=DDPPlugin())\n", BOTH + "pl.Trainer(strategy=DDPPlugin())\n", files=files
    )
    before = BOTH + "pl.Trainer(plugins=DDPPlugin())\n"
    check_nothing(LightningPlugins, before, files={"requirements.txt": "pytorch-lightning<1.7\n"})


def test_a_plug_in_that_is_none_at_times() -> None:
    use = "plug = None\nif many:\n    plug = DDPPlugin()\npl.Trainer(plugins=plug)\n"
    after = 'plug = "auto"\nif many:\n    plug = DDPStrategy()\npl.Trainer(strategy=plug)\n'
    check_transformed(LightningPlugins, BOTH + use, NEW + after, files=PINNED)
    asks = BOTH + use + "print(plug is None)\n"
    told = [f for f in findings_of(LightningPlugins, asks, PINNED) if not f.fix]
    assert ["plug is read at line 7 as well" in f.reason for f in told] == [True]


def test_a_strategy_beside_it() -> None:
    before, after = BOTH + 'pl.Trainer(strategy="ddp", plugins=DDPPlugin())\n', NEW + "pl.Trainer(strategy=DDPStrategy())\n"
    found = findings_of(LightningPlugins, before, PINNED)
    assert "the plug-in counts" in next(f for f in found if f.span.line == 3).reason
    files = {"requirements.txt": "pytorch-lightning==1.7.7\n"}
    kept = after.replace(NEW, BOTH).replace("DDPStrategy", "DDPPlugin")
    check_transformed(LightningPlugins, before, kept, files=files, unsafe=True)


def test_the_flag_that_is_off_by_default_now_is_told() -> None:
    (_, at_call) = sorted(findings_of(LightningPlugins, BOTH + "pl.Trainer(plugins=DDPPlugin())\n", PINNED), key=lambda f: f.span)
    assert any("find_unused_parameters=False by default" in e.text for e in at_call.evidence)
    says = BOTH + "pl.Trainer(plugins=DDPPlugin(find_unused_parameters=True))\n"
    assert not any("by default" in e.text for f in findings_of(LightningPlugins, says, PINNED) for e in f.evidence)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (BOTH + "class Mine(DDPPlugin): ...", "Mine derives from it"),
        (BOTH + "plug = DDPPlugin(num_nodes=2)", "num_nodes= is an argument of the Trainer"),
        (HEAD + "plug = pl.plugins.DDPPlugin(sync_batchnorm=True)", "sync_batchnorm="),
        (HEAD + "from pytorch_lightning.plugins import DDPSpawnPlugin", 'start_method="spawn"'),
        (HEAD + "from pytorch_lightning.plugins import DDPShardedPlugin", "FSDPStrategy"),
        (HEAD + "from pytorch_lightning.plugins import DeepSpeedPlugin\nplug = DeepSpeedPlugin(num_nodes=2)", "num_nodes="),
        (HEAD + "from pytorch_lightning.plugins import DeepSpeedPlugin\nplug = DeepSpeedPlugin(True)", "take another one first"),
        (HEAD + "kind = pl.plugins.DDPSpawnPlugin", 'start_method="spawn"'),
        (HEAD + 'pl.Trainer(plugins=["ddp", "ddp_spawn"])', "which of the two"),
        (BOTH + "DDPStrategy = None", "another meaning"),
    ],
)
def test_refusals(source: str, reason: str) -> None:
    check_told(LightningPlugins, source + "\n", reason=reason, files=PINNED)


@pytest.mark.parametrize(
    ("use", "line"),
    [
        ('options = {}\noptions["plugins"] = DDPPlugin()\npl.Trainer(**options)', 4),
        ('pl.Trainer(**{"max_epochs": 1, "plugins": [DDPPlugin()]})', 3),
        ("options = dict(plugins=DDPPlugin() if many else None)\npl.Trainer(**options)", 3),
        ("pl.Trainer(plugins=DDPPlugin() if many else None)", 3),
        ("extras = []\nextras.append(DDPPlugin())\npl.Trainer(plugins=extras)", 5),
        ("def run(args):\n    args.plugins = [DDPPlugin()]\n    return pl.Trainer.from_argparse_args(args)", 4),
        ('def run(kept):\n    plug = DDPPlugin()\n    kept.setdefault("plugins", plug)\n    return pl.Trainer(**kept)', 5),
    ],
)
def test_a_strategy_that_stays_a_plug_in_of_the_trainer(use: str, line: int) -> None:
    check_told(LightningPlugins, f"{BOTH}{use}\n", reason=f"line {line} hands it over as `plugins`", files=PINNED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('options["strategy"] = DDPPlugin()', 'options["strategy"] = DDPStrategy()'),
        ("kept = []\nkept.append(DDPPlugin())\nshow(kept)", "kept = []\nkept.append(DDPStrategy())\nshow(kept)"),
        ('print(DDPPlugin(), "plugins")', 'print(DDPStrategy(), "plugins")'),
    ],
)
def test_a_strategy_that_is_handed_over_as_one(before: str, after: str) -> None:
    check_transformed(LightningPlugins, f"{BOTH}{before}\n", f"{NEW}{after}\n", files=PINNED)


PARSED = BOTH + "pl.Trainer.from_argparse_args(args, plugins=DDPPlugin())\n"


@pytest.mark.parametrize(
    "option", ["--accelerator ddp", "--accelerator=ddp_spawn", "--strategy ddp_sharded", "--distributed_backend ddp"]
)
def test_a_command_that_gives_a_strategy_too(option: str) -> None:
    files = {"requirements.txt": "torch\n", "jobs/run.sh": f"cd ..\npython main.py --gpus 4 {option} --lr 1\n", "other.py": ""}
    source = PARSED + "\nif __name__ == '__main__':\n    main()\n"
    found = findings_of(LightningPlugins, source, files, path="main.py")
    assert len(found) == 2 and not any(f.edits for f in found)  # the call, and the import whose class would stay a plug-in
    assert all(f"jobs/run.sh:2 gives `{option}`" in f.reason for f in found)


@pytest.mark.parametrize(
    "command",
    ["main.py --gpus 4 --accelerator gpu", "main.py --strategy auto", "other.py --accelerator ddp", "main.py --accelerators ddp"],
)
def test_a_command_that_gives_none(command: str) -> None:
    files = {"requirements.txt": "torch\n", "jobs/run.sh": f"cd ..\npython {command}\n", "other.py": ""}
    found = [f for f in findings_of(LightningPlugins, PARSED, files, path="main.py") if "takes no strategy" in f.message]
    assert found[0].edits
    plain = PARSED.replace("Trainer.from_argparse_args(args, ", "Trainer(")  # takes nothing from the command
    job = {**files, "jobs/run.sh": "cd ..\npython main.py --accelerator ddp\n"}
    assert all(f.edits for f in findings_of(LightningPlugins, plain, job, path="main.py"))


def test_requirement_files_that_disagree() -> None:
    files = {"requirements.txt": "pytorch-lightning==1.5.9\n", "environment.yml": "dependencies:\n  - pytorch-lightning=2.1\n"}
    check_told(LightningPlugins, BOTH, reason="the requirement files allow versions", files=files)


@pytest.mark.parametrize(
    "source",
    [
        HEAD + "try:\n    from pytorch_lightning.strategies import DDPStrategy\nexcept ImportError:\n"
        "    from pytorch_lightning.plugins import DDPPlugin as DDPStrategy",
        HEAD + "if pl.__version__ < '1.6':\n    trainer = pl.Trainer(plugins='ddp')",
        HEAD + "from pytorch_lightning.plugins import SLURMEnvironment\npl.Trainer(plugins=[SLURMEnvironment()])",
        HEAD + "pl.Trainer(plugins=plugins)",
        HEAD + "from mine.plugins import DDPPlugin\nplug = DDPPlugin()",
        HEAD + "from .plugins import DDPPlugin  # as that of pytorch_lightning",
    ],
)
def test_nothing_to_say(source: str) -> None:
    check_nothing(LightningPlugins, source + "\n", files=PINNED)


def test_the_installed_lightning_has_the_new_names_and_not_the_old() -> None:
    plugins = pytest.importorskip("pytorch_lightning.plugins")
    strategies = pytest.importorskip("pytorch_lightning.strategies")
    assert all(hasattr(strategies, name) for name in PLUGIN_CLASSES.values())
    assert not [name for name in (*PLUGIN_CLASSES, *TOLD_PLUGIN_CLASSES) if hasattr(plugins, name)]
