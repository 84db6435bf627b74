"""The kit for authors fails where it should: a check that cannot fail proves nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.metrics.synced_metric_object import SyncedMetricObject
from codemods.store.project import Project
from ddpfix.testing import MAIN, check_nothing, check_told, check_transformed, findings_of, fix


class Renames(DdpCodemod):
    """`old()` -> `new()`; told where it has arguments; unsafe with `maybe()`."""

    code = "DDP990"
    TRIGGERS = ((b"old(", b"maybe("),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("old", "maybe"):
            if call.args:
                yield self.finding(module, call, "old called", reason="it has arguments")
                continue
            assert isinstance(call.func, ast.Name)
            level = Applicability.SAFE if call.func.id == "old" else Applicability.UNSAFE
            edit = ReplaceExpression(module.path, module.span(call.func), self.new())
            yield self.finding(module, call, "old called", level=level, edits=[edit], reason="it is assumed to be welcome")

    def new(self) -> str:
        return "new"


class Circles(Renames):
    def new(self) -> str:
        return "old  .x".partition(" ")[0]


class Grows(DdpCodemod):
    """Never content: each run adds another call."""

    code = "DDP991"
    TRIGGERS = ((b"f(",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("f")[:1]:
            edit = ReplaceExpression(module.path, module.span(call), f"f({module.text_of(call)})")
            yield self.finding(module, call, "f called", level=Applicability.SAFE, edits=[edit])


def test_the_plain_case_and_its_levels() -> None:
    (finding,) = check_transformed(Renames, "  x = old()\n", "  x = new()\n")
    assert finding.code == "DDP990" and finding.id
    check_transformed(Renames, "maybe()\n", "new()\n", unsafe=True)
    check_told(Renames, "old(1)\n", reason="it has arguments")
    check_nothing(Renames, "other()\n")


def test_a_wrong_expectation_fails() -> None:
    with pytest.raises(AssertionError, match="wanted"):
        check_transformed(Renames, "old()\n", "newer()\n")
    with pytest.raises(AssertionError):
        check_transformed(Renames, "maybe()\n", "new()\n")
    with pytest.raises(AssertionError, match="without being asked for"):
        check_transformed(Renames, "old()\n", "new()\n", unsafe=True)
    with pytest.raises(AssertionError):
        check_nothing(Renames, "old()\n")
    with pytest.raises(AssertionError, match="nothing was reported"):
        check_told(Renames, "old()\n", reason="it has arguments")
    with pytest.raises(AssertionError, match="no reason says"):
        check_told(Renames, "old(1)\n", reason="another")


def test_a_text_that_is_no_python_is_not_nothing() -> None:
    for check in (lambda: check_nothing(Renames, '""""x'), lambda: check_transformed(Renames, "x = (", "x = (")):
        with pytest.raises(SyntaxError):
            check()
    with pytest.raises(SyntaxError):
        check_nothing(Renames, "x = 1\n", files={"other.py": "def ("})
    with pytest.raises(SyntaxError):
        check_transformed(Renames, "old()\n", "new(\n")


def test_a_fix_that_never_ends_fails() -> None:
    with pytest.raises(AssertionError):
        check_transformed(Grows, "f()\n", "f(f())\n")
    with pytest.raises(AssertionError):
        check_transformed(Circles, "old()\n", "old()\n")


def test_other_files_are_given_and_checked() -> None:
    step = "  def validation_step(self, b):\n    self.log('a', self.acc, sync_dist=True)\n"
    before = f"from base import Base\nclass M(Base):\n{step}"
    base = (
        "import lightning as L\nfrom torchmetrics import Accuracy\n\n"
        "class Base(L.LightningModule):\n  def __init__(self):\n    self.acc = Accuracy()\n"
    )
    after = before.replace(", sync_dist=True", "")
    files = {"base.py": base}
    check_transformed(SyncedMetricObject, before, after, files=files)
    check_nothing(SyncedMetricObject, before)
    with pytest.raises(AssertionError, match="other files"):
        check_transformed(SyncedMetricObject, before, after, files=files, changed={"base.py": ""})


class Elsewhere(Renames):
    """Changes another file, too."""

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        other = project.module("other.py")
        for call in module.calls_named("old"):
            assert other is not None
            places = [(module, call), (other, other.nodes(ast.Call)[0])]
            edits = [ReplaceExpression(m.path, m.span(c.func), "new") for m, c in places]
            yield self.finding(module, call, "old called", level=Applicability.SAFE, edits=edits)


def test_a_change_in_another_file_must_be_named() -> None:
    files = {"other.py": "x()\n"}
    check_transformed(Elsewhere, "old()\n", "new()\n", files=files, changed={"other.py": "new()\n"})
    with pytest.raises(AssertionError, match="other files"):
        check_transformed(Elsewhere, "old()\n", "new()\n", files=files)


def test_findings_and_results_to_look_at() -> None:
    assert [f.path for f in findings_of(Renames, "old()\n")] == [MAIN]
    assert [f.path for f in findings_of(Renames, "old()\n", path="pkg/x.py")] == ["pkg/x.py"]
    assert findings_of(Renames, "x = 1\n") == []
    assert fix(Renames, "old()\n").changed == {MAIN: b"new()\n"}
