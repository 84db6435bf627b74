"""The navigation of the site: written down here, with the codemods by their topics, and put into zensical.toml."""

from __future__ import annotations

import json
from pathlib import Path

from codemods.api.codemod import TOPICS
from ddpfix.catalog import all_codemods

ROOT = Path(__file__).parents[2]
MARK = "# below: made from docs/made/navigation.py by `make docs`\n"
Part = tuple[str, "str | tuple[Part, ...]"]

PARTS: tuple[Part, ...] = (
    ("Home", "index.md"),
    ("Start", (
        ("Install and first run", "start.md"),
        ("Tutorial: from a hang to a merge", "tutorial.md"),
        ("Which bug do I have?", "symptoms.md"),
    )),
    ("How-to", (
        ("On your own GPU machine", "how-to/own-machine.md"),
        ("On SLURM", "how-to/slurm.md"),
        ("Before each commit", "how-to/pre-commit.md"),
        ("On GitHub", "how-to/github.md"),
        ("On GitLab", "how-to/gitlab.md"),
        ("In the editor", "editors.md"),
        ("In notebooks", "notebooks.md"),
        ("Over a fleet of repositories", "fleet.md"),
        ("From a laptop to Kubernetes", "fleet-scale.md"),
        ("The pull-request bot", "bot.md"),
    )),
    ("Commands", (
        ("check in CI", "ci.md"),
        ("apply and undo", "apply.md"),
        ("review in the terminal", "review.md"),
        ("review in a browser", "review-page.md"),
        ("diagnose a log", "diagnose.md"),
        ("probe for unused parameters", "probe.md"),
        ("prove on two processes", "prove.md"),
        ("tune", "tune.md"),
        ("Renames of your own", "rewrites.md"),
        ("Codemods of your own", "plugins.md"),
    )),
    ("Codemods", "codemods.md"),
    ("Reference", (
        ("Command line", "cli.md"),
        ("Settings", "settings.md"),
        ("JSON", "json.md"),
        ("Python API", "api.md"),
        ("Spellings of the rank", "ranks.md"),
        ("Training arguments by version", "training-arguments.md"),
        ("Proofs", "proofs.md"),
        ("Glossary", "glossary.md"),
    )),
    ("Background", (
        ("Architecture", "architecture.md"),
        ("What differs between the ranks", "variance.md"),
        ("Precision", "precision.md"),
        ("Reliability", "reliability.md"),
        ("Security", "security.md"),
        ("Contributing", "contributing.md"),
        ("Changes", "changelog.md"),
    )),
)  # fmt: skip
LATER = frozenset({"editors.md"})  # has its place here, and no page yet


def written() -> str:
    """zensical.toml: by hand down to the mark, the navigation below it."""
    by_hand = (ROOT / "zensical.toml").read_text(encoding="utf-8").partition(MARK)[0]
    return f"{by_hand}{MARK}nav = [\n{''.join(_line(part, 1) for part in _parts())}]\n"


def pages() -> list[str]:
    """Every page that the navigation leads to."""
    return [page for part in _parts() for page in _pages(part)]


def _parts() -> tuple[Part, ...]:
    return tuple(("Codemods", _codemods()) if name == "Codemods" else (name, below) for name, below in PARTS)


def _codemods() -> tuple[Part, ...]:
    """The list of all, then a group for each topic."""
    out: list[Part] = [("All codemods", "codemods.md")]
    for topic in TOPICS:
        here = [c for c in all_codemods() if c.topic() == topic]
        group = tuple((f"{c.code} {c.rule_name()}", f"codemods/{c.rule_name()}.md") for c in here)
        out += [(topic.replace("_", " ").capitalize(), group)] if group else []
    return tuple(out)


def _line(part: Part, depth: int) -> str:
    name, below = part
    space = "  " * depth
    if isinstance(below, str):
        there = below not in LATER or (ROOT / "docs" / below).is_file()
        return f"{space}{{ {json.dumps(name)} = {json.dumps(below)} }},\n" if there else ""
    return f"{space}{{ {json.dumps(name)} = [\n{''.join(_line(p, depth + 1) for p in below)}{space}] }},\n"


def _pages(part: Part) -> list[str]:
    below = part[1]
    if not isinstance(below, str):
        return [page for one in below for page in _pages(one)]
    return [below] if below not in LATER or (ROOT / "docs" / below).is_file() else []
