"""DDP801 in configuration files."""

from __future__ import annotations

import pytest

from codemods.upgrades.lightning_trainer_arguments import LightningTrainerArguments
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

MAIN = "import hydra\n\n\n@hydra.main(config_name='main')\ndef main(config):\n    "
MAIN += "hydra.utils.instantiate(config.trainer).fit(None)\n"
PINNED = {"requirements.txt": "pytorch-lightning>=2.0\n", "train.py": MAIN}
TARGET = "_target_: pytorch_lightning.Trainer\n"
HERE = "conf/trainer/default.yaml"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gpus: 2\n", "devices: 2\naccelerator: gpu\n"),
        ("gpus: [0, 1]\nmax_epochs: 3\n", "devices: [0, 1]\naccelerator: gpu\nmax_epochs: 3\n"),
        ("gpus: 0\n", "accelerator: cpu\n"),
        ("gpus: 2  # both\naccelerator: ddp\n", "devices: 2  # both\naccelerator: gpu\nstrategy: ddp\n"),
        ("accelerator: gpu\ngpus: 1\n", "accelerator: gpu\ndevices: 1\n"),
        ("devices: 2\naccelerator: ddp\n", "devices: 2\nstrategy: ddp\n"),
        ("replace_sampler_ddp: false\n", "use_distributed_sampler: false\n"),
        ("checkpoint_callback: false\n", "enable_checkpointing: false\n"),
        ("weights_summary: null\nmax_epochs: 3\n", "enable_model_summary: false\nmax_epochs: 3\n"),
        ("resume_from_checkpoint: null\nmax_epochs: 3\n", "max_epochs: 3\n"),
        ("strategy: null\n", "strategy: auto\n"),
    ],
)
def test_arguments_of_a_configured_trainer(before: str, after: str) -> None:
    found = check_transformed(LightningTrainerArguments, TARGET + before, TARGET + after, files=PINNED, path=HERE, unsafe=True)
    assert all("assumes that no command line gives trainer." in f.reason for f in found)
    old = {**PINNED, "requirements.txt": "pytorch-lightning==1.4.2\n"}
    check_nothing(LightningTrainerArguments, TARGET + before, files=old, path=HERE)


def test_a_null_accelerator_and_null_devices_go_together() -> None:
    """Lightning 1.9 refuses `devices: auto` while the accelerator is None."""
    files = {**PINNED, "requirements.txt": "pytorch-lightning>=1.9.0\n"}
    both = findings_of(LightningTrainerArguments, f"{TARGET}accelerator: null\ndevices: null\n", files, path=HERE)
    groups = {f.fix.group if f.fix is not None else "" for f in both}
    assert len(both) == 2 and len(groups) == 1 and "" not in groups
    (alone,) = findings_of(LightningTrainerArguments, f"{TARGET}devices: null\n", files, path=HERE)
    assert "assumes Lightning 2.0 or newer" in alone.reason
    (beside,) = findings_of(LightningTrainerArguments, f"{TARGET}accelerator: gpu\ndevices: null\n", files, path=HERE)
    assert "or newer" not in beside.reason and beside.fix is not None and not beside.fix.group


@pytest.mark.parametrize(
    ("path", "before", "after", "files"),
    [
        # another file of the group, which takes the Trainer from the first
        (
            "conf/trainer/ddp.yaml",
            "defaults:\n  - default.yaml\n\ngpus: 4\naccelerator: ddp\n",
            "defaults:\n  - default.yaml\n\ndevices: 4\naccelerator: gpu\nstrategy: ddp\n",
            {HERE: TARGET},
        ),
        # the same key in another file
        (
            "conf/experiment/big.yaml",
            "# @package _global_\ntrainer:\n  gpus: 4\n",
            "# @package _global_\ntrainer:\n  devices: 4\n  accelerator: gpu\n",
            {HERE: TARGET},
        ),
        # a mapping that the code hands on
        (
            "conf/main.yaml",
            "run:\n  seed: 1\npl:\n  gpus: 4\n",
            "run:\n  seed: 1\npl:\n  devices: 4\n  accelerator: gpu\n",
            {"fit.py": "import pytorch_lightning as pl\n\n\ndef fit(cfg):\n    pl.Trainer(**cfg.pl).fit(cfg.model)\n"},
        ),
        # that of the command line interface
        (
            "conf/main.yaml",
            "trainer:\n  replace_sampler_ddp: true\n",
            "trainer:\n  use_distributed_sampler: true\n",
            {"cli.py": "from pytorch_lightning.cli import LightningCLI\n\nLightningCLI()\n"},
        ),
    ],
)
def test_mappings_that_reach_a_trainer(path: str, before: str, after: str, files: dict[str, str]) -> None:
    check_transformed(LightningTrainerArguments, before, after, files={**PINNED, **files}, path=path, unsafe=True)
    without = {"requirements.txt": PINNED["requirements.txt"], "train.py": "import torch\n"}
    check_nothing(LightningTrainerArguments, before, files=without, path=path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gpus: 2\naccelerator: dp\n", "dp split one batch"),
        ("strategy: dp\n", "dp split one batch"),
        ("gpus: ${gpus}\n", "how many devices that is"),
        ("gpus: 1\ndevices: 1\n", "devices is given as well"),
        ("gpus: 1\naccelerator: ${kind}\n", "which device is meant"),
        ("num_processes: 2\n", "by hand"),
        ("weights_summary: full\n", "ModelSummary(max_depth=-1)"),
        ("accelerator: ddp\nstrategy: ddp\n", "strategy is given as well"),
        ("replace_sampler_ddp: false\nuse_distributed_sampler: false\n", "is given as well"),
        ("gpus: &n 2\nnum_nodes: *n\n", "an anchor takes the value"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    check_told(LightningTrainerArguments, TARGET + text, reason=reason, files=PINNED, path=HERE)


READS = "import lightning\n\n\ndef half(config):\n    config.trainer.gpus = 4\n    return config.trainer.get('gpus')\n"

RESUMES = READS.replace(".gpus = 4", ".devices = 4").replace("gpus", "resume_from_checkpoint")


def test_code_that_names_the_key_gets_the_new_name_as_well() -> None:
    files = {**PINNED, "half.py": READS}
    after = TARGET + "devices: 2\naccelerator: gpu\n"
    (found,) = check_transformed(LightningTrainerArguments, TARGET + "gpus: 2\n", after, files=files, path=HERE, unsafe=True)
    assert found.reason.startswith("half.py:5 gets the new name as well")
    conf = {**PINNED, HERE: TARGET + "gpus: 2\n"}
    renamed = READS.replace("trainer.gpus", "trainer.devices").replace("'gpus'", "'devices'")
    both = check_transformed(LightningTrainerArguments, READS, renamed, files=conf, path="half.py", unsafe=True)
    assert {f.fix.group for f in (*both, found) if f.fix} == {"trainer.gpus"}


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("gpus: 0\n", READS, "conf/trainer/default.yaml it is 0 or no plain number"),
        ("gpus: 2\n", READS.replace("gpus = 4", "gpus = 0"), "half.py:5 sets trainer.gpus, which takes no 0"),
        ("gpus: 2\n", READS + "    # see trainer.gpus\n", "half.py:5 names trainer.gpus"),
        ("gpus: 2\n", READS + "    print(f'{config.trainer.gpus}')\n", "in an f-string"),
        ("resume_from_checkpoint: null\n", RESUMES, "reads trainer.resume_from"),
    ],
)
def test_code_that_cannot_be_renamed(text: str, code: str, reason: str) -> None:
    files = {**PINNED, "half.py": code}
    check_told(LightningTrainerArguments, TARGET + text, reason=reason, files=files, path=HERE)
    check_nothing(LightningTrainerArguments, code, files={**PINNED, HERE: TARGET + text}, path="half.py")


def test_code_that_names_a_strategy_as_the_accelerator() -> None:
    code = READS.replace("config.trainer.gpus = 4", "config.trainer.accelerator = 'ddp'").replace("'gpus'", "'devices'")
    files = {**PINNED, HERE: TARGET + "devices: 2\n"}
    after = code.replace("trainer.accelerator", "trainer.strategy")
    check_transformed(LightningTrainerArguments, code, after, files=files, path="half.py", unsafe=True)
    check_nothing(LightningTrainerArguments, code, files={"requirements.txt": PINNED["requirements.txt"]}, path="half.py")
    gpu = code.replace("'ddp'", "'gpu'")
    check_nothing(LightningTrainerArguments, gpu, files=files, path="half.py")


def test_code_that_sets_what_is_gone() -> None:
    code = READS.replace("config.trainer.gpus = 4", "config.trainer.terminate_on_nan = True").replace("'gpus'", "'devices'")
    files = {**PINNED, HERE: TARGET}
    check_told(LightningTrainerArguments, code, reason="detect_anomaly", files=files, path="half.py")


def test_the_trainer_itself_is_no_configuration() -> None:
    code = "import lightning\n\n\nclass Probe(lightning.Callback):\n    def on_fit_end(self, trainer):\n"
    code += "        print(self.trainer.gpus)\n"
    check_nothing(LightningTrainerArguments, code, files={**PINNED, HERE: TARGET + "gpus: 2\n"}, path="probe.py")


def test_a_command_line_that_gives_the_key() -> None:
    files = {**PINNED, "run.sh": "python train.py trainer.gpus=4\n"}
    after = TARGET + "devices: 2\naccelerator: gpu\n"
    (found,) = check_transformed(LightningTrainerArguments, TARGET + "gpus: 2\n", after, files=files, path=HERE, unsafe=True)
    assert "no command line gives trainer.gpus, as run.sh:1 does" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "_target_: mine.Trainer\ngpus: 2\n",
        "gpus: 2\naccelerator: ddp\n",  # who takes it is not shown
        TARGET + "max_epochs: 2\naccelerator: gpu\nstrategy: ddp\ndevices: 2\n",
        "run:\n  trainer:\n    deep:\n      gpus: 2\n",
    ],
)
def test_nothing_to_say(text: str) -> None:
    check_nothing(LightningTrainerArguments, text, files=PINNED, path=HERE)
