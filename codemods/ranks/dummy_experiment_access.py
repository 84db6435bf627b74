"""DDP209: something taken from a logger's experiment, which is a dummy on every rank but 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.output.dummy_experiments import TakenFromNone, is_experiment, taken_from_none
from codemods.analysis.output.early_ranks import under_such_a_test
from codemods.analysis.output.effects import Kind, effects_of, phrases
from codemods.analysis.output.guard_edits import guard_edit
from codemods.analysis.output.guard_spelling import guard_for
from codemods.analysis.positions import behind
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding
from codemods.data.printed_errors import WAITING
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

# Parts of a run that hold things of their own; on the dummy they are functions that do nothing.
_PARTS = frozenset({"config", "summary"})
_LABELS = frozenset({"name", "id", "project", "entity"})
# What people read of a run.
_VALUES = frozenset({"dir", "id", "name", "path", "url", "log_dir", "project", "entity", "notes", "step", "start_time"})


class DummyExperimentAccess(DdpCodemod):
    """A logger's `experiment` is a dummy on every rank but 0, and something is taken from it.

    ## What it does
    Finds `logger.experiment.config.update(...)`, items set in `experiment.config` or `experiment.summary`, and values such as
    `experiment.dir`, that every rank reaches; puts the calls and the items under a test for rank 0. Finds what is taken of what a
    method gives back (`experiment.use_artifact(…).download()`), which is None on the other ranks.

    ## Why it matters
    On the other ranks Lightning's loggers answer with a dummy, each attribute of which is a function that does nothing. So
    `experiment.log(...)` is fine everywhere, but `experiment.config.update(...)` ends rank 1 with "'function' object has no
    attribute 'update'", and `os.path.join(experiment.dir, …)` with a TypeError. Rank 0 then waits for it.

    ## Example
    ```python
    import lightning.pytorch as pl
    from lightning.pytorch.loggers import WandbLogger


    def main(args):
        logger = WandbLogger(project="digits")
        trainer = pl.Trainer(logger=logger)
        logger.experiment.config.update(vars(args))
        trainer.fit(args.model)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    from lightning.pytorch.loggers import WandbLogger


    def main(args):
        logger = WandbLogger(project="digits")
        trainer = pl.Trainer(logger=logger)
        if trainer.is_global_zero:
            logger.experiment.config.update(vars(args))
        trainer.fit(args.model)
    ```

    ## Safety
    Safe: the other ranks lose nothing but the error. Above the Trainer the test is `rank_zero_only.rank == 0`, by which the
    logger itself decides whether to hand out the dummy. Unsafe where the arguments call something unknown, which every rank
    may need: the finding names it.

    ## Refuses
    - Values that are read (`experiment.dir`, `.id`, `.name` …), reported: the other ranks have none. `logger.save_dir` and
      `logger.version` are there on every rank; else broadcast what rank 0 has.
    - What `isinstance` or `type(...) ==` is asked of, and what stands under such a test: the dummy's values are of no such type.
    - What is taken of a method's result, reported; said nothing of where the result is tested, or the taking is in a `try`.
    - A name or an id inside a formatted string: it does no harm.
    - Plain calls on the experiment (`experiment.log(...)`, `add_scalar`): the dummy takes them.
    - What stands under a test or decorator for rank 0 already, or is called only from there.
    - `run.config` of a `wandb.init(...)`, which is a real run on every rank.
    - A collective among the arguments, reported: it must stay on every rank.
    - Statements that bind a name, places where no test is sure to work, a repository's own tests.

    ## References
    Lightning 2.6.6, `loggers/logger.py` (`DummyExperiment`, `rank_zero_experiment`), and two-process runs of each access.
    """

    code = "DDP209"
    severity = "crash"
    subject = "Change the experiment on the process that has it"
    must_show = "The run's page shows the settings, and both processes get past the line."
    printed = ("'function' object has no attribute", *WAITING)
    TRIGGERS = ((b".experiment",), (b"ightning", b"def on_", b"_step("))
    SITES = (re.compile(
        rb"\.experiment[ \t]*(?:\r?\n|\.(?:config|summary|dir|id|name|path|url|log_dir|project|entity|notes|step|start_time)\b)"
        rb"|=[ \t]*(?:await[ \t]+)?[\w.]+\.experiment\.\w+\(|\.experiment\.\w+\([^\n]*\)[.\[]"
    ),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        done: set[int] = set()
        told: set[int] = set()
        taken = [n for n in module.nodes(ast.Attribute) if _is_of_dummy(module, n) and not _asks_for_the_dummy(module, n)]
        reached = [n for n in taken if not ranks_reaching(project, module, n).some]
        reads = {id(module.function_of(n)): n for n in reversed(reached) if n.attr in _PARTS and _is_part_read(module, n)}
        for node in reached:
            statement = module.statement_of(node)
            function = id(module.function_of(node))
            if node.attr in _PARTS and function in reads:
                if function not in told and not under_such_a_test(project, module, statement):
                    yield self._told(module, reads[function])
                told.add(function)
                continue
            if id(statement) in done or under_such_a_test(project, module, statement):
                continue
            if node.attr in _PARTS and _only_changes(module, node, statement):
                run = _neighbours(module, statement)
                done |= {id(s) for s in run}
                if (found := self._guard(module, project, run, node)) is not None:
                    yield found
            elif node.attr in _VALUES and isinstance(node.ctx, ast.Load) and not _is_called(module, node):
                if _is_label(module, node):
                    continue
                done.add(id(statement))
                yield self._told(module, node)
        for part in taken_from_none(module):
            if not any(_is_on_one_rank(project, module, node) for node in (part.call, part.taken)):
                yield self._told_none(module, part)

    def _told_none(self, module: SourceModule, found: TakenFromNone) -> Finding:
        what = " ".join(module.text_of(found.call.func).split())
        part = f"`.{found.taken.attr}`" if isinstance(found.taken, ast.Attribute) else "an item"
        return self.finding(
            module, found.taken,
            f"{part} is taken of what `{what}(…)` gives back, but the experiment is a dummy on all but rank 0: there it is None, "
            "and they end with an error",
            evidence=[Evidence("static", "on the other ranks this call gives back None", module.path, found.call.lineno)],
            reason="make the call on rank 0 alone, and let the other ranks wait for what comes of it, a file or a path",
        )  # fmt: skip

    def _guard(
        self, module: SourceModule, project: Project, run: list[ast.stmt], node: ast.Attribute
    ) -> Finding | None:
        what = module.text_of(node)
        message = f"{what} is changed on every rank, but the experiment is a dummy on all but rank 0: they end with an error"
        effects = effects_of(project, module, [part for statement in run for part in _given(statement)])
        if waits := [e for e in effects.of(Kind.COLLECTIVE, Kind.METRICS, Kind.LOGGED) if not e.guarded]:
            reason = f"the ranks work the value out together ({phrases(waits)}): do that above a guard for rank 0"
            return self.finding(module, run[0], message, reason=reason)
        spelled = guard_for(project, module, run[0])
        if spelled is None or not (module.is_whole(run[0]) and module.is_whole(run[-1])):
            reason = "no test for rank 0 is sure to work here: put it under one by hand"
            return self.finding(module, run[0], message, reason=reason)
        unknown = effects.of(Kind.UNKNOWN)
        if others := effects.besides(Kind.UNKNOWN):
            reason = f"every rank may need what else is done there ({phrases(others)})"
            return self.finding(module, run[0], message, reason=reason)
        reason = f"assumes that the other ranks need not run {phrases(unknown)}" if unknown else spelled.assumes
        level = Applicability.UNSAFE if unknown else spelled.level()
        edits: list[Edit] = [guard_edit(project, module, run[0], run[-1], spelled.test), *spelled.edits]
        evidence = [Evidence("static", f"on the other ranks {what} is a function that does nothing", module.path, node.lineno)]
        return self.finding(module, run[0], message, level=level, edits=edits, evidence=evidence, reason=reason)

    def _told(self, module: SourceModule, node: ast.Attribute) -> Finding:
        what = module.text_of(node)
        message = f"{what} is read on every rank, but the experiment is a dummy on all but rank 0: there it is a function"
        reason = (
            "the other ranks have no such value: use logger.save_dir or logger.version, which all know, or read it on rank 0 "
            "and broadcast it"
        )
        return self.finding(module, node, message, reason=reason)


def _is_on_one_rank(project: Project, module: SourceModule, node: ast.AST) -> bool:
    return ranks_reaching(project, module, node).some or under_such_a_test(project, module, module.statement_of(node))


def _is_of_dummy(module: SourceModule, node: ast.Attribute) -> bool:
    """True for `….experiment.x` of a logger, be the experiment written there or bound to a name."""
    if node.attr not in _PARTS and node.attr not in _VALUES:
        return False
    return is_experiment(module, node.value)


def _is_label(module: SourceModule, node: ast.Attribute) -> bool:
    """True for a name put into a text: on the other ranks the text is odd, and nobody reads it."""
    return node.attr in _LABELS and isinstance(module.parent(node), ast.FormattedValue)


def _is_called(module: SourceModule, node: ast.Attribute) -> bool:
    up = module.parent(node)
    return isinstance(up, ast.Call) and up.func is node


def _only_changes(module: SourceModule, node: ast.Attribute, statement: ast.stmt) -> bool:
    """True for `….config.update(…)` and `….config[k] = v` as a statement: nothing of it is used."""
    up = module.parent(node)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        return isinstance(func, ast.Attribute) and func.value is node
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target is up and isinstance(target, (ast.Subscript, ast.Attribute)) and target.value is node
    return False


def _is_part_read(module: SourceModule, node: ast.Attribute) -> bool:
    """True for `….summary.get(…)`, `….config["a"]`: something is taken from it, which ends the other ranks as well."""
    return not _only_changes(module, node, module.statement_of(node))


def _neighbours(module: SourceModule, statement: ast.stmt) -> list[ast.stmt]:
    """The statement and those right behind it that change the experiment too."""
    run = [statement]
    for other in behind(module, statement):
        parts = [n for n in walk(other) if isinstance(n, ast.Attribute) and n.attr in _PARTS and _is_of_dummy(module, n)]
        if not parts or not _only_changes(module, parts[0], other):
            break
        run.append(other)
    return run


def _given(statement: ast.stmt) -> list[ast.expr]:
    """What is worked out to be put into the experiment."""
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        return [statement.value, *([target.slice] if isinstance(target, ast.Subscript) else [])]
    call = statement.value if isinstance(statement, ast.Expr) else None
    return [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []


def _asks_for_the_dummy(module: SourceModule, node: ast.AST) -> bool:
    """True inside `isinstance(logger.experiment.id, str)`, and in the arm of a test that asks so: rank 0 alone comes there.

    `type(logger.experiment.config) == Config` asks the same.
    """
    below = node
    for up in module.ancestors(node):
        if _is_type_test(up):
            return True
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            chosen = up.body if isinstance(up.body, list) else [up.body]
            if any(below is s for s in chosen) and any(_is_type_test(n) for n in walk(up.test)):
                return True
        below = up
    return False


def _is_type_test(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.Is)):
        sides = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Call) and dotted(side.func) == "type"]
        return any(_is_type_of_dummy(side) for side in sides)
    return isinstance(node, ast.Call) and dotted(node.func) == "isinstance" and _is_type_of_dummy(node)


def _is_type_of_dummy(node: ast.Call) -> bool:
    if not node.args:
        return False
    return any(isinstance(n, ast.Attribute) and n.attr == "experiment" for n in walk(node.args[0]))
