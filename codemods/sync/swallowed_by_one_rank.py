"""DDP309: an error of one rank is swallowed, and the others wait for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.retried_runs import Retried, retried_runs
from codemods.analysis.guards.swallowed_errors import Swallowed, swallowed
from codemods.analysis.names import last, qualified
from codemods.analysis.short_texts import short
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter, ReplaceExpression, SetKeyword
from codemods.data.printed_errors import WAITING
from codemods.files.sites import Site
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_ASSUMED = "assumes that an error is to end the run: whoever started it then sees it, and can start it again"


class SwallowedByOneRank(DdpCodemod):
    """An error of one rank that ends in a handler round the whole work, so that the others wait for a rank that is gone.

    ## What it does
    Finds `except:`, `except Exception:`, loguru's `logger.catch` and `contextlib.suppress(Exception)` round the training of
    a rank, also in a decorator of the project that runs it, where nothing raises the error again, ends the process with a
    status or takes the group down. So does it with a handler that is the last thing a program does, round a function that goes
    through its share and waits once, before the results are put together. Ends the handler with `raise`, or gives
    `logger.catch` the argument `reraise=True` (unsafe). Reports a handler that runs the work a second time (`except
    torch.cuda.OutOfMemoryError: train(…)`) where the work starts the process group itself.

    ## Why it matters
    Errors come to ranks one by one: a damaged sample, a full memory, a lost file. The rank that swallows its error goes on to
    the next collective, or ends with status 0. The others stand in another collective until the time-out, half an hour later,
    and the launcher, which ends all processes when one fails, has seen none fail.

    ## Example
    ```python
    import logging

    import lightning.pytorch as pl


    def run(model, loader):
        trainer = pl.Trainer(devices=2, strategy="ddp")
        try:
            trainer.fit(model, loader)
        except Exception:
            logging.exception("training ended early")
        trainer.test(model, loader)
    ```

    ## Use instead
    ```python
    import logging

    import lightning.pytorch as pl


    def run(model, loader):
        trainer = pl.Trainer(devices=2, strategy="ddp")
        try:
            trainer.fit(model, loader)
        except Exception:
            logging.exception("training ended early")
            raise
        trainer.test(model, loader)
    ```

    ## Safety
    Always unsafe: whether an error is to end the run is the project's decision. The handler still does what it did before.

    ## Refuses
    - Says nothing in a repository's own tests, and in files that no several processes are seen to run.
    - Says nothing of a handler that raises, exits with a status, calls what may end the run (`cleanup()`, `abort()`,
      `destroy_process_group()`), returns a value, or keeps something that is read later.
    - Reports a handler whose `try` has something behind it that waits for nobody, such as an upload of the log.
    - Says nothing of handlers for one kind of error (`KeyboardInterrupt`, `OSError`, `RuntimeError`).
    - Says nothing of a second run that asks for the group (`is_initialized`), or before which the group is taken down.
    - Says nothing inside a loop: there one round is given up, which is another mistake (DDP305).
    - Says nothing of a `try` without training in it (one reduction, an import, a file) where the program goes on behind it, and
      of training by one rank alone.
    - Reports a handler that calls `report` of Ray Train, which waits for the other workers.
    - Reports a handler that ends with `return`, `pass` or `sys.exit(0)`, and `contextlib.suppress`.

    ## References
    torchrun's documentation: it ends all workers when one fails, and sees that by the exit status; loguru 0.7: `catch` and its
    `reraise`; two-process runs over gloo and with Lightning 2.6 in which one rank swallows an error.
    """

    code = "DDP309"
    severity = "hang"
    subject = "Let an error of one rank end the run"
    must_show = (
        "With an error on one process the run ends with its message and a status, and the launcher ends the other process."
    )
    printed = WAITING
    TRIGGERS = (
        (b"except", b"catch", b"suppress("),
        (b"rank", b"RANK", b"ightning", b"torch.distributed", b"DistributedDataParallel", b"ccelerat", b"Trainer",
         b"wraps("),
    )
    SITES = (
        Site(rb"except[ \t]*:|except[ \t(][^\n]*(?:Base)?Exception\b", b"except"),
        Site(rb"except[ \t(][^\n]*(?:OutOfMemoryError|RuntimeError)", b"except"),
        Site(rb"\.catch\b|suppress\([^\n]*Exception", b".catch", b"suppress("),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in swallowed(project, module):
            edits, reason = _repair(module, found)
            yield self.finding(
                module,
                found.node,
                _message(module, found),
                level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[Evidence("static", f"the other ranks wait in {found.meeting.text}", *found.meeting.place)],
                reason=reason,
            )
        if module.holds(b"init_process_group") or any(project.files_containing(b"init_process_group")):
            yield from (self._again(module, found) for found in retried_runs(project, module))

    def _again(self, module: SourceModule, found: Retried) -> Finding:
        """A second run of the work in the handler."""
        name = " ".join(module.text_of(found.again.func).split())
        place = f"line {found.start.lineno}" if found.module is module else f"{found.module.path}:{found.start.lineno}"
        return self.finding(
            module,
            found.again,
            f"a rank that comes to this handler calls `{name}` again, which starts the process group a second time ({place}): "
            "torch raises ValueError there, while the other ranks wait for this one",
            evidence=[Evidence("static", "the group is started here, in both calls", found.module.path, found.start.lineno)],
            reason="let the error end the run and start it again with other options, or ask all ranks before one of them repeats",
            severity="crash",
        )


def _message(module: SourceModule, found: Swallowed) -> str:
    if found.handler is not None:
        kind = f" {module.text_of(found.handler.type)}" if found.handler.type is not None else ""
        what = f"`except{kind}`"
    else:
        what = f"`{' '.join(module.text_of(found.node).split())}`"
    report = _reports_to_ray(module, found.handler) if found.handler is not None else None
    goes = f"it goes on to {found.goes_on.text}" if found.goes_on is not None else "it goes on, or ends with status 0"
    if report is not None:
        goes = f"it goes on to `{short(module, report.func)}`, where it waits for the other workers"
    return (
        f"{what} swallows an error of one rank: {goes}, while the others wait for it in {found.meeting.text} until the time-out"
    )


def _repair(module: SourceModule, found: Swallowed) -> tuple[list[Edit], str]:
    if found.handler is not None:
        if (report := _reports_to_ray(module, found.handler)) is not None:
            return [], (
                f"`{short(module, report.func)}` of Ray waits for all workers, so this one does not come past it either: let the "
                "error out, Ray then ends the others; the number of a failed trial is given where its result is read"
            )
        end = found.handler.body[-1]
        plain = isinstance(end, (ast.Expr, ast.Assign, ast.AugAssign)) and not _is_exit(end) and module.is_whole(end)
        if not plain:
            return [], "end the handler with `raise`: the launcher then sees that this rank failed, and ends the others"
        left = _left_out(module, found.handler) if found.goes_on is None else None  # what waits for the others hangs anyway
        if left is not None:
            return [], (
                f"end the handler with `raise`, and do what stands behind the `try` (line {left.lineno}) in a `finally`: it "
                "would be left out else, with one process as well"
            )
        return [InsertAfter(module.path, module.span(end), "raise")], _ASSUMED
    assert isinstance(found.node, ast.expr)
    call = found.node if isinstance(found.node, ast.Call) else None
    text = module.text_of(call.func if call is not None else found.node)
    if not text.endswith("catch"):
        return [], "let the error out: the launcher then sees that this rank failed, and ends the others"
    if call is None:
        return [ReplaceExpression(module.path, module.span(found.node), f"{text}(reraise=True)")], _ASSUMED
    return [SetKeyword(module.path, module.span(call), "reraise", "True")], _ASSUMED


def _reports_to_ray(module: SourceModule, handler: ast.ExceptHandler) -> ast.Call | None:
    """`train.report(...)` in the handler: each report is a meeting of the workers."""
    calls = (n for statement in handler.body for n in walk(statement) if isinstance(n, ast.Call))
    return next((c for c in calls if (name := qualified(module, c.func)).startswith("ray.") and last(name) == "report"), None)


def _left_out(module: SourceModule, handler: ast.ExceptHandler) -> ast.stmt | None:
    """What runs behind the `try` after an error, and would not if the handler raised: an upload of the log, say."""
    block = module.parent(handler)
    if not isinstance(block, (ast.Try, ast.TryStar)):
        return None
    around = module.block_of(block)
    behind = around[next((i for i, s in enumerate(around) if s is block), len(around)) + 1 :]
    return next((s for s in behind if not _ends_the_group(s)), None)


def _ends_the_group(statement: ast.stmt) -> bool:
    """True for what an ended process needs no more: `dist.destroy_process_group()`, `wandb.finish()`, a return."""
    if isinstance(statement, (ast.Pass, ast.Return)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return False
    name = ast.unparse(call.func).rpartition(".")[2]
    return name == "print" or any(word in name for word in ("destroy", "cleanup", "shutdown", "finish", "close", "end_training"))


def _is_exit(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, (ast.Name, ast.Attribute)) and "exit" in ast.unparse(call.func)
