"""DDP214: a `print` for the other ranks that takes no keywords."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.ranks.narrow_prints import NarrowPrint, narrow_prints
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.short_texts import short
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.data.printed_errors import WAITING
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project


class NarrowPrintOfOtherRanks(DdpCodemod):
    """A `print` for the other ranks that takes no keywords.

    ## What it does
    Finds a function without `**kwargs` that some ranks put in the place of `builtins.print`, and behind it a `print` of the
    project with a keyword (`flush=True`, `end=""`, `file=...`) that every rank comes to. Lets the replacement take keywords.

    ## Why it matters
    Rank 0 keeps Python's own `print`, so the line works on one process and on rank 0. On every other rank it raises
    TypeError: those ranks end, and rank 0 waits for them in its next collective call.

    ## Example
    ```python
    import builtins

    import torch.distributed as dist


    def main(epochs):
        dist.init_process_group("gloo")
        if dist.get_rank() != 0:
            builtins.print = lambda *args: None
        for epoch in range(epochs):
            print("epoch", epoch, flush=True)
    ```

    ## Use instead
    ```python
    import builtins

    import torch.distributed as dist


    def main(epochs):
        dist.init_process_group("gloo")
        if dist.get_rank() != 0:
            builtins.print = lambda *args, **kwargs: None
        for epoch in range(epochs):
            print("epoch", epoch, flush=True)
    ```

    ## Safety
    Safe: a call that worked goes on as it did, and one that raised puts out what the replacement puts out, mostly nothing.

    ## Refuses
    - Says nothing where no `print` with a keyword is seen to come behind the replacement, in its function, in what that calls, or
      behind the calls of its function.
    - Says nothing where that `print` stands under a test of the rank, in a `try` or a handler, or is another function.
    - Says nothing where every rank makes the replacement: whoever runs it sees the error at once.
    - Says nothing of a replacement that takes `**kwargs`, or the very keyword.
    - Reports a replacement whose parameters are more than `*args`.
    - A repository's own tests.

    ## References
    Python's documentation of `print`: `sep`, `end`, `file` and `flush` are keywords. A run on two gloo processes.
    """

    code = "DDP214"
    severity = "crash"
    subject = "Let the quiet print take keywords"
    must_show = "The other processes get past the line that prints with `flush=True`."
    printed = ("got an unexpected keyword argument", *WAITING)
    TRIGGERS = ((b".print",), (b"builtin",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in narrow_prints(project, module):
            if not is_run_by_nobody(project, module, found.assign):
                yield self._tell(module, found)

    def _tell(self, module: SourceModule, found: NarrowPrint) -> Finding:
        where = f"line {found.call.lineno}" if found.home is module else f"{found.home.path}:{found.call.lineno}"
        given = next(k.arg for k in found.call.keywords if k.arg)
        message = (
            f"the `print` that these ranks get takes no keywords, and {where} calls it with `{given}=`: TypeError on every rank "
            "but those that keep Python's own"
        )
        text = short(found.home, found.call)
        evidence = [Evidence("static", text, found.home.path, line_of(found.call))]
        edits = _repaired(module, found)
        level = Applicability.SAFE if edits else Applicability.DISPLAY
        reason = "" if edits else "let it take `**kwargs`, too"
        return self.finding(module, found.assign, message, level=level, edits=edits, evidence=evidence, reason=reason)


def _repaired(module: SourceModule, found: NarrowPrint) -> list[Edit]:
    spec, value = found.made.args, found.assign.value
    if spec.args or spec.posonlyargs or spec.kwonlyargs or spec.vararg is None or not module.is_whole(found.assign):
        return []
    name = spec.vararg.arg
    if name == "kwargs":
        return []
    if isinstance(found.made, ast.Lambda):
        code = f"lambda *{name}, **kwargs: {module.text_of(found.made.body)}"
    else:
        code = f"lambda *{name}, **kwargs: {found.made.name}(*{name})"
    return [] if "\n" in code else [ReplaceExpression(module.path, module.span(value), code)]
