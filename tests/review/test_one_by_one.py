"""What is accepted alone is what was shown, what is rejected is never made, and a comment silences exactly what it stands at."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codemods.engine.fix_source import Chosen
from ddpfix import engine
from ddpfix.catalog import all_codemods
from ddpfix.discovery import discover
from ddpfix.results import Fixed
from ddpfix.review.items import Review, ReviewItem
from ddpfix.settings import Settings
from ddpfix.silence import with_comments
from tests.gitrepos import make, own_settings
from tests.review.project import classifier, reviewed


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def fixed(repo: Path, accepted: set[str], rejected: set[str]) -> Fixed:
    (tree,) = discover([repo])
    return engine.fix(tree, Settings(), all_codemods(), Chosen(frozenset(accepted), frozenset(rejected)))


def alone(repo: Path, item: ReviewItem) -> dict[str, bytes]:
    """The files as the item shows its change."""
    out: dict[str, bytes] = {}
    for block in sorted(item.replaced, key=lambda b: -b.line):
        text = out.get(block.path, (repo / block.path).read_bytes()).decode()
        lines = text.splitlines(keepends=True)
        lines[block.line - 1 : block.line - 1 + len(block.before.splitlines())] = [block.after]
        out[block.path] = "".join(lines).encode()
    return out


def kinds(found: Review) -> list[ReviewItem]:
    """One finding of each kind and level that can be accepted alone."""
    return list({(i.finding.code, i.level): i for i in found.items if i.acceptable and not i.mates}.values())


def test_a_fix_that_is_accepted_alone_is_what_was_shown(tmp_path: Path) -> None:
    repo = classifier(tmp_path)
    chosen = kinds(reviewed(repo))
    assert len(chosen) >= 6
    for item in chosen:
        assert fixed(repo, {item.id}, set()).after == alone(repo, item), item.finding


@pytest.mark.parametrize("seed", range(4))
def test_what_is_rejected_is_never_made(tmp_path: Path, seed: int) -> None:
    repo = classifier(tmp_path)
    ids = [i.id for i in reviewed(repo).items if i.acceptable]
    accepted = {i for i in ids if random.Random(f"{seed} {i}").random() < 0.5}
    made = fixed(repo, accepted, set(ids) - accepted)
    assert {made.origins[f.id] for f in made.fixed} <= accepted
    assert accepted - {made.origins[f.id] for f in made.fixed} <= {f.id for f, _ in made.withdrawn} | needless(made, accepted)


def needless(made: Fixed, accepted: set[str]) -> set[str]:
    """Accepted ids that are found no more, though they were not fixed themselves."""
    return accepted - {made.origins[f.id] for f in (*made.fixed, *made.left)}


PROGRAM = """\
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        loss = self(batch).mean()
{lines}
        return loss
"""
CALL = 'self.log("a", loss)'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"        {CALL}", f"        # C\n        {CALL}"),
        ('        self.log(\n            "a",\n            loss,\n        )', '        # C\n        self.log(\n            "a",\n'
         "            loss,\n        )"),
        (f"        # a note\n        {CALL}", f"        # a note\n        # C\n        {CALL}"),
        (f"        if batch_idx: {CALL}", f"        # C\n        if batch_idx: {CALL}"),
        (f"        x = 1; {CALL}", f"        # C\n        x = 1; {CALL}"),
        (f"        if batch_idx:\n            {CALL}", f"        if batch_idx:\n            # C\n            {CALL}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_comment_stands_above_the_statement(tmp_path: Path, before: str, after: str, end: str) -> None:
    source = PROGRAM.format(lines=before).replace("\n", end)
    repo = make(tmp_path, {"m.py": source.encode()})
    (item,) = reviewed(repo).items
    (tree,) = discover([repo])
    made = with_comments(tree, all_codemods(), fixed(repo, set(), {item.id}), {item.id: "as it is\nmeant"})
    comment = "# ddpfix: ignore[DDP101] as it is meant"
    assert made.after["m.py"].decode() == PROGRAM.format(lines=after.replace("# C", comment)).replace("\n", end)
    assert not made.left and not made.withdrawn
    (repo / "m.py").write_bytes(made.after["m.py"])
    assert not reviewed(repo).items


def test_where_no_comment_can_stand_it_is_told(tmp_path: Path) -> None:
    repo = make(tmp_path, {"m.py": b"# -*- coding: latin-1 -*-\n" + PROGRAM.format(lines=f"        {CALL}").encode()})
    (item,) = reviewed(repo).items
    (tree,) = discover([repo])
    made = with_comments(tree, all_codemods(), fixed(repo, set(), {item.id}), {item.id: "測"})
    assert made.after == {} and len(made.left) == 1
    ((_, why),) = made.withdrawn
    assert why == "no comment was written: m.py is written in iso-8859-1, which cannot hold the new code"
