"""DDP803: names of Lightning that have moved, and such as are gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import LIGHTNING, dotted, last, qualified
from codemods.analysis.trainer.gone_hooks import gone_hooks
from codemods.analysis.trainer.gone_names import gone_row, module_gone, root_is_package, split
from codemods.analysis.trainer.lightning_upgrade import Standing, is_tried, standing
from codemods.analysis.trainer.moved_imports import Old, moved_edits
from codemods.analysis.unused_modules import is_unused
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, RenameName, Severity
from codemods.data.lightning_names import (
    GONE,
    GONE_CALLBACK_HOOKS,
    GONE_HOOKS,
    HOOKS_GONE,
    MOVED,
    OF_EVERY_STRATEGY,
    OLD_HOLDERS,
    STRATEGY_SINCE,
    Gone,
    Moved,
)
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_WORDS = tuple(dict.fromkeys(n.encode() for n in (*(m.name for m in MOVED.values()), *(g.name for g in GONE if g.name))))
_HOOKS = tuple(f"def {name}(".encode() for name in (*GONE_HOOKS, *GONE_CALLBACK_HOOKS))
_NEW_PLACE = lazy(r" has no \w+ from Lightning [\d.]+ on: it is ([\w.]+)$")  # of one name in an import
_LONGEST_SUBJECT = 60  # characters
_MODULES = tuple(dict.fromkeys(last(g.module).encode() for g in GONE if not g.name))


class LightningMovedNames(DdpCodemod):
    """A name of Lightning that has moved, or is gone, in the versions that the project allows.

    ## What it does
    Writes imports and dotted names of Lightning for their new place: `pytorch_lightning.utilities.distributed.rank_zero_only`,
    `core.lightning.LightningModule`, `callbacks.base.Callback`, `loggers.base`, `profiler`, `utilities.cli`, `utilities.seed` and
    others. `trainer.training_type_plugin.barrier()` becomes `trainer.strategy.barrier()`. What is gone without a successor is
    reported, with what takes its place; so are hooks that no Trainer calls any more (`on_epoch_start`, `on_batch_end` of a
    callback).

    ## Why it matters
    The program ends at its first line: `ModuleNotFoundError: No module named 'pytorch_lightning.utilities.distributed'`; or in
    the middle of the training, where a hook reads `trainer.training_type_plugin`. A hook that is gone ends the program with
    Lightning 1.8 and 1.9 (`RuntimeError`), and is never called, without a word, by Lightning 2.

    ## Example
    ```python
    import pytorch_lightning as pl
    from pytorch_lightning.utilities.distributed import rank_zero_only


    class Report(pl.Callback):
        @rank_zero_only
        def on_train_end(self, trainer, pl_module):
            print("finished", trainer.current_epoch)
    ```

    ## Use instead
    ```python
    import pytorch_lightning as pl
    from pytorch_lightning.utilities import rank_zero_only


    class Report(pl.Callback):
        @rank_zero_only
        def on_train_end(self, trainer, pl_module):
            print("finished", trainer.current_epoch)
    ```

    ## Safety
    Safe: the name is the same object. The new place is one of every version since 1.2, or of every version that the nearest pin
    allows, or the setting `target-lightning` asks for it. Unsafe: nothing pins Lightning, or the pin allows versions on
    both sides of the move.

    ## Refuses
    - an upper bound or an exact pin below the move: nothing is said, unless `target-lightning` is set
    - an import in a `try` that catches ImportError, or under a test of a version: nothing is said; so is a file or a
      function that is imported or called under tests of a package's version alone
    - what is gone without a successor of the same meaning is reported, with what to write
    - `import pytorch_lightning.profiler as p`, and star imports: the module itself is bound
    - `trainer.training_type_plugin` that is handed on or compared, and members that strategies do not have
    - a new name that the file gives another meaning
    - a file that no program of the repository imports or names, where the repository is no package, or where its requirement
      files have torch and no Lightning (a vendored one): nothing is said
    - a hook that the project calls itself or reads by its name, and one of a class with a base that is not seen: nothing is said

    ## References
    The modules of twelve wheels of pytorch-lightning, 1.2.10 to 2.6.6, each name followed to its definition; two-process runs
    of Lightning 2.6.6; `configuration_validator.py` of 1.9.5, for the hooks.
    """

    code = "DDP803"
    severity = "crash"
    subject = "Import the names of Lightning that have moved"
    must_show = "The program starts with the version of Lightning that is installed."
    printed = (
            "ModuleNotFoundError: No module named 'pytorch_lightning",
            "ImportError: cannot import name",
            "has no attribute 'training_type_plugin'",
        )
    TRIGGERS = ((b"lightning",), (*_WORDS, *_MODULES, *_HOOKS, b"training_type_plugin", b"accelerator.barrier"))

    @classmethod
    def commit_subject(cls, findings: Sequence[Finding]) -> str:
        """With the import, where it is one: `Import seed_everything from pytorch_lightning`."""
        places = {found[1] if (found := _NEW_PLACE.search(finding.message)) else "" for finding in findings}
        home, _, name = places.pop().rpartition(".") if len(places) == 1 else ("", "", "")
        said = f"Import {name} from {home}"
        return said if home and len(said) <= _LONGEST_SUBJECT else cls.subject

    @classmethod
    def appendix(cls) -> str:
        """The table."""
        head = ["## The names", "", "| old place | name | new place | there since | gone from |", "|" + " --- |" * 5]
        rows = [f"| `{_shown(m.old)}` | `{m.name}` | `{m.place}` | {_v(m.since)} | {_v(m.gone)} |" for m in MOVED.values()]
        gone = ["", "Without a successor of the same meaning:", "", "| place | gone from | instead |", "|" + " --- |" * 3]
        gone += [f"| `{_shown(g.module)}{'.' if g.name else ''}{g.name}` | {_v(g.since)} | {g.instead} |" for g in GONE]
        hooks = ["", f"Hooks that no Trainer calls from {_v(HOOKS_GONE)} on:", "", "| hook | instead |", "|" + " --- |" * 2]
        hooks += [f"| `{name}` | {instead} |" for name, instead in GONE_HOOKS.items()]
        hooks += [f"| `{name}` of a callback | {instead} |" for name, instead in GONE_CALLBACK_HOOKS.items()]
        return "\n".join([*head, *rows, *gone, *hooks])

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        imported = any(name.partition(".")[0] in LIGHTNING for name in module.imported_modules)
        if not imported and not module.holds(b".training_type_plugin"):
            return
        for statement in module.nodes(ast.ImportFrom):
            yield from self._import(module, project, statement)
        for plain in module.nodes(ast.Import):
            yield from self._module(module, project, plain)
        for node in module.nodes(ast.Attribute):
            yield from self._attribute(module, project, node)
        for gone in gone_hooks(project, module) if not is_test_file(module.path) else ():
            ends = f"Lightning {_v(HOOKS_GONE)} and 1.9 end the program over it, and Lightning 2 never calls it"
            message = f"{gone.owner.name}.{gone.hook.name} is a hook no more: {ends}"
            yield self.finding(module, gone.hook, message, evidence=gone.known.evidence, reason=f"write {gone.instead}")

    # Imports

    def _import(self, module: SourceModule, project: Project, node: ast.ImportFrom) -> Iterator[Finding]:
        package, inner = split("" if node.level else node.module or "")
        if not package or is_tried(module, node, "ImportError", "ModuleNotFoundError", "Exception"):
            return
        own = {n.name for n in module.tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}  # which take the name's place
        old = [Old(a, MOVED[inner, a.name]) for a in node.names if (inner, a.name) in MOVED and (a.asname or a.name) not in own]
        judged = [(o, s) for o in old if (s := standing(project, module.path, node, since=o.moved.since, gone=o.moved.gone))]
        if judged:
            yield self._moved(project, module, node, package, judged)
        for gone in dict.fromkeys(g for a in node.names if (inner, a.name) not in MOVED and (g := gone_row(inner, a.name))):
            names = [a.name for a in node.names if (inner, a.name) not in MOVED and gone_row(inner, a.name) is gone]
            if known := standing(project, module.path, node, since=gone.since, gone=gone.since):
                message = f"{', '.join(names)}: {_is_gone(package, gone)}"
                yield self.finding(module, node, message, evidence=known.evidence, reason=gone.instead)

    def _moved(
        self, project: Project, module: SourceModule, node: ast.ImportFrom, package: str, judged: Sequence[tuple[Old, Standing]]
    ) -> Finding:
        old = [o for o, _ in judged]
        first = old[0].moved
        names = ", ".join(o.moved.name for o in old)
        where = " and ".join(dict.fromkeys(f"{package}.{o.moved.place}".removesuffix(".") for o in old))
        edits, why = moved_edits(project, module, node, package, old)
        weakest = next((s for _, s in judged if s.level is not Applicability.SAFE), judged[0][1])
        return self.finding(
            module,
            node,
            f"{package}.{first.old} has no {names} from Lightning {_v(first.gone)} on: it is {where}",
            level=Applicability.DISPLAY if why else weakest.level,
            edits=edits,
            evidence=(*weakest.evidence, *(_is_there(package, o.moved, s) for o, s in judged if not why and not s.assumes)),
            reason=why or weakest.assumes,
            severity=_severity(project, module),
        )

    def _module(self, module: SourceModule, project: Project, node: ast.Import) -> Iterator[Finding]:
        for alias in node.names:
            package, inner = split(alias.name)
            gone = module_gone(inner) if package else None
            if gone is None or is_tried(module, node, "ImportError", "ModuleNotFoundError", "Exception"):
                continue
            if known := standing(project, module.path, node, since=gone.since, gone=gone.since):
                reason = f"the module is bound here; {gone.instead}"
                yield self.finding(module, node, _is_gone(package, gone), evidence=known.evidence, reason=reason)

    # Dotted names

    def _attribute(self, module: SourceModule, project: Project, node: ast.Attribute) -> Iterator[Finding]:
        if node.attr == "training_type_plugin" or (node.attr == "barrier" and dotted(node.value).endswith("trainer.accelerator")):
            yield from self._strategy(module, project, node)
            return
        name = qualified(module, node)
        package, inner = split(name)
        if not package or is_tried(module, node, "AttributeError", "ImportError"):
            return
        at, _, own = inner.rpartition(".")
        written = dotted(node)
        if (moved := MOVED.get((at, own))) is not None and written.endswith(f"{'.' * bool(at)}{at}.{own}"):
            known = standing(project, module.path, node, since=moved.since, gone=moved.gone)
            if known is not None:
                root = written.removesuffix(f".{own}").removesuffix(at).removesuffix(".")
                code = ".".join(p for p in (root, moved.new, moved.new_name) if p)
                message = f"{written} is gone from Lightning {_v(moved.gone)} on: it is {code}"
                edit = RenameName(module.path, module.span(node), code)
                there = [] if known.assumes else [_is_there(package, moved, known)]
                yield self.finding(
                    module, node, message, level=known.level, edits=[edit], evidence=[*known.evidence, *there],
                    reason=known.assumes,
                )  # fmt: skip
            return
        gone = next((g for g in GONE if g.name == own and g.module == at), None) or module_gone(inner, exact=True)
        if gone is None or not root_is_package(module, node):
            return
        if known := standing(project, module.path, node, since=gone.since, gone=gone.since):
            message = f"{written}: {_is_gone(package, gone)}"
            yield self.finding(module, node, message, evidence=known.evidence, reason=gone.instead)

    def _strategy(self, module: SourceModule, project: Project, node: ast.Attribute) -> Iterator[Finding]:
        """`trainer.training_type_plugin`, and what else led to the strategy."""
        plugin = node if node.attr == "training_type_plugin" else node.value
        holder = dotted(plugin)
        trainer, _, path = holder.rpartition("trainer.")
        old = OLD_HOLDERS.get(path)
        if old is None or (trainer and trainer[-1] not in "._"):
            return
        known = standing(project, module.path, node, since=STRATEGY_SINCE, gone=old)
        if known is None or is_tried(module, node, "AttributeError", "Exception") or _asks(module, node):
            return
        new = f"{trainer}trainer.strategy"
        asked = node.attr if plugin is not node else getattr(module.parent(node), "attr", "")
        member = asked or "all that is asked of it"
        why = "" if asked in OF_EVERY_STRATEGY else f"write {new}; whether it has {member} is yours to look up"
        yield self.finding(
            module,
            plugin,
            f"{holder} is an AttributeError from Lightning {_v(old)} on: the strategy is {new}",
            level=Applicability.DISPLAY if why else known.level,
            edits=[RenameName(module.path, module.span(plugin), new)],
            evidence=known.evidence,
            reason=why or known.assumes,
        )


def _severity(project: Project, module: SourceModule) -> Severity:
    """An import in a file that no program of the project imports ends whoever does, and no run of today."""
    return "risk" if is_unused(project, module.path) else ""


def _is_there(package: str, moved: Moved, known: Standing) -> Evidence:
    """That each version which may run has the new place."""
    place = f"{package}.{moved.place}"
    if moved.since <= (1, 2) or not known.evidence:
        return Evidence("safe", f"{place} is there in every Lightning since 1.2")
    return Evidence("safe", f"{place} is there from Lightning {_v(moved.since)} on, and no older one may run here")


def _asks(module: SourceModule, node: ast.AST) -> bool:
    """True where the program first asks which of the attributes there is."""
    tests = [u.test for u in module.ancestors(node) if isinstance(u, (ast.If, ast.IfExp))]
    return any("hasattr" in module.text_of(test) for test in tests)


def _is_gone(package: str, gone: Gone) -> str:
    place = ".".join(p for p in (package, gone.module, gone.name) if p)
    return f"{place} is gone from Lightning {_v(gone.since)} on"


def _shown(inner: str) -> str:
    return inner or "pytorch_lightning"


def _v(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
