"""LightningModules that optimise by hand: DDP expects every parameter in each `manual_backward`, a backward pass of its own.

Lightning 2 makes DDP ready before each of them. A pass that leaves out what another one trains (a discriminator's loss on a
detached picture) ends the run without the flag; measured on torch 2.13 and Lightning 2.6.6 with two processes.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.flow_frame import Pass, TooDeep
from codemods.analysis.model.flow_values import Cause, Decision
from codemods.analysis.model.member_kinds import Kind
from codemods.analysis.model.model_usage import Entry, Judge, Usage, Verdict, usage_of
from codemods.analysis.names import dotted
from codemods.api.findings import Asked, Evidence
from codemods.data.find_unused_parameters import FLAG_FORCED_BY_HAND_BELOW
from codemods.files.source import walk
from codemods.store.project import Project


def lightning_usage(project: Project, site: ClassSite) -> Usage | str:
    """The verdict over a LightningModule, or why its losses are not followed."""
    if any(a.arg == "optimizer_idx" for f in _training_steps(site) for a in f.args.args):
        return f"{site.name} has several optimizers: its losses alternate"
    if not _optimises_by_hand(site):
        return usage_of(project, site, Entry.TRAINING_STEP)
    pin = lightning_pin(project, near=site.module.path)
    forced = pin is not None and pin.surely_below(FLAG_FORCED_BY_HAND_BELOW)
    key = ("usage by hand", site.module.path, site.node.lineno)
    found = project.memo(key, lambda: _HandJudge(project, site).parted()) if not forced else None
    return found or f"{site.name} optimises by hand: its losses may alternate"


def _training_steps(site: ClassSite) -> list[ast.FunctionDef]:
    return [n for n in walk(site.node) if isinstance(n, ast.FunctionDef) and n.name == "training_step"]


def _optimises_by_hand(site: ClassSite) -> bool:
    assigns = (node for node in walk(site.node) if isinstance(node, ast.Assign))
    return any(dotted(target) == "self.automatic_optimization" for node in assigns for target in node.targets)


class _HandJudge(Judge):
    """Judges by the values that `self.manual_backward` is called on."""

    def __init__(self, project: Project, site: ClassSite) -> None:
        super().__init__(project, site, Entry.TRAINING_STEP, settings=True)
        self.passes: list[Pass] = []
        self.flow.by_hand = self.passes

    def parted(self) -> Usage | None:
        """SOMETIMES, with what each pass leaves out to another; None where that does not show."""
        try:
            self.parameters = self.flow.parameters_below(self.root)
            self.flow.all_paths = frozenset(self.parameters)
            self._run()
        except (TooDeep, RecursionError):
            return None
        known = {p for p, ref in self.parameters.items() if ref.member.kind is not Kind.UNKNOWN} - self.flow.absent
        trained = frozenset(p for one in self.passes for p in one.loss.must) & known
        skipped = []
        for one in self.passes:
            left = trained - one.loss.must - one.loss.may
            if left and (one.loss.must | one.loss.may) & frozenset(self.parameters):
                skipped.append(Decision(Cause.TURN, one.text, one.path, one.line, left))
        if not skipped:
            return None
        rows = [
            Evidence("static", f"{p.text} is a backward pass of its own", p.path, p.line, asked=Asked.PARAMETERS)
            for p in self.passes
        ]
        reentrant = sorted(place for place, may_be in self.flow.checkpoints.items() if may_be)
        return Usage(
            Verdict.SOMETIMES, self.site, self.entry, tuple(skipped), assumptions=tuple(self.flow.assumptions),
            evidence=tuple(rows), checkpoints=tuple(reentrant), taken=tuple(self.flow.taken),
        )  # fmt: skip
