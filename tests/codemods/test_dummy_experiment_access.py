from __future__ import annotations

import pytest

from codemods.ranks.dummy_experiment_access import DummyExperimentAccess
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of


def hook(*lines: str, base: str = "pl.LightningModule", name: str = "on_fit_end", arguments: str = "self") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"import os\nimport lightning.pytorch as pl\n\nclass A({base}):\n    def {name}({arguments}):\n{body}"


UPDATE = "self.logger.experiment.config.update({'a': 1})"


def test_example_of_the_page() -> None:
    sections = DummyExperimentAccess.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(DummyExperimentAccess, before, after)


@pytest.mark.parametrize(
    "line",
    [
        UPDATE, "self.logger.experiment.config['a'] = 1", "self.logger.experiment.summary['best'] = float(self.best)",
        "self.trainer.logger.experiment.config.update(vars(self.hparams))", "self.loggers[0].experiment.summary.update(a=1)",
    ],
)  # fmt: skip
def test_a_change_goes_under_the_test(line: str) -> None:
    check_transformed(DummyExperimentAccess, hook(line), hook("if self.global_rank == 0:", f"    {line}"))


def test_neighbours_share_one_test() -> None:
    lines = ("self.a = 1", UPDATE, UPDATE.replace("1", "2"), "self.b = 2")
    after = ("self.a = 1", "if self.global_rank == 0:", f"    {lines[1]}", f"    {lines[2]}", "self.b = 2")
    check_transformed(DummyExperimentAccess, hook(*lines), hook(*after))


def test_an_experiment_under_a_name() -> None:
    lines = ("run = self.logger.experiment", "run.config.update({'a': 1})", "run.log({'a': 1})")
    after = (lines[0], "if self.global_rank == 0:", f"    {lines[1]}", lines[2])
    check_transformed(DummyExperimentAccess, hook(*lines), hook(*after))


def test_above_the_trainer_the_rank_is_asked_for() -> None:
    before = """\
        import lightning as L
        from lightning.pytorch.loggers import WandbLogger

        class Run:
            def train(self, config):
                logger = WandbLogger()
                logger.experiment.config.update(config)
                L.Trainer(logger=logger).fit(self.model)
        """
    guard = "        if rank_zero_only.rank == 0:\n            "
    brought = "import WandbLogger\n        from lightning.pytorch.utilities import rank_zero_only\n"
    after = before.replace("        logger.experiment", f"{guard}        logger.experiment")
    after = after.replace("import WandbLogger\n", brought)
    check_transformed(DummyExperimentAccess, before, after)


def test_an_unknown_call_among_the_arguments_is_assumed_away() -> None:
    line = "self.logger.experiment.config.update(other.describe(self))"
    check_transformed(
        DummyExperimentAccess, hook(line), hook("if self.global_rank == 0:", f"    {line}"), unsafe=True
    )


@pytest.mark.parametrize("part", ["dir", "id", "name", "url", "log_dir"])
def test_values_are_told(part: str) -> None:
    check_told(DummyExperimentAccess, hook(f"self.path = os.path.join(self.logger.experiment.{part}, 'a')"), reason="broadcast")


def test_what_is_taken_from_a_part_is_told_once() -> None:
    lines = ("best = self.logger.experiment.summary.get('a')", "if best is None:", "    self.logger.experiment.summary['a'] = 1")
    check_told(DummyExperimentAccess, hook(*lines), reason="broadcast")


def test_a_helper_that_only_tests_call_on_every_rank() -> None:
    lines = ("if trainer.is_global_zero:", "    self._note(trainer)")
    source = hook(*lines, base="pl.Callback", arguments="self, trainer, pl_module")
    source += "\n    def _note(self, trainer):\n        trainer.logger.experiment.config.update(a=1)\n"
    check_nothing(DummyExperimentAccess, source, files={"tests/test_a.py": "def test_a(a, trainer):\n    a._note(trainer)\n"})


def test_a_collective_among_the_arguments_is_told() -> None:
    line = "self.logger.experiment.config.update(acc=self.metric.compute())"
    check_told(DummyExperimentAccess, hook(line), reason="work the value out")


def test_no_sure_test_is_told() -> None:
    source = "import lightning\n\ndef f(logger):\n    logger.experiment.config.update(a=1)\n"
    check_told(DummyExperimentAccess, source, reason="by hand")


@pytest.mark.parametrize(
    "lines",
    [
        ("self.logger.experiment.log({'a': 1})",),
        ("self.logger.experiment.add_scalar('a', 1)",),
        ("self.logger.experiment.log({f'{self.logger.experiment.name}/a': 1})",),
        ("if self.global_rank == 0:", f"    {UPDATE}"),
        ("if not self.trainer.is_global_zero:", "    return", UPDATE),
        ("run = wandb.init()", "run.config.update({'a': 1})"),
        ("self.model.experiment.config.update(a=1)",),
        ("print(self.logger.experiment.get_url())",),
        ("path = self.logger.experiment.dir if self.global_rank == 0 else None",),
    ],
)
def test_what_is_fine_stays(lines: tuple[str, ...]) -> None:
    check_nothing(DummyExperimentAccess, hook(*lines))


def test_decorated_hooks_and_own_tests_stay() -> None:
    decorated = hook(UPDATE).replace("    def on", "    @pl.utilities.rank_zero_only\n    def on")
    check_nothing(DummyExperimentAccess, decorated)
    check_nothing(DummyExperimentAccess, hook(UPDATE), path="tests/test_a.py")


def test_a_value_whose_type_is_asked_first() -> None:
    used = "    self.place = os.path.join(self.root, self.logger.experiment.id)"
    asked = ("if isinstance(self.logger.experiment.id, str):", used)
    check_nothing(DummyExperimentAccess, hook(*asked))
    told = ("if self.root:", used)
    check_told(DummyExperimentAccess, hook(*told), reason="the other ranks have no such value")


@pytest.mark.parametrize("asked", [f"type(self.logger.experiment.config) {operator} Config" for operator in ("==", "is")])
def test_what_stands_under_a_test_of_its_type_is_of_rank_0(asked: str) -> None:
    change = "    self.logger.experiment.config['a'] = 1"
    check_nothing(DummyExperimentAccess, hook(f"if self.named and {asked}:", change))
    other = asked.replace("type(self.logger.experiment.config)", "type(self.config)")
    assert findings_of(DummyExperimentAccess, hook(f"if self.named and {other}:", change))


ARTIFACT = "self.logger.experiment.use_artifact('net:best')"


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ((f"{ARTIFACT}.download()",), "`.download`"),
        ((f"kept = {ARTIFACT}", "self.folder = kept.download()"), "`.download`"),
        (("run = self.logger.experiment", "kept = run.use_artifact('net:best')", "kept.download()"), "`.download`"),
        (("run = self.trainer.logger.experiment.get_run('a')", "print(run['epoch'])"), "an item"),
    ],
)
def test_what_is_taken_of_a_result(lines: tuple[str, ...], part: str) -> None:
    found = check_told(DummyExperimentAccess, hook(*lines), reason="on rank 0 alone")
    assert found.message.startswith(part)


@pytest.mark.parametrize(
    "lines",
    [
        (f"kept = {ARTIFACT}", "print(kept)"),
        (f"kept = {ARTIFACT}", "if kept is not None:", "    kept.download()"),
        (f"kept = {ARTIFACT}", "kept = kept or Kept()", "kept.download()"),
        (f"kept = {ARTIFACT}", "kept = self.kept", "kept.download()"),
        ("try:", f"    {ARTIFACT}.download()", "except AttributeError:", "    pass"),
        ("if self.global_rank == 0:", f"    {ARTIFACT}.download()"),
        ("self.api.experiment.use_artifact('a').download()",),
        ("self.logger.use_artifact('a').download()",),
        (f"kept = {ARTIFACT}", "if self.trainer.global_rank == 0:", "    kept.download()"),
    ],
)
def test_results_that_do_no_harm(lines: tuple[str, ...]) -> None:
    check_nothing(DummyExperimentAccess, hook(*lines))


def test_a_result_in_a_function_of_rank_zero() -> None:
    source = hook(f"{ARTIFACT}.download()").replace("    def on", "    @rank_zero_only\n    def on")
    check_nothing(DummyExperimentAccess, source.replace("import os", "from lightning.pytorch.utilities import rank_zero_only"))
