"""DDP802: strategies of Lightning that are handed over, or named, as plug-ins."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.trainer.device_arguments import FLAG_DEFAULT
from codemods.analysis.trainer.lightning_trainers import Change, keywords, more_of, trainer_calls
from codemods.analysis.trainer.lightning_upgrade import Standing, is_tried, standing
from codemods.analysis.trainer.moved_imports import Old, moved_edits
from codemods.analysis.trainer.none_values import asked_elsewhere, nones_of
from codemods.analysis.trainer.strategies_as_plugins import handed_past_trainer
from codemods.analysis.trainer.strategies_of_commands import command_with_strategy
from codemods.analysis.trainer.strategy_plugins import in_plugins
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import (
    DropKeyword,
    Edit,
    Evidence,
    Finding,
    RenameKeyword,
    RenameName,
    ReplaceExpression,
    SetKeyword,
    lowest,
)
from codemods.data.lightning_arguments import (
    DEVICES_SINCE,
    GONE_PLUGIN_ARGUMENTS,
    NONE_WAS_DEFAULT,
    PLUGIN_CLASSES,
    PLUGIN_CLASSES_GONE,
    PLUGIN_PLACES,
    PLUGIN_RENAMED,
    PLUGINS_GONE,
    TOLD_PLUGIN_CLASSES,
)
from codemods.data.lightning_names import Moved
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_PACKAGES = ("pytorch_lightning", "lightning.pytorch")


_BESIDE = "{}:{} gives `{}`, which Lightning refuses beside strategy=: take it out of the commands in the same change"


class LightningPlugins(DdpCodemod):
    """A strategy of Lightning that is handed over as a plug-in, or is called one.

    ## What it does
    `plugins=DDPPlugin(…)` and `plugins="ddp_find_unused_parameters_false"` of a Trainer become `strategy=`; other plug-ins stay
    where they are. `DDPPlugin` becomes `DDPStrategy` of `pytorch_lightning.strategies`, `DeepSpeedPlugin` becomes
    `DeepSpeedStrategy`. Other such classes are reported.

    ## Why it matters
    The program ends at its imports (`cannot import name 'DDPPlugin' from 'pytorch_lightning.plugins'`), or where it makes the
    Trainer: `Found invalid type for plugin`.

    ## Example
    ```python
    # requirements.txt: pytorch-lightning>=2.0
    import pytorch_lightning as pl
    from pytorch_lightning.plugins import DDPPlugin


    def train(model, data):
        trainer = pl.Trainer(devices=2, plugins=DDPPlugin(find_unused_parameters=True))
        trainer.fit(model, data)
    ```

    ## Use instead
    ```python
    # requirements.txt: pytorch-lightning>=2.0
    import pytorch_lightning as pl
    from pytorch_lightning.strategies import DDPStrategy


    def train(model, data):
        trainer = pl.Trainer(devices=2, strategy=DDPStrategy(find_unused_parameters=True))
        trainer.fit(model, data)
    ```

    ## Safety
    Safe: the class takes the same arguments at its new place. Every version that the nearest pin allows has that and no longer
    the old one, or `target-lightning` asks for it. Unsafe: nothing pins Lightning, or the pin allows versions on both sides;
    `strategy=` stands beside it, which the plug-in replaced.

    ## Refuses
    - an upper bound or an exact pin below the change: nothing is said, unless `target-lightning` is set
    - an import in a `try` that catches ImportError, a call under a test of a version: nothing is said
    - requirement files that disagree, where one of them allows a version without the new name
    - a class of the project that derives from the plug-in: the methods have other names
    - `num_nodes=` and `sync_batchnorm=`, which are arguments of the Trainer alone
    - arguments without a name: strategies take `accelerator` first
    - two strategies in one list
    - a Trainer of the command line whose commands give a strategy too (`--accelerator ddp`): reported, for Lightning refuses two
    - a strategy that comes to `plugins` on a way that is not seen to end in a call of the Trainer (`options["plugins"] = …`, a
      list that is filled): the import is reported

    ## References
    The classes of ten wheels of pytorch-lightning, 1.2.10 to 2.6.6: both names in 1.6 and 1.7, the new one alone since 1.8;
    strategies in `plugins=` were deprecated in 1.5 and are refused from 1.7 on. `DeepSpeedStrategy` of 1.6.5 to 2.6.6 takes all
    arguments that `DeepSpeedPlugin` of 1.5.10 takes, but for `num_nodes`.
    """

    code = "DDP802"
    severity = "crash"
    subject = "Hand strategies to the Trainer as strategies"
    must_show = "The program makes its Trainer with the version of Lightning that is installed."
    printed = ("cannot import name 'DDPPlugin'", "Found invalid type for plugin")
    TRIGGERS = ((b"lightning",), (b"plugins", b"Plugin"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for call in trainer_calls(project, module):
            yield from self._keyword(module, project, call)
        for statement in module.nodes(ast.ImportFrom):
            yield from self._import(module, project, statement)
        for node in module.nodes(ast.Attribute):
            yield from self._attribute(module, project, node)

    def _keyword(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Finding]:
        given = keywords(call)
        keyword = given.get("plugins")
        found = in_plugins(module, keyword.value) if keyword is not None else None
        if keyword is None or found is None or (found.strategy is None and not found.several):
            return
        nones = list(nones_of(module, found.strategy)) if found.strategy is not None else []
        since = NONE_WAS_DEFAULT["strategy"] if nones else DEVICES_SINCE
        known = standing(project, module.path, keyword, since=since, gone=PLUGINS_GONE)
        if known is None:
            return
        change = _to_strategy(module, call, keyword.value, found.strategy, found.rest, nones)
        if found.several:
            change = Change((), refusals=("which of the two strategies counts is not shown",))
        elif beside := _given_beside(project, module, call):
            change = Change((), refusals=(beside,))
        message = f"{module.text_of(call.func)}(plugins=…) takes no strategy from Lightning {_v(PLUGINS_GONE)} on"
        yield self._judged(module, keyword, message, change, known, _flag_evidence(found.strategy))

    def _import(self, module: SourceModule, project: Project, node: ast.ImportFrom) -> Iterator[Finding]:
        package, inner = _split("" if node.level else node.module or "")
        if inner not in PLUGIN_PLACES or is_tried(module, node, "ImportError", "ModuleNotFoundError", "Exception"):
            return
        known = standing(project, module.path, node, since=PLUGIN_RENAMED, gone=PLUGIN_CLASSES_GONE)
        if known is None:
            return
        old = [Old(a, _row(inner, a.name)) for a in node.names if a.name in PLUGIN_CLASSES]
        if old:
            edits, why = moved_edits(project, module, node, package, old)
            why = _why_not(project, module, {o.alias.asname or o.alias.name for o in old}) or why
            names = ", ".join(f"{o.alias.name} (now {package}.{o.moved.place})" for o in old)
            yield self._judged(module, node, _gone(names), Change(tuple(edits), refusals=(why,) if why else ()), known)
        for alias in node.names:
            if alias.name in TOLD_PLUGIN_CLASSES:
                change = Change((), refusals=(TOLD_PLUGIN_CLASSES[alias.name],))
                yield self._judged(module, node, _gone(alias.name), change, known)

    def _attribute(self, module: SourceModule, project: Project, node: ast.Attribute) -> Iterator[Finding]:
        if node.attr not in PLUGIN_CLASSES and node.attr not in TOLD_PLUGIN_CLASSES:
            return
        package, inner = _split(qualified(module, node))
        place, _, name = inner.rpartition(".")
        written = dotted(node)
        if place not in PLUGIN_PLACES or is_tried(module, node, "AttributeError", "ImportError"):
            return
        known = standing(project, module.path, node, since=PLUGIN_RENAMED, gone=PLUGIN_CLASSES_GONE)
        if known is None:
            return
        root = written.removesuffix(f".{inner}")
        if name not in PLUGIN_CLASSES or root == written:
            why = TOLD_PLUGIN_CLASSES.get(name, f"write {PLUGIN_CLASSES.get(name)} of {package}.strategies")
            change = Change((), refusals=(why,))
        else:
            why = _why_not(project, module, {written})
            edit = RenameName(module.path, module.span(node), f"{root}.strategies.{PLUGIN_CLASSES[name]}")
            change = Change((edit,), refusals=(why,) if why else ())
        yield self._judged(module, node, _gone(written), change, known)

    def _judged(
        self, module: SourceModule, at: ast.AST, message: str, change: Change, known: Standing, more: Sequence[Evidence] = ()
    ) -> Finding:
        level = lowest(change.level, known.level)
        reason = change.reason if change.refusals else "; ".join(r for r in (known.assumes, change.reason) if r)
        return self.finding(
            module, at, message, level=level, edits=change.edits, evidence=(*known.evidence, *more), reason=reason
        )


def _to_strategy(
    module: SourceModule,
    call: ast.Call,
    value: ast.expr,
    strategy: ast.expr | None,
    rest: Sequence[ast.expr],
    nones: Sequence[ast.expr],
) -> Change:
    if strategy is None:
        return Change(())
    path, span = module.path, module.span(call)
    text = module.text_of(strategy)
    doubts = []
    if more := more_of(module, call):
        doubts.append(f"assumes that {more} does not give strategy=")
    if "strategy" in keywords(call):
        doubts.append("assumes that the plug-in counts, not what strategy= is given")
    if rest:
        left = ", ".join(module.text_of(e) for e in rest)
        edits: list[Edit] = [SetKeyword(path, span, "strategy", text), ReplaceExpression(path, module.span(value), f"[{left}]")]
    elif "strategy" in keywords(call):
        edits = [SetKeyword(path, span, "strategy", text), DropKeyword(path, span, "plugins")]
    else:
        edits = [RenameKeyword(path, span, "plugins", "strategy")]
        edits += [ReplaceExpression(path, module.span(value), text)] if value is not strategy else []
    refusals = ("the strategy is written over several lines inside of a list",) if len(edits) > 1 and "\n" in text else ()
    edits += [ReplaceExpression(path, module.span(n), '"auto"') for n in nones]
    if nones and (why := asked_elsewhere(module, strategy)):
        refusals = (why,)
    return Change(tuple(edits), tuple(doubts), refusals)


def _given_beside(project: Project, module: SourceModule, call: ast.Call) -> str:
    """Why `strategy=` cannot stand in the call: a command gives one, too. "" where none does."""
    command = command_with_strategy(project, module, call)
    return _BESIDE.format(command.job, command.line, command.written) if command is not None else ""


def _why_not(project: Project, module: SourceModule, names: set[str]) -> str:
    """Why the new class cannot take the place of the old one in this file."""
    for trainer in trainer_calls(project, module):
        plugins = keywords(trainer).get("plugins")
        stays = plugins is not None and any(dotted(n) in names for n in walk(plugins.value))
        if stays and (beside := _given_beside(project, module, trainer)):
            return beside
    for heir in module.nodes(ast.ClassDef):
        if any(dotted(base) in names for base in heir.bases):
            return f"{heir.name} derives from it: the methods of strategies have other names"
    for call in module.nodes(ast.Call):
        gone = {k.arg for k in call.keywords if k.arg} & GONE_PLUGIN_ARGUMENTS if dotted(call.func) in names else set()
        if gone:
            return f"{', '.join(f'{g}=' for g in sorted(gone))} is an argument of the Trainer alone"
        if dotted(call.func) in names and call.args:
            return "its first argument has no name, and strategies take another one first: name it"
        place = handed_past_trainer(project, module, call) if dotted(call.func) in names else None
        if place is not None:
            line = getattr(place, "lineno", call.lineno)
            return f"line {line} hands it over as `plugins`, where the Trainer takes no strategy: hand it over as `strategy`"
    return ""


def _flag_evidence(strategy: ast.expr | None) -> tuple[Evidence, ...]:
    says = (
        isinstance(strategy, ast.Call)
        and "find_unused_parameters" not in keywords(strategy)
        and all(k.arg for k in strategy.keywords)
    )
    return (FLAG_DEFAULT,) if says and isinstance(strategy, ast.Call) and "DDP" in last(dotted(strategy.func)) else ()


def _row(inner: str, name: str) -> Moved:
    return Moved(inner, name, "strategies", PLUGIN_CLASSES[name], PLUGIN_RENAMED, PLUGIN_CLASSES_GONE)


def _split(name: str) -> tuple[str, str]:
    if family(name) != "lightning":
        return "", ""
    package = next((p for p in _PACKAGES if name.startswith(f"{p}.")), "")
    return (package, name[len(package) + 1 :]) if package else ("", "")


def _gone(names: str) -> str:
    return f"{names} is gone from Lightning {_v(PLUGIN_CLASSES_GONE)} on"


def _v(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
