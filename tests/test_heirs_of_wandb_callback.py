"""DDP205 in the hooks of classes that derive from transformers' WandbCallback."""

from __future__ import annotations

import pytest

from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "from transformers import Trainer\nfrom transformers.integrations import WandbCallback\n\n\n"
LOG = 'self._wandb.log({"samples": table})'


def callback(*lines: str, head: str = HEAD, base: str = "WandbCallback", hook: str = "on_evaluate", more: str = "") -> str:
    body = "".join(f"        {line}\n" for line in ("table = self.draw(state.epoch)", *lines))
    return f"{head}class Samples({base}):\n{more}    def {hook}(self, args, state, control, **kwargs):\n{body}"


@pytest.mark.parametrize("hook", ["on_evaluate", "on_epoch_end", "on_train_begin"])
def test_a_report_of_a_hook(hook: str) -> None:
    after = callback("if state.is_world_process_zero:", f"    {LOG}", hook=hook)
    (found,) = check_transformed(TrackerOnEveryRank, callback(LOG, hook=hook), after)
    assert "transformers starts the run on rank 0 alone" in found.message


def test_the_hook_of_a_base_class() -> None:
    base = 'class Base(WandbCallback):\n    def table(self):\n        return self._wandb.Table(columns=["a"])\n\n\n'
    after = callback("if state.is_world_process_zero:", f"    {LOG}", head=HEAD + base, base="Base")
    check_transformed(TrackerOnEveryRank, callback(LOG, head=HEAD + base, base="Base"), after)


def test_beside_a_run_that_rank_zero_starts() -> None:
    script = "import wandb\nimport torch.distributed as dist\nif dist.get_rank() == 0:\n    wandb.init()\n"
    after = callback("if state.is_world_process_zero:", f"    {LOG}")
    check_transformed(TrackerOnEveryRank, callback(LOG), after, files={"train.py": script})


def test_a_value_is_left_to_the_user() -> None:
    check_told(TrackerOnEveryRank, callback(f"done = {LOG}", "print(done)"), reason="under `if state.is_world_process_zero`")


@pytest.mark.parametrize(
    "lines",
    [
        ("if state.is_world_process_zero:", f"    {LOG}"),
        ("if not state.is_world_process_zero:", "    return", LOG),
        ("if args.local_rank in (-1, 0):", f"    {LOG}"),
        ("if self._wandb.run is not None:", f"    {LOG}"),
        ("try:", f"    {LOG}", "except Exception:", "    pass"),
        ("state = self.other()", LOG),
        ("self._wandb.Table(columns=[])",),
    ],
)
def test_reports_that_are_right_or_not_seen_through(lines: tuple[str, ...]) -> None:
    check_nothing(TrackerOnEveryRank, callback(*lines))


@pytest.mark.parametrize("base", ["TrainerCallback", "Unknown", "other.WandbCallback"])
def test_other_callbacks(base: str) -> None:
    check_nothing(TrackerOnEveryRank, callback(LOG, base=base))


def test_a_class_that_starts_its_own_run() -> None:
    more = "    def setup(self, args, state, model, **kwargs):\n        self._wandb.init()\n\n"
    check_nothing(TrackerOnEveryRank, callback(LOG, more=more))


def test_a_helper_that_has_no_state() -> None:
    check_nothing(TrackerOnEveryRank, callback(LOG, hook="draw_all"))


def test_a_run_on_every_rank() -> None:
    source = callback(LOG) + "\n\nimport wandb\nwandb.init()\nTrainer().train()\n"
    assert not [f for f in findings_of(TrackerOnEveryRank, source) if "transformers starts" in f.message]
