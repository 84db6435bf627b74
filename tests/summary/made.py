"""Fixed values made by really running codemods, and what every summary must be."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from codemods.api.codemod import DdpCodemod
from codemods.engine.fix_source import Accept, fix_project, safe, with_unsafe
from codemods.store.project import Project
from ddpfix import catalog, engine
from ddpfix.discovery import Tree
from ddpfix.results import Failure, Fixed, Report
from ddpfix.settings import Settings
from ddpfix.summary import Context, Launch, launches

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"
CLASSIFIER = EXAMPLES / "lightning-classifier" / "before"

MODEL = """
import lightning.pytorch as pl
import torch.nn.functional as F


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("val/loss", loss)
"""
# what a training draws in each step, and a callback goes by: an unsafe fix
STEP = MODEL.replace("validation_step", "training_step").replace("loss)\n", "loss, on_epoch=True)\n")
STEP += '\n\nSTOPS = pl.callbacks.EarlyStopping(monitor="val/loss")\n'


def context(**changes: object) -> Context:
    given: dict[str, object] = {
        "command": "ddpfix apply .",
        "versions": {"ddpfix": "0.1.0", "Python": "3.11.9"},
        "base": "0123456789abcdef0123456789abcdef01234567",
        "branch": "ddpfix/fixes",
        "home": "main",
        **changes,
    }
    return Context(**given)  # type: ignore[arg-type]


@cache
def on_disk(folder: Path, accept: Accept = safe) -> Fixed:
    """What fixing a folder of the fixtures comes to, as `ddpfix apply` sees it. It is asked for by many, and changed by none."""
    files = tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))
    tree = Tree(folder, files, tuple(p for p in files if p.endswith(".py")))
    return engine.fix(tree, Settings(), catalog.all_codemods(), accept)


def found_launches(folder: Path, changed: Mapping[str, bytes]) -> tuple[Launch, ...]:
    files = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    return launches(files, lambda path: (folder / path).read_bytes(), changed)


def in_memory(
    files: Mapping[str, str | bytes],
    *,
    unsafe: bool = False,
    codemods: Sequence[DdpCodemod] | None = None,
    failed: Sequence[Failure] = (),
    root: str = "/somewhere/of/the/user",
) -> Fixed:
    """What fixing a few files comes to; texts are dedented."""
    data = {p: textwrap.dedent(t).lstrip("\n").encode() if isinstance(t, str) else t for p, t in files.items()}
    project = Project.of(data)
    chosen = tuple(codemods if codemods is not None else (catalog.lookup(code) for code in ("DDP101", "DDP103", "DDP204")))
    paths = [p for p in data if p.endswith(".py") and project.module(p)]
    result = fix_project(project, lambda _p, ps: dict.fromkeys(ps, chosen), paths, with_unsafe if unsafe else safe)
    report = Report(Path(root), (*result.fixed, *result.left), len(paths), len(paths), tuple(failed))
    before = {p: data[p] for p in result.changed}
    return Fixed(report, before, result.changed, result.fixed, result.left, result.withdrawn)


def check_markdown(text: str) -> None:
    """Assert what a forge needs: fences closed, tables with equal columns, no word that calls a person or closes an issue."""
    opened = ""
    columns = folds = 0
    for number, line in enumerate(text.split("\n"), 1):
        where = f"line {number}: {line[:160]!r}"
        if opened:
            opened = "" if line == opened else opened
            continue
        if ticks := re.match(r"(`{3,})\w*$", line):
            opened = ticks.group(1)
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (cells and columns) or cells == columns, where
        columns = cells
        plain = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", line)
        assert "`" not in plain.replace("\\`", ""), where
        assert not re.search(r"(?<![\w\\(])[@#]\w", plain.lstrip("#")), where
        if re.fullmatch(r"</?details>|<summary>[^<>]*</summary>", plain):
            folds += {"<details>": 1, "</details>": -1}.get(plain, 0)
            continue
        assert not re.search(r"(?<!\\)<(?!br>)\w", plain), where
        assert line == line.rstrip(), where
    assert not opened, "a fence is open"
    assert not folds, "a fold is open"
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def section(text: str, heading: str) -> str:
    """The part of a document under a heading that begins with `heading`, up to the next one of its level, or the first fold of
    those at the end."""
    level = heading.partition(" ")[0]
    start = text.index(f"\n{heading}")
    ends = [text.find(stop, start + 2) for stop in (f"\n{level} ", "\n<details>\n<summary>Undo</summary>")]
    return text[start : min([end for end in ends if end >= 0], default=len(text))]


def block(text: str, code: str) -> str:
    """What stands under the heading of a codemod among the fixes."""
    start = re.search(rf"^### .* \({code}\): ", text, re.M)
    assert start is not None, code
    end = re.search(r"^##+ ", text[start.end() :], re.M)
    return text[start.start() :][: start.end() - start.start() + (end.start() if end else len(text))]


def fold(text: str, title: str) -> str:
    """What stands in a fold."""
    start = text.index(f"<summary>{title}</summary>")
    return text[start : text.index("</details>", start)]


def fenced(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def unfolded(text: str) -> str:
    """What a reader sees before he opens anything: of each fold its title."""
    return re.sub(r"<details>\n<summary>(.*?)</summary>.*?\n</details>\n", r"\1\n", text, flags=re.S)
