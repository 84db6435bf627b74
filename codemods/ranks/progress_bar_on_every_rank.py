"""DDP208: a progress bar that every rank draws."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.callers import entries
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_module, ranks_in_file
from codemods.analysis.files.first_runs import is_of_a_first_run
from codemods.analysis.files.never_true import is_never_asked_for
from codemods.analysis.given_beforehand import keywords_given
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.bar_texts import is_labelled_by_rank
from codemods.analysis.output.debug_flags import is_under_a_debug_switch
from codemods.analysis.output.effects import effects_of, names_rank
from codemods.analysis.output.guard_spelling import guard_for
from codemods.analysis.output.muted_print import has_quiet_bars, is_quiet_bar
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding, SetKeyword
from codemods.data.process_words import OFFERS_A_GUARD, SHOWS_PROCESSES
from codemods.files.left_alone import left
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CLASSES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.HF_CALLBACK, Role.HF_TRAINER)
# What a bar that draws nothing answers as one that does (tqdm 4.70: `__init__` returns before it sets the rest).
_STILL_THERE = frozenset(
    {"update", "set_description", "set_description_str", "set_postfix", "set_postfix_str", "close", "refresh", "write", "reset",
     "clear", "unpause", "disable", "total", "iterable"}
)  # fmt: skip
_FILE_FIRST = "the bar of a file that every rank writes: the file is what has to be kept to rank 0"
_NEGATED = (
    (lazy(r"^(?P<a>[\w.]+(?:\(\))?)\s*==\s*0$"), r"\g<a> != 0"),
    (lazy(r"^(?P<a>[\w.]+) in (?P<b>[(\[].*)$"), r"\g<a> not in \g<b>"),
    (lazy(r"^(?P<a>int\(os\.environ\.get\(\"RANK\", 0\)\)) == 0$"), r"\g<a> != 0"),
)


class ProgressBarOnEveryRank(DdpCodemod):
    """A progress bar that every rank draws.

    ## What it does
    Finds `tqdm(...)` and `trange(...)` that every rank reaches, and adds `disable=` with the test for other ranks.

    ## Why it matters
    With eight processes eight bars write over each other in one terminal, and a log file holds every step eight times.

    ## Example
    ```python
    import torch.distributed as dist
    from tqdm import tqdm


    def evaluate(model, loader):
        rank = dist.get_rank()
        for batch in tqdm(loader, desc="evaluation"):
            model(batch)
        dist.barrier()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist
    from tqdm import tqdm


    def evaluate(model, loader):
        rank = dist.get_rank()
        for batch in tqdm(loader, desc="evaluation", disable=rank != 0):
            model(batch)
        dist.barrier()
    ```

    ## Safety
    Safe: a disabled bar goes through the same items, and its `update`, `set_postfix`, `close` … are still there. The loop
    stays on every rank. The test is the one that DDP203 would write, turned round; it holds with one process,
    and for a rank that some call leaves at None.

    ## Refuses
    - Where `disable` is given, at the call or by a `partial` that the name is bound to (`tqdm = partial(tqdm, disable=…)`), or to
      all bars of the program (`tqdm.__init__ = partialmethod(tqdm.__init__, disable=…)`): that is a decision. Where keywords come
      from `**options`, which may hold it.
    - Where the bar's counters are read (`bar.n`, `bar.format_dict`, `bar.desc` …): a disabled bar has none.
    - Where the bar is handed on, returned or kept in a container: what is read of it is not seen.
    - Bars over a loop that begins with `break` or `return`: they never get on.
    - Bars with a `position`, and bars that name the rank, its device, the host or the process, also in what `set_postfix` and
      `set_description` give them: one for each rank on purpose.
    - Bars that write to a `file`, and bars within files that are named after the rank: each works through its own.
    - Bars within a file that every rank writes (`with open(path, "w") as rows:`): DDP202 reports the file, and what keeps that
      to rank 0 leaves one bar.
    - Bars in a program, or in a `with` block, that leads the standard error of the other ranks away.
    - Where only some ranks come, or one after the other, by tests, decorators or callers.
    - Other bars: `accelerate.utils.tqdm` is quiet on other ranks by itself, Lightning's and transformers' are too.
    - Methods of a LightningModule that no hook is seen to reach: they may serve one process, at inference.
    - Bars under a test that nothing makes true (`RUN_VALIDATION = False`), or under a switch for debugging that is left off.
    - Copies that a newer file has taken the place of (`train_bak.py` beside `train.py`, files in a folder `legacy`) and that no
      program or text names.
    - Places that no program of the project comes to with several processes, and those that the workers of a pool run.
    - Files without a sign of several processes, places where no test is sure to work, a repository's own tests.

    ## References
    tqdm 4.70, `std.py`: what `__init__` leaves out when `disable` is true; two-process runs of a guarded loop (a hang).
    """

    code = "DDP208"
    severity = "noise"
    subject = "Draw the progress bar on one process"
    must_show = "This bar is drawn once, and the loop goes through the same items."
    printed = ()
    TRIGGERS = (
        (b"rank", b"RANK", b"lightning", b"torch.distributed", b"ccelerat", b"Trainer", b"Callback", b"Lightning", b"DataModule",
         b"WORLD_SIZE", b"TrainingArguments", b"DistributedDataParallel", b"is_main", b"is_master", b"is_primary"),
        SHOWS_PROCESSES,
        (b"tqdm",),
        OFFERS_A_GUARD,
    )  # fmt: skip
    SITES = (Site(rb"\bt(?:qdm|range)[ \t]*\((?![^()\n]*(?:\([^()\n]*\)[^()\n]*){0,4}disable[ \t]*=)", b"tqdm", b"trange"),)
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.holds(b"split_between_processes") or has_quiet_bars(project, module.path):
            return
        for call in module.calls_named("tqdm", "trange"):
            reads = _reads_of_bar(module, call) if _draws(module, call) else None
            if reads is None or _is_read(module, reads) or _is_left_at_once(module, call):
                continue
            found = self._judge(module, project, call)
            if found is not None and is_labelled_by_rank(project, module, call, reads):
                continue
            if found is not None and self._is_reached(module, project, call):  # the dearest question, asked of few
                yield found

    def _is_reached(self, module: SourceModule, project: Project, call: ast.Call) -> bool:
        place = module.method_of(call)
        in_class = place is not None and any(class_facts(project, module, place[0]).is_a(role) for role in _CLASSES)
        if not in_class and not ranks_in_file(project, module):
            return False
        if place is not None and in_class and not _in_training(project, module, *place):
            return False
        if is_never_asked_for(project, module, call) or is_under_a_debug_switch(project, module, [call]):
            return False
        if ranks_reaching(project, module, call).some or is_run_by_nobody(project, module, call):
            return False
        return not is_of_a_first_run(project, module, call) and not is_quiet_bar(project, module, call)

    def _judge(self, module: SourceModule, project: Project, call: ast.Call) -> Finding | None:
        spelled = guard_for(project, module, module.statement_of(call), lines=True)
        if spelled is None or _stands_in_files_of_the_rank(module, call):
            return None
        if _stands_in_a_file_of_all(project, module, call) and left(module, call, _FILE_FIRST):
            return None
        others = turned(spelled.test)
        edits = [SetKeyword(module.path, module.span(call), "disable", others), *spelled.edits]
        evidence = [Evidence("static", "the bar is only gone through, or given its progress", module.path, call.lineno)]
        message = "every rank draws this progress bar: the bars of the ranks write over each other"
        level, reason = spelled.level(), spelled.assumes
        return self.finding(module, call, message, level=level, edits=edits, evidence=evidence, reason=reason)


def _stands_in_files_of_the_rank(module: SourceModule, call: ast.Call) -> bool:
    """True within files that are named after the rank: each works through its own, and its bar alone shows how far it is."""
    entered = (i for w in module.ancestors(call) if isinstance(w, ast.With) for i in w.items)
    return any(names_rank(module.text_of(i.context_expr)) for i in entered)


def _stands_in_a_file_of_all(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for the bar of a work that goes into a file which every rank writes: kept to rank 0, the work has one bar."""
    for block in module.ancestors(call):
        if isinstance(block, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        entered = block.items if isinstance(block, ast.With) else []
        opened = [i.context_expr for i in entered if isinstance(i.context_expr, ast.Call)]
        if opened and any(e.called == "open" and not e.own for e in effects_of(project, module, opened).output):
            return True
    return False


def _in_training(project: Project, module: SourceModule, owner: ast.ClassDef, method: FunctionNode) -> bool:
    """False for a method of a LightningModule that no hook is seen to reach: it may serve one process at inference."""
    facts = class_facts(project, module, owner)
    return not facts.is_a(Role.LIGHTNING_MODULE) or bool(entries(project, facts, method).hooks)


def turned(test: str) -> str:
    """The test for every rank but 0, written as a person would."""
    while test.startswith("(") and test.endswith(")") and test.count("(") == 1:
        test = test[1:-1].strip()
    for pattern, other in _NEGATED:
        if pattern.match(test):
            return pattern.sub(other, test)
    plain = re.fullmatch(r"[\w.]+(\(\))?", test) is not None
    return f"not {test}" if plain else f"not ({test})"


def _draws(module: SourceModule, call: ast.Call) -> bool:
    """True for a bar of tqdm's that is left to draw on every rank."""
    name = qualified(module, call.func)
    if name.partition(".")[0] != "tqdm" or last(name) not in ("tqdm", "trange"):
        return False
    given = keywords_given(module, call)
    if given & {None, "disable", "position", "file", "gui"} or len(call.args) > 3:
        return False
    texts = [v.value for v in call.keywords if v.arg in ("desc", "postfix")]
    made = [v for t in texts if isinstance(t, ast.Name) for v in values_of(module, t)]
    return not any(names_rank(module.text_of(n)) for n in (call, *made))


def _is_left_at_once(module: SourceModule, call: ast.Call) -> bool:
    """True for the bar of a loop that somebody switched off: `for batch in tqdm(loader): break`."""
    up = next((up for up in module.ancestors(call) if isinstance(up, (ast.stmt, ast.comprehension))), None)
    return isinstance(up, (ast.For, ast.AsyncFor)) and isinstance(up.body[0], (ast.Break, ast.Return, ast.Raise))


def _is_read(module: SourceModule, reads: list[ast.expr]) -> bool:
    """True where more is asked of the bar than its progress methods."""
    return not all(_is_progress(module, node) for node in reads)


def _reads_of_bar(module: SourceModule, call: ast.Call) -> list[ast.expr] | None:
    """The reads of the name that the bar has; none where it is gone through on the spot, None where it is not followed."""
    up = module.parent(call)
    while isinstance(up, ast.Call) and dotted(up.func) in ("enumerate", "zip", "iter", "list", "map", "sorted"):
        up = module.parent(up)
    if isinstance(up, (ast.For, ast.AsyncFor, ast.comprehension)):
        return []
    target: ast.expr | None = None
    if isinstance(up, ast.NamedExpr) and up.value is call:
        target = up.target
    elif isinstance(up, ast.Assign) and len(up.targets) == 1 and up.value is call:
        target = up.targets[0]
    elif isinstance(up, ast.withitem):
        target = up.optional_vars
        if target is None:
            return []
    name = dotted(target)
    if not name or (name.count(".") and not (name.startswith("self.") and name.count(".") == 1)):
        return None
    home = module.class_of(call) if name.startswith("self.") else module.function_of(call)
    return list(_reads(module, home, name))


def _reads(module: SourceModule, home: ast.AST | None, name: str) -> Iterator[ast.expr]:
    nodes: list[ast.expr] = [*module.nodes(ast.Attribute)] if "." in name else [*module.nodes(ast.Name)]
    for node in nodes:
        if dotted(node) == name and isinstance(getattr(node, "ctx", None), ast.Load):
            if home is None or any(up is home for up in module.ancestors(node)):
                yield node


def _is_progress(module: SourceModule, node: ast.expr) -> bool:
    """True for a use of the bar that a disabled one serves as well."""
    up = module.parent(node)
    if isinstance(up, ast.Attribute):
        return up.attr in _STILL_THERE
    if isinstance(up, ast.Call) and dotted(up.func) in ("enumerate", "zip", "iter", "len"):
        return True
    if isinstance(up, (ast.For, ast.comprehension)):
        return up.iter is node
    return isinstance(up, (ast.withitem, ast.If))
