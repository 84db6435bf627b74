"""DDP801, and that its table says what the installed Lightning has."""

from __future__ import annotations

import inspect

import pytest

from codemods.api.findings import Applicability
from codemods.data.lightning_arguments import DEVICE_ARGUMENTS, OLD
from codemods.upgrades.lightning_trainer_arguments import LightningTrainerArguments
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

PINNED = {"requirements.txt": "pytorch-lightning>=2.0\n"}
OLD_PIN = {"requirements.txt": "pytorch-lightning==1.4.2\n"}
BACKEND_LOST = {"requirements.txt": "pytorch-lightning==1.5.4\n"}
MIDDLE = {"requirements.txt": "pytorch-lightning==1.8.6\n"}


def made(arguments: str, *, more: str = "") -> str:
    return f"import torch\nimport pytorch_lightning as pl\n\ntrainer = pl.Trainer({arguments})\n{more}"


def test_example_of_the_page() -> None:
    sections = LightningTrainerArguments.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(LightningTrainerArguments, before, after, files=PINNED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gpus=1", 'devices=1, accelerator="gpu"'),
        ("gpus=[0], max_epochs=2", 'devices=[0], max_epochs=2, accelerator="gpu"'),
        ("gpus=0", 'accelerator="cpu"'),
        ('gpus="0,1", strategy="ddp"', 'devices="0,1", strategy="ddp", accelerator="gpu"'),
        ('gpus=2, accelerator="ddp"', 'devices=2, accelerator="gpu", strategy="ddp"'),
        ('gpus=1, accelerator="cuda"', 'devices=1, accelerator="cuda"'),
        ('gpus=-1, distributed_backend="ddp"', 'devices=-1, strategy="ddp", accelerator="gpu"'),
        ('gpus=2, num_processes=1, strategy="ddp"', 'devices=2, strategy="ddp", accelerator="gpu"'),
        ('num_processes=2, accelerator="ddp_cpu"', 'devices=2, accelerator="cpu", strategy="ddp_spawn"'),
        ("gpus=1, tpu_cores=None", 'devices=1, accelerator="gpu"'),
        ("replace_sampler_ddp=flag", "use_distributed_sampler=flag"),
        ("checkpoint_callback=False", "enable_checkpointing=False"),
        ("weights_summary=None", "enable_model_summary=False"),
        ("progress_bar_refresh_rate=0", "enable_progress_bar=False"),
        ("reload_dataloaders_every_epoch=True", "reload_dataloaders_every_n_epochs=1"),
        ('gpus=2, accelerator="ddp", plugins=DDPPlugin()', 'devices=2, accelerator="gpu", plugins=DDPPlugin()'),
    ],
)
def test_what_means_the_same_under_its_new_name(before: str, after: str) -> None:
    head = "from pytorch_lightning.plugins import DDPPlugin\n"
    check_transformed(LightningTrainerArguments, head + made(before), head + made(after), files=PINNED)
    check_transformed(LightningTrainerArguments, head + made(before), head + made(after), unsafe=True)
    if 'accelerator="ddp' not in before:
        check_nothing(LightningTrainerArguments, made(before), files={"requirements.txt": "pytorch-lightning<1.5\n"})


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("gpus=2", 'devices=2, accelerator="gpu"', "runs the whole script once for each"),
        ("gpus=args.gpus", 'devices=args.gpus, accelerator="gpu"', "devices=0 is an error"),
        ('gpus="3"', 'devices="3", accelerator="gpu"', "with that index before Lightning 1.5"),
        ('accelerator="ddp"', 'strategy="ddp"', "takes all that it finds"),
        ("gpus=1 if torch.cuda.is_available() else 0", 'devices=1, accelerator="auto"', "no CUDA device"),
        ("gpus=1, num_nodes=2", 'devices=1, num_nodes=2, accelerator="gpu"', "runs the whole script"),
    ],
)
def test_what_rests_on_an_assumption(before: str, after: str, reason: str) -> None:
    (finding,) = check_transformed(LightningTrainerArguments, made(before), made(after), files=PINNED, unsafe=True)
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('weights_summary="top", max_epochs=1', "max_epochs=1"),
        ("resume_from_checkpoint=None", ""),
        ("auto_lr_find=False, track_grad_norm=-1", ""),
        ('amp_backend="native", precision=16', "precision=16"),
    ],
)
def test_what_does_nothing_goes_whatever_version_runs(before: str, after: str) -> None:
    check_transformed(LightningTrainerArguments, made(before), made(after))
    check_transformed(LightningTrainerArguments, made(before), made(after), files=PINNED)
    check_nothing(LightningTrainerArguments, made(before), files={"requirements.txt": "pytorch-lightning<1.5\n"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (made("strategy=None, max_epochs=1"), made("max_epochs=1")),
        (made("devices=None"), made("")),
        (made('strategy="ddp" if args.n > 1 else None'), made('strategy="ddp" if args.n > 1 else "auto"')),
        ("strategy = None\n" + made("strategy=strategy"), 'strategy = "auto"\n' + made("strategy=strategy")),
        (
            "if many:\n    how = 'ddp'\nelse:\n    how = None\n" + made("strategy=how"),
            "if many:\n    how = 'ddp'\nelse:\n    how = \"auto\"\n" + made("strategy=how"),
        ),
        (
            made('accelerator="ddp" if args.n > 1 else None, devices=args.n'),
            made('devices=args.n, strategy="ddp" if args.n > 1 else "auto"'),
        ),
    ],
)
def test_none_is_no_value_any_more(before: str, after: str) -> None:
    check_transformed(LightningTrainerArguments, before, after, files=PINNED)
    check_nothing(LightningTrainerArguments, before, files=OLD_PIN)


def test_none_that_needs_the_new_default() -> None:
    only_new = made('strategy="ddp" if args.n > 1 else None')
    files = {"requirements.txt": "pytorch-lightning>=1.6\n"}
    (finding,) = check_transformed(
        LightningTrainerArguments, only_new, only_new.replace("None", '"auto"'), files=files, unsafe=True
    )
    assert "assumes Lightning 1.9.4 or newer" in finding.reason
    # without the argument every version takes its own default
    check_transformed(LightningTrainerArguments, made("strategy=None"), made(""), files=files)
    (gpus,) = check_transformed(LightningTrainerArguments, made("accelerator=None"), made(""), files=PINNED, unsafe=True)
    assert "takes the GPUs that it finds" in gpus.reason
    before = made('gpus=args.n, accelerator="ddp" if args.n > 1 else None')
    after = made('devices=args.n, accelerator="gpu", strategy="ddp" if args.n > 1 else "auto"')
    check_transformed(LightningTrainerArguments, before, after, files=PINNED, unsafe=True)


ANY_19 = {"requirements.txt": "pytorch-lightning>=1.9.0\n"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'accelerator="gpu" if args.gpu >= 0 else None, devices=[args.gpu] if args.gpu >= 0 else None',
            'accelerator="gpu" if args.gpu >= 0 else "auto", devices=[args.gpu] if args.gpu >= 0 else "auto"',
        ),
        ("accelerator=None, devices=args.n if args.n else None", 'accelerator="auto", devices=args.n if args.n else "auto"'),
        ("accelerator=None, devices=None", ""),
    ],
)
def test_none_for_the_accelerator_and_the_devices_is_one_change(before: str, after: str) -> None:
    """Lightning 1.9 refuses `devices="auto"` while the accelerator is None; Lightning 2 refuses each of them."""
    for files in (ANY_19, PINNED):
        (found,) = check_transformed(LightningTrainerArguments, made(before), made(after), files=files, unsafe=True)
        assert "accelerator=None, devices=None" in found.message
        assert found.reason.startswith("Lightning 1 trained on the CPU")


def test_devices_alone_take_auto_beside_an_accelerator() -> None:
    named = 'accelerator="gpu", devices=args.n if args.n else None'
    check_transformed(LightningTrainerArguments, made(named), made(named.replace("None", '"auto"')), files=ANY_19)
    for open_one in ("devices=args.n if args.n else None", "accelerator=args.a, devices=args.n if args.n else None"):
        after = made(open_one.replace("None", '"auto"'))
        (found,) = check_transformed(LightningTrainerArguments, made(open_one), after, files=ANY_19, unsafe=True)
        assert "assumes Lightning 2.0 or newer" in found.reason
        check_transformed(LightningTrainerArguments, made(open_one), after, files=PINNED)


def test_a_name_for_the_strategy_comes_with_a_patch() -> None:
    before = made('strategy="ddp" if args.n > 1 else None')
    after = before.replace("None", '"auto"')
    check_transformed(LightningTrainerArguments, before, after, files=ANY_19, unsafe=True)
    check_transformed(LightningTrainerArguments, before, after, files={"requirements.txt": "pytorch-lightning>=1.9.4\n"})


def test_none_that_is_asked_for_elsewhere() -> None:
    source = "how = None\nif how is None:\n    print('one device')\n" + made("strategy=how")
    check_told(LightningTrainerArguments, source, reason="how is read at line 2 as well", files=PINNED)
    check_nothing(LightningTrainerArguments, "def run(how=None):\n    " + made("strategy=how").splitlines()[-1], files=PINNED)
    check_nothing(LightningTrainerArguments, made("strategy=how, max_steps=None"), files=PINNED)
    asks = 'how = None if pl.__version__ < "2" else "auto"\n'
    check_nothing(LightningTrainerArguments, "import pytorch_lightning as pl\n" + asks + made("strategy=how"), files=PINNED)
    plug = "from pytorch_lightning.strategies import DDPStrategy\nplug = None\nif many:\n    plug = DDPStrategy()\n"
    at_times = plug + made('accelerator="ddp", devices=2, plugins=plug')
    check_told(LightningTrainerArguments, at_times, reason="the strategy at times only", files=PINNED)


def test_none_that_takes_the_place_of_what_a_file_says() -> None:
    main = "import lightning\nfrom hydra.utils import instantiate\n\n\ndef fit(cfg):\n"
    main += "    instantiate(cfg.trainer, strategy=None).fit(None)\n"
    files = {**PINNED, "conf/trainer/a.yaml": "_target_: lightning.Trainer\nstrategy: ddp\n"}
    check_transformed(LightningTrainerArguments, main, main.replace("None).fit", '"auto").fit'), files=files)


def test_a_path_goes_to_the_one_fit() -> None:
    before = made("resume_from_checkpoint=path", more="trainer.fit(model)\n")
    after = made("", more="trainer.fit(model, ckpt_path=path)\n")
    (finding,) = check_transformed(LightningTrainerArguments, before, after, files=PINNED, unsafe=True)
    assert "path is still the same" in finding.reason
    entry = made('resume_from_checkpoint=config.get("path", None)', more="trainer.fit(model)\n")
    moved = made("", more='trainer.fit(model, ckpt_path=config.get("path", None))\n')
    check_transformed(LightningTrainerArguments, entry, moved, files=PINNED, unsafe=True)
    found = made("resume_from_checkpoint=find(path)", more="trainer.fit(model)\n")
    check_told(LightningTrainerArguments, found, reason="ckpt_path", files=PINNED)
    twice = made("resume_from_checkpoint=path", more="trainer.fit(model)\ntrainer.fit(other)\n")
    check_told(LightningTrainerArguments, twice, reason="ckpt_path", files=PINNED)
    check_told(LightningTrainerArguments, made("resume_from_checkpoint=path"), reason="ckpt_path", files=PINNED)


def test_a_version_between_has_some_of_the_new_names() -> None:
    check_transformed(LightningTrainerArguments, made('gpus=2, accelerator="ddp"'), made('gpus=2, strategy="ddp"'), files=MIDDLE)
    before = "from pytorch_lightning.plugins import DDPPlugin\n" + made('gpus=2, accelerator="ddp", plugins=DDPPlugin()')
    check_transformed(LightningTrainerArguments, before, before.replace(' accelerator="ddp",', ""), files=MIDDLE)
    check_nothing(LightningTrainerArguments, made("gpus=2, replace_sampler_ddp=False"), files=MIDDLE)
    check_nothing(LightningTrainerArguments, made('gpus=2, accelerator="ddp", weights_summary=None'), files=OLD_PIN)


def test_requirement_files_that_disagree() -> None:
    files = {"requirements.txt": "pytorch-lightning==1.9.5\n", "environment.yml": "dependencies:\n  - pytorch-lightning=2.1\n"}
    source = made("replace_sampler_ddp=False")
    check_told(LightningTrainerArguments, source, reason="the requirement files allow versions", files=files)
    # both versions have accelerator="gpu", devices=1
    check_transformed(LightningTrainerArguments, made("gpus=1"), made('devices=1, accelerator="gpu"'), files=files)


def test_the_flag_that_is_off_by_default_now_is_told() -> None:
    (finding,) = findings_of(LightningTrainerArguments, made('gpus=2, accelerator="ddp"'), PINNED)
    assert any("find_unused_parameters=False by default" in e.text for e in finding.evidence)
    (alone,) = findings_of(LightningTrainerArguments, made("gpus=1"), PINNED)
    assert not any("find_unused_parameters" in e.text for e in alone.evidence)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('gpus=2, strategy="dp"', "dp split one batch"),
        ('gpus=2, accelerator="dp"', "dp split one batch"),
        ('gpus=2, accelerator="ddp2"', "one process for each device"),
        ('gpus="0"', "no GPU in Lightning 1"),
        ("gpus=1, devices=1", "devices= is given as well"),
        ("gpus=1, **more", "behind **"),
        ("gpus=1, accelerator=args.kind", "which device is meant"),
        ('gpus=2, accelerator="ddp", strategy="ddp"', "strategy= is given as well"),
        ('gpus=2, accelerator="ddp", plugins=plugins', "may be the strategy"),
        ("gpus=1 if args.gpu else 0", "devices=0 is an error"),
        ("distributed_backend=args.backend", "not shown"),
        ("num_processes=args.n", "no plain number"),
        ("checkpoint_callback=keep", "into callbacks="),
        ("progress_bar_refresh_rate=20", "TQDMProgressBar"),
        ('weights_summary="full"', "ModelSummary(max_depth=-1)"),
        ("auto_lr_find=True", "Tuner(trainer)"),
        ("auto_scale_batch_size=True", "Tuner(trainer)"),
        ("auto_scale_batch_size=True, strategy='ddp'", "in a run of one"),
        ("terminate_on_nan=True", "detect_anomaly"),
        ("replace_sampler_ddp=False, use_distributed_sampler=False", "is given as well"),
    ],
)
def test_refusals(arguments: str, reason: str) -> None:
    check_told(LightningTrainerArguments, made(arguments), reason=reason, files=PINNED)


def test_a_dictionary_behind_the_call() -> None:
    source = "import pytorch_lightning as pl\n\nmore = {'gpus': 2}\ntrainer = pl.Trainer(**more)\n"
    check_told(LightningTrainerArguments, source, reason="decide over each other", files=PINNED)
    before = "import pytorch_lightning as pl\n\nmore = dict(replace_sampler_ddp=False)\ntrainer = pl.Trainer(**more)\n"
    after = before.replace("replace_sampler_ddp", "use_distributed_sampler")
    check_transformed(LightningTrainerArguments, before, after, files=PINNED)


@pytest.mark.parametrize(
    "made_so",
    [
        "more = dict()\nif args.gpus > 1:\n    more = dict(distributed_backend='ddp', gpus=args.gpus)\n",
        "more = {}\nif args.gpus > 1:\n    more = {'distributed_backend': 'ddp'}\n",
        "more = dict(distributed_backend='ddp') if args.gpus > 1 else {}\n",
        "if args.gpus > 1:\n    more = dict(distributed_backend='ddp')\nelse:\n    more = dict(gpus=1)\n",
        "more = {}\nmore['distributed_backend'] = 'ddp'\n",
    ],
)
def test_a_dictionary_that_a_test_decides_over(made_so: str) -> None:
    before = f"import pytorch_lightning as pl\n\n{made_so}trainer = pl.Trainer.from_argparse_args(args, **more)\n"
    after = before.replace("distributed_backend", "strategy")
    check_transformed(LightningTrainerArguments, before, after, files=BACKEND_LOST)
    check_nothing(LightningTrainerArguments, before, files={"requirements.txt": "pytorch-lightning==1.4.9\n"})


@pytest.mark.parametrize(
    "made_so",
    [
        "more = load()\nif args.gpus > 1:\n    more = dict(distributed_backend='ddp')\n",
        "more = {}\nif args.gpus > 1:\n    more |= dict(distributed_backend='ddp')\n",
        "for more in ({}, dict(distributed_backend='ddp')):\n    pass\n",
    ],
)
def test_a_dictionary_that_is_not_written_out(made_so: str) -> None:
    source = f"import pytorch_lightning as pl\n\n{made_so}trainer = pl.Trainer(**more)\n"
    check_nothing(LightningTrainerArguments, source, files=BACKEND_LOST)


@pytest.mark.parametrize(
    "made_so",
    [
        "more = {}\nif many:\n    more = dict(distributed_backend='ddp', plugins=[here])\n",
        "more = {}\nif many:\n    more = dict(distributed_backend='ddp')\nmore['accelerator'] = 'ddp'\n",
        "more = {}\nif many:\n    more = dict(distributed_backend=wanted)\n",
        "more = {}\nif many:\n    more = dict(distributed_backend='dp')\n",
        "more = {}\nif many:\n    more = dict(distributed_backend='ddp')\nkeep(more)\n",
    ],
)
def test_a_backend_in_a_dictionary_beside_others(made_so: str) -> None:
    source = f"import pytorch_lightning as pl\n\n{made_so}trainer = pl.Trainer(**more)\n"
    check_told(LightningTrainerArguments, source, reason="decide over each other", files=BACKEND_LOST)


def test_argparse_trainers() -> None:
    source = "import pytorch_lightning as pl\n\ntrainer = pl.Trainer.from_argparse_args(args, gpus=2)\n"
    check_told(LightningTrainerArguments, source, reason="LightningCLI", files=PINNED)
    check_nothing(LightningTrainerArguments, source, files=MIDDLE)


@pytest.mark.parametrize(
    "source",
    [
        "import pytorch_lightning as pl\ntry:\n    t = pl.Trainer(gpus=1)\nexcept TypeError:\n    t = pl.Trainer(devices=1)",
        "import pytorch_lightning as pl\nif pl.__version__ < '2':\n    t = pl.Trainer(gpus=1)",
        "import pytorch_lightning as pl\nt = pl.Trainer(accelerator='gpu', devices=2, strategy='ddp')",
        "import pytorch_lightning as pl\nfrom mine import Trainer\nt = Trainer(gpus=1)",
        "import pytorch_lightning as pl\nfrom transformers import Trainer\nt = Trainer(resume_from_checkpoint='x')",
        "import pytorch_lightning as pl\n\n\nclass Trainer(pl.Trainer): ...\n\n\nt = Trainer(gpus=1)",
    ],
)
def test_nothing_to_say(source: str) -> None:
    check_nothing(LightningTrainerArguments, f"{source}\n", files=PINNED)


def test_the_installed_trainer_has_the_new_names_and_not_the_old() -> None:
    pl = pytest.importorskip("pytorch_lightning")
    there = set(inspect.signature(pl.Trainer.__init__).parameters)
    assert not there & {*OLD, *DEVICE_ARGUMENTS}
    assert {row.new for row in OLD.values() if row.new} | {"accelerator", "devices", "strategy"} <= there
    assert not hasattr(pl.Trainer, "from_argparse_args")


OLD_IMPORT = "from pytorch_lightning.metrics.functional import accuracy\n"
MAIN = "\n\ndef main():\n    trainer = pl.Trainer(gpus=1)\n    trainer.fit(net.Net())\n"
FITS = "import pytorch_lightning as pl\nimport net\n{}" + MAIN
NET = "import pytorch_lightning as pl\n{}\n\nclass Net(pl.LightningModule):\n    pass\n"


def test_nothing_where_the_program_takes_a_name_that_went_before() -> None:
    check_nothing(LightningTrainerArguments, FITS.format(""), files={"net.py": NET.format(OLD_IMPORT)})
    anything = {"net.py": NET.format(OLD_IMPORT), "requirements.txt": "pytorch-lightning\n"}
    check_nothing(LightningTrainerArguments, FITS.format(""), files=anything)
    check_nothing(LightningTrainerArguments, FITS.format(OLD_IMPORT), files={"net.py": NET.format("")})


@pytest.mark.parametrize(
    "files",
    [
        {"net.py": NET.format("")},
        {"net.py": NET.format(f"try:\n    {OLD_IMPORT}except ImportError:\n    accuracy = None\n")},
        {"net.py": NET.format(f"def score():\n    {OLD_IMPORT}")},
        {"net.py": NET.format(""), "another.py": OLD_IMPORT},
        {"net.py": NET.format(OLD_IMPORT), **PINNED},  # what is pinned decides
    ],
)
def test_names_that_may_be_there(files: dict[str, str]) -> None:
    assert findings_of(LightningTrainerArguments, FITS.format(""), files)


@pytest.mark.parametrize(
    "text",
    [
        "pip install pytorch-lightning==1.6.0\n",
        "```\n!pip install \\\n  gym==0.23 \\\n  pytorch-lightning==1.6.0 \\\n  tqdm\n```\n",
    ],
)
def test_nothing_where_the_read_me_installs_an_older_one(text: str) -> None:
    check_nothing(LightningTrainerArguments, made("gpus=1"), files={"README.md": text})
    other = text.replace("pip install ", "we used ")
    assert findings_of(LightningTrainerArguments, made("gpus=1"), {"README.md": other})


def test_one_report_of_a_call_that_an_edit_alone_does_not_cure() -> None:
    source = made("gpus=2, terminate_on_nan=True, max_epochs=3")
    found = check_told(LightningTrainerArguments, source, reason="detect_anomaly=True looks for NaN")
    assert "pl.Trainer(terminate_on_nan=…) is an error from Lightning 1.7 on, and so is gpus from 2.0 on" in found.message
    assert len(findings_of(LightningTrainerArguments, source)) == 1
    files = {"requirements.txt": "pytorch-lightning>=1.7,<2\n"}  # gpus= is taken there
    told = check_told(LightningTrainerArguments, source, reason="detect_anomaly", files=files)
    assert "gpus" not in told.message


def test_edits_that_cure_some_versions_are_offered_each() -> None:
    found = findings_of(LightningTrainerArguments, made("weights_summary=None, auto_lr_find=True"))
    assert {f.applicability for f in found} == {Applicability.DISPLAY, Applicability.UNSAFE}  # 1.7 to 1.9


@pytest.mark.parametrize("old", ["early_stop_callback=None", "tpus=-1", "row_log_interval=5"])
def test_nothing_of_a_call_that_no_lightning_takes(old: str) -> None:
    check_nothing(LightningTrainerArguments, made(f"{old}, gpus=2, progress_bar_refresh_rate=1"))
    config = f"trainer:\n  _target_: pytorch_lightning.Trainer\n  {old.replace('=', ': ')}\n  progress_bar_refresh_rate: 1\n"
    made_of = "import hydra\nimport pytorch_lightning\n\n\ndef main(cfg):\n    return hydra.utils.instantiate(cfg.trainer)\n"
    check_nothing(LightningTrainerArguments, config, path="conf/run.yaml", files={"main.py": made_of})


def test_one_report_of_a_mapping_that_an_edit_alone_does_not_cure() -> None:
    config = "trainer:\n  _target_: pytorch_lightning.Trainer\n  terminate_on_nan: true\n  replace_sampler_ddp: false\n"
    made_of = "import hydra\nimport pytorch_lightning\n\n\ndef main(cfg):\n    return hydra.utils.instantiate(cfg.trainer)\n"
    found = findings_of(LightningTrainerArguments, config, {"main.py": made_of}, path="conf/run.yaml")
    assert len(found) == 1 and "so is replace_sampler_ddp from 2.0 on" in found[0].message


OF_HYDRA = {"conf/trainer/fit.yaml": "_target_: pytorch_lightning.Trainer\nmax_epochs: 3\n"}
SETS = "import pytorch_lightning as pl\n\n\ndef fill(config):\n    {}\n    return config\n"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (made('strategy="ddp", find_unused_parameters=True'), "pl.Trainer(find_unused_parameters=…)"),
        (made("devices=2, static_graph=flag"), "pl.Trainer(static_graph=…)"),
        (SETS.format("config.trainer.find_unused_parameters = True"), "trainer.find_unused_parameters"),
        (SETS.format('config["trainer"]["gradient_as_bucket_view"] = True'), "trainer.gradient_as_bucket_view"),
        (SETS.format("config.trainer.find_unused_parameters = True").partition("\n\n\n")[2], "trainer.find_unused_parameters"),
    ],
)
def test_an_argument_of_a_strategy_that_the_trainer_does_not_take(source: str, shown: str) -> None:
    for pin in (PINNED, OLD_PIN, {}):
        found = [f for f in findings_of(LightningTrainerArguments, source, {**OF_HYDRA, **pin}) if "every Lightning" in f.message]
        assert [f.message.startswith(shown) for f in found] == [True] and not found[0].fix


@pytest.mark.parametrize(
    "source",
    [
        made("strategy=pl.strategies.DDPStrategy(find_unused_parameters=True)"),
        "import pytorch_lightning as pl\n\nclass Trainer(pl.Trainer): ...\n\nTrainer(find_unused_parameters=True)\n",
        SETS.format("config.trainer.strategy.find_unused_parameters = True"),
        SETS.format("config.model.find_unused_parameters = True"),
        SETS.format("config.trainer.find_unused_parameters = True\n    flag = config.trainer.pop('find_unused_parameters')"),
        SETS.format("self.trainer.find_unused_parameters = True"),
        SETS.format("print(config.trainer.find_unused_parameters)"),
    ],
)
def test_an_argument_that_goes_to_a_strategy_or_elsewhere(source: str) -> None:
    check_nothing(LightningTrainerArguments, source, files={**OF_HYDRA, **PINNED})
