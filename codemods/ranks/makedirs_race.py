"""DDP204: a folder that several processes create at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_module, ranks_in_file, ranks_in_importers
from codemods.analysis.files.before_fit import comes_first, is_made_above_fit
from codemods.analysis.files.counted_apart import CountedApart, counted_apart, is_handed_round
from codemods.analysis.files.counted_names import Counted, counted_in
from codemods.analysis.files.counted_states import counted_state
from codemods.analysis.files.dead_ways import is_dead
from codemods.analysis.files.every_rank import Way, is_for_some, is_of_the_starter, way_of_every_rank
from codemods.analysis.files.file_or_folder import may_be_a_file
from codemods.analysis.files.first_runs import is_of_a_first_run
from codemods.analysis.files.flag_folders import says_what_is_made
from codemods.analysis.files.folder_calls import creates_folder, folder_of, gives_exist_ok
from codemods.analysis.files.folders_made_before import is_made_above
from codemods.analysis.files.made_by_all_above import is_made_by_all_above
from codemods.analysis.files.made_by_the_starter import is_made_by_the_starter
from codemods.analysis.files.made_by_trainer import is_made_by_trainer
from codemods.analysis.files.missing_folders import (
    goes_on,
    handler_of,
    is_default_under_test,
    is_tested,
    made_beside,
    why_an_error,
    without_test,
)
from codemods.analysis.files.named_by_day import without_days
from codemods.analysis.files.named_by_functions import texts_of_functions
from codemods.analysis.files.own_draws import is_named_by_own_number
from codemods.analysis.files.own_moments import is_named_by_moment
from codemods.analysis.files.put_into_fields import put_by_all
from codemods.analysis.files.stamped_apart import stamped_apart
from codemods.analysis.files.state_folders import state_folders
from codemods.analysis.files.who_makes_folders import (
    asks_for_rank,
    comes_alone,
    fetches,
    is_asked_for,
    is_in_hook,
    is_made_by_one,
    is_of_own_data,
)
from codemods.analysis.names import dotted
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.several_nodes import names_nodes
from codemods.analysis.run_by_ranks import may_be_run_by_ranks
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression, SetKeyword, Span
from codemods.files.left_alone import left
from codemods.files.sites import Site
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OWN_PATH = lazy(r"rank|getpid|uuid|mkdtemp|TemporaryDirectory|tmp_path|tempfile|process_index|worker_id", re.I)
_CLOCK = lazy(
    r"\b(?:datetime\.)?(?:now|today|utcnow)\(|\bstrftime\(|\btime\.(?:time|localtime|ctime)\(|\basctime\(|(?<![\w.])time\(\)"
)
# Without one of these a file names no folder after what is there, be it by a function of another file.
_LISTING = (b"listdir", b"glob", b"iterdir", b"scandir", b"exists", b"is_dir", b"increment_", b"next_", b"new_run")
_LEADS_ELSEWHERE = "FileExistsError is caught here and leads elsewhere: an existing folder means something to this code"
_SAYS_WHAT_IS_MADE = (
    "the folder says that the files in it are made, and with exist_ok two ranks would write them at once: let one process make "
    "both, with a barrier behind it, or in `prepare_data`"
)


class MakedirsRace(DdpCodemod):
    """A folder that every rank creates at once: all but the first fail with FileExistsError.

    ## What it does
    Finds `os.makedirs(p)` and `Path.mkdir()` that every rank reaches without `exist_ok`, and adds `exist_ok=True`. A test that
    the folder is missing goes where nothing else stands under it: `exist_ok` asks the same, in one step. Reports a new folder
    whose name each rank works out for itself: after its clock, or as the next that is free, though rank 0 alone makes it (one
    after the clock where every rank writes into it, or reads out of it what rank 0 wrote).

    ## Why it matters
    Two ranks that start together both see that the folder is missing, and both create it. The slower one dies with
    `FileExistsError`; the others then wait for it in the next collective until the time-out. A test such as
    `if not os.path.exists(p)` does not help: both ranks pass it before either has created the folder.

    ## Example
    ```python
    import os

    import lightning.pytorch as pl


    class Recorder(pl.Callback):
        def on_train_start(self, trainer, pl_module):
            if not os.path.exists(self.folder):
                os.makedirs(self.folder)
    ```

    ## Use instead
    ```python
    import os

    import lightning.pytorch as pl


    class Recorder(pl.Callback):
        def on_train_start(self, trainer, pl_module):
            os.makedirs(self.folder, exist_ok=True)
    ```

    ## Safety
    Safe: an existing folder is what every rank but the first finds. Nothing else changes, and one process that tests for
    the folder first never sees the difference; only where a file stands in the folder's place, the error comes here
    and not where the folder is written to. The test stays where the program uses the same path as that of a file, too.
    `os.mkdir`, which has no such argument and does not create parents, becomes `os.makedirs` only as an unsafe fix. A call
    without such a test in a helper that other files call is unsafe too.

    ## Refuses
    - A folder named after the time, reported, also where Accelerate's `save_state` makes it, or where it is the `output_dir` of a
      Trainer of transformers, and by way of a field that each rank sets (`args.out = …`): each process reads its own clock, and
      those of Lightning's `ddp` start one after the other.
    - A folder named after what is there (`len(os.listdir(root))`, `max(numbers) + 1`, `while os.path.exists(run): n += 1`),
      reported, with `exist_ok` too, and where it is the `output_dir` of a Trainer of transformers: the ranks do not come at once.
    - Where `exist_ok` is given, `False` too: that is a decision, but for one under a test that the folder is missing.
    - Where FileExistsError is caught: handled already, or reported if the handler raises or goes on to another name.
    - Where the name is searched for (`while os.path.exists(run): n += 1`), reported: sharing a folder would be worse.
    - Where the code stops if the folder exists (`if os.path.exists(p): raise`), reported: `exist_ok` would let it go on.
    - Where the same test decides who writes the files in the folder and who reads them, reported: with `exist_ok` two ranks would
      write them at once.
    - Where the folder is deleted just before, reported: a slower rank deletes what a faster one has written.
    - Where only some ranks come, or one after the other, by tests, decorators or callers; in `prepare_data`; in `_save` of a
      Trainer of transformers below 5.23, and in what only that calls.
    - In a helper's file without a word of processes: under a test of a `rank`, or where no file of
      several processes calls the function.
    - Where no program of the project comes with several processes, and where the Trainer has one device.
    - Where no way is shown on which every rank comes; a folder named after a sample of the rank's own batch, and the
      folder round a file that both bear its name (`f"{token}/{token}.png"`); but not where the sample brings the name of the file
      along (`os.path.join(root, kind, name)`), or the folder is the first of the path from which the file has its name.
    - Where the folder is there before the ranks ask: made above the start of the processes, by the program's entry, or above
      Lightning's `fit`, which starts the others (not under torchrun or Slurm, nor on several nodes); by a `SummaryWriter(p)` or
      `makedirs(p, exist_ok=True)` above, so that the test for it is never true; by a Trainer of transformers that has run.
    - Where every rank goes on to fetch a file into the folder: DDP307 reports that race.
    - Where the path is the rank's own (rank, process id, temporary folder, `wandb.util.generate_id()`).
    - Where nothing in the file, or in a file that imports it, shows several processes; in a repository's own tests.
    - `mkdir` of an object that is not shown to be a `pathlib` path.
    - `os.mkdir` imported under a bare name or with `dir_fd`, reported.

    ## References
    Two-process runs of `os.makedirs` in `on_fit_start`; Python documentation of `os.makedirs` and `pathlib.Path.mkdir`.
    """

    code = "DDP204"
    severity = "crash"
    takes_several = True
    subject = "Let several processes create the same folder"
    must_show = "With the folder deleted first, both processes start."
    printed = ("FileExistsError",)
    TRIGGERS = ((b"makedirs(", b"mkdir(", b".save_state(", b"output_dir"),)
    # a call that gives no exist_ok in its first line, or False, or a clock
    SITES = (Site(
        rb"strftime\(|\bnow\(|int\(time\.time|"
        rb"(?:makedirs|mkdir)(?:[ \t]*\((?![^()\n]*(?:\([^()\n]*\)[^()\n]*){0,4}exist_ok[ \t]*=[ \t]*(?!False))|[ \t]+as\b)",
        b"strftime(", b"now(", b"time.time", b"makedirs", b"mkdir",
    ), Site(  # what is there is listed, or a loop looks for what is not
        rb"(?:listdir|glob|iterdir|scandir)\(|while\b[^\n]*exists\(|not [^\n]*exists\([^\n]*:\s*(?:break|return)",
        b"listdir(", b"glob(", b"iterdir(", b"scandir(", b"exists(", behind=1,
    ), Site(rb"\b(?:increment_|next_|new_run)\w*\(", b"increment_", b"next_", b"new_run"))  # fmt: skip
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        stamped: set[str | Span] = set()  # one clock is one cause, whatever is made under its name
        for call in module.calls_named("makedirs", "mkdir"):
            spelling = creates_folder(module, call)
            if spelling and (told := self._stamped(module, project, call, spelling)) is not None:
                if not stamped & {told.message, told.span}:
                    yield told
                stamped |= {told.message, told.span}
                continue
            if spelling and (told := self._counted(module, project, call, spelling)) is not None:
                yield told
                continue
            if not spelling or any(k.arg is None for k in call.keywords):
                continue
            if gives_exist_ok(module, call, spelling) and not is_default_under_test(module, call, spelling):
                continue
            if (found := self._judge(module, project, call, spelling)) is not None:
                yield found

        seen: set[int] = set()
        for call, path, name in state_folders(project, module):
            if (told := self._stamped(module, project, call, "", path, name)) and not (name and told.message in stamped):
                stamped.add(told.message)
                yield told
            elif (counted := counted_state(project, module, call, path)) is not None and id(counted.node) not in seen:
                seen.add(id(counted.node))
                yield self._counted_state(module, call, path, counted, ranks_in_file(project, module))

    def _counted_state(
        self, module: SourceModule, call: ast.Call, path: ast.expr, counted: Counted, shown: Evidence | None
    ) -> Finding:
        message = (
            f"every rank works out for itself which name is free for {module.text_of(path)}, the folder of the training's "
            "states: one that comes when rank 0 has made it takes the next, and the states of one training lie in two folders"
        )
        names = (n for n in walk(path) if isinstance(n, ast.Name))
        given = [v for n in names for v in assigned(module, n, n.id)]
        at = counted.node if counted.module is module else module.statement_of(given[0]) if len(given) == 1 else path
        evidence = [Evidence("static", "the name is worked out here", counted.module.path, counted.node.lineno)]
        reason = "choose the name on rank 0 and broadcast it, or hand it to all processes as an argument or a variable"
        return self.finding(module, at, message, evidence=[*filter(None, (shown,)), *evidence], reason=reason, severity="data")

    def _stamped(
        self, module: SourceModule, project: Project, call: ast.Call, spelling: str, given: ast.expr | None = None, name: str = ""
    ) -> Finding | None:
        """A folder named after the time: each process reads its own clock. given: the path of a state that all ranks save."""
        path = given or folder_of(call, spelling)
        if path is None or (shown := ranks_in_file(project, module)) is None:
            return None
        if ranks_reaching(project, module, call).some:
            return self._stamped_apart(module, project, call, path, shown) if given is None else None
        put = put_by_all(project, module, path) if module.holds(b"time") and not is_named_by_moment(module, path) else []
        made = without_days(" ".join(origin_text(module, value) for value in (path, *put)))
        if not _CLOCK.search(made):
            ways = ([without_days(t) for t in texts] for texts in texts_of_functions(project, module, path))
            made = next((" ".join([made, *texts]) for texts in ways if all(map(_CLOCK.search, texts))), made)
        if not _CLOCK.search(made) or _OWN_PATH.search(made) or handler_of(module, project, call) is not None:
            return None
        clock = _clock(module, path) or next((v for v in put if _CLOCK.search(module.text_of(v))), None)
        if is_run_by_nobody(project, module, call) or is_made_by_the_starter(project, module, clock or call):
            return None
        function = module.function_of(call)
        if "broadcast" in (module.text_of(function) if function else module.text):
            return None
        makes = "save their parts of one state into folders of their own" if given is not None else "make a folder each"
        message = f"every rank names {name or module.text_of(path)} after its own clock: the ranks start apart, and {makes}"
        reason = "take the time on rank 0 and broadcast it, or hand it to all processes as an argument or a variable"
        at = clock or (call if given is None or given in walk(call) else given)
        return self.finding(module, at, message, evidence=[shown], reason=reason, severity="data")

    def _stamped_apart(
        self, module: SourceModule, project: Project, call: ast.Call, path: ast.expr, shown: Evidence
    ) -> Finding | None:
        """A folder that rank 0 alone makes under the name that its own clock gives: the others write into another."""
        for one in stamped_apart(project, module, call, path):
            text = without_days(origin_text(module, one.value))
            if not _CLOCK.search(text) or _OWN_PATH.search(text) or is_run_by_nobody(project, module, call):
                continue
            reason = "take the time on rank 0 and broadcast it, or hand it to all processes as an argument or a variable"
            return self.finding(
                module, one.value, one.message, evidence=[shown], reason=reason, severity="crash" if one.reads else "data"
            )
        return None

    def _counted(self, module: SourceModule, project: Project, call: ast.Call, spelling: str) -> Finding | None:
        """A folder whose name is the next that is free: a rank that comes later finds that of another, and takes the next."""
        path = folder_of(call, spelling)
        if path is not None and (apart := counted_apart(project, module, call, path)) is not None:
            return self._made_by_one(module, project, call, path, apart)
        if path is None or not any(module.holds(word) for word in _LISTING):
            return None
        shown = ranks_in_file(project, module) or ranks_in_importers(project, module)
        if shown is None or (found := counted_in(project, module, path)) is None:
            return None
        if found.searched and not gives_exist_ok(module, call, spelling):
            return None  # the slower rank fails, which is told as the race that it is
        if any(ranks_reaching(project, m, n).some for m, n in ((module, call), (found.module, found.node))):
            return None
        if _OWN_PATH.search(origin_text(module, path)) or is_handed_round(project, module, call):
            return None
        if is_of_the_starter(project, module, call) or is_for_some(project, module, call) or comes_alone(project, module, call):
            return None
        what = " ".join(module.text_of(path).split())
        message = (
            f"every rank works out for itself which name is free for {what}: one that comes later finds the folder of another "
            "rank and takes the next, and the ranks work in different folders"
        )
        at = found.node if found.module is module else call
        evidence = [shown, Evidence("static", "the name is worked out here", found.module.path, found.node.lineno)]
        reason = "choose the name on rank 0 and broadcast it, or hand it to all processes as an argument or a variable"
        return self.finding(module, at, message, evidence=evidence, reason=reason)

    def _made_by_one(
        self, module: SourceModule, project: Project, call: ast.Call, path: ast.expr, apart: CountedApart
    ) -> Finding | None:
        shown = ranks_in_file(project, module) or ranks_in_importers(project, module)
        if shown is None or is_run_by_nobody(project, module, call):
            return None
        message = (
            f"every rank works out for itself which name is free for {module.text_of(path)}, and rank 0 makes the folder (line "
            f"{call.lineno}): a rank that comes later counts it and takes the next name, in line {apart.used} a folder of its own"
        )
        at = apart.found.module.path, apart.found.node.lineno
        evidence = [shown, Evidence("static", "the name is worked out here", *at)]
        reason = "choose the name on rank 0 and broadcast it, or hand it to all processes as an argument or a variable"
        return self.finding(module, apart.statement, message, evidence=evidence, reason=reason, severity="data")

    def _judge(self, module: SourceModule, project: Project, call: ast.Call, spelling: str) -> Finding | None:
        evidence = ranks_in_file(project, module)
        imported = None if evidence else ranks_in_importers(project, module)
        borrowed = imported or (None if evidence else _shown_by_callers(project, module, call))
        shown = evidence or borrowed
        if shown is None or ranks_reaching(project, module, call).some or is_of_the_starter(project, module, call):
            return None
        if is_for_some(project, module, call) or is_made_by_one(project, module, call):
            return None
        if borrowed and (asks_for_rank(module, call) or (imported and not is_asked_for(project, module, call))):
            return None
        path = folder_of(call, spelling)
        if path is None or _OWN_PATH.search(origin_text(module, path)):
            return None
        if is_named_by_own_number(project, module, path) and left(module, call, "each process draws a number for the path"):
            return None
        if is_named_by_moment(module, path) and left(module, call, "each process reads a time of its own into the path"):
            return None
        what = module.text_of(path)
        message = f"every rank creates `{what}`: all but the first fail with FileExistsError"
        if tested := is_tested(module, call, path):
            message = (
                f"every rank creates `{what}` where it is missing: of ranks that find it missing at once all but the first fail "
                "with FileExistsError"
            )
        if call.args and variance(project).argument(module, call, 0).cause is Cause.DATA:
            message = (
                f"`{what}` is the folder of samples that several ranks have: of two ranks that come to it at once one fails with "
                "FileExistsError"
            )
        handler = handler_of(module, project, call)
        if (handler is not None and not goes_on(handler)) or is_run_by_nobody(project, module, call):
            return None
        reason = _LEADS_ELSEWHERE if handler is not None else why_an_error(module, call, path)
        if reason:
            return self.finding(module, call, message, evidence=[shown], reason=reason) if evidence else None
        if tested and (is_made_by_all_above(project, module, call, path) or is_made_by_trainer(project, module, call, path)):
            return None  # the test is never true
        way = way_of_every_rank(project, module, call)
        if way is None and not is_in_hook(project, module, call):
            return None
        if is_of_own_data(project, module, call) or fetches(project, module, call):
            return None
        if tested and way is not None and (_is_of_first_process(project, way) or is_made_above(project, module, call, path)):
            return None
        if tested and not names_nodes(project) and is_of_a_first_run(project, module, call):
            return None
        if tested and says_what_is_made(project, module, call, path):
            return self.finding(module, call, message, evidence=[shown], reason=_SAYS_WHAT_IS_MADE)
        made = [call, *(made_beside(module, call) if tested else ())]
        edits = [*(e for c in made for e in _with_exist_ok(module, c)), *_without_test(module, call, path)]
        if any(creates_folder(module, c) == "os.mkdir" for c in made):
            return self._mkdir(module, call, made, message, edits, shown)
        if borrowed and not tested:
            assumes = "assumes that no caller relies on the error for a folder that is already there"
            unsafe = Applicability.UNSAFE
            return self.finding(module, call, message, level=unsafe, edits=edits, evidence=[shown], reason=assumes)
        return self.finding(module, call, message, level=Applicability.SAFE, edits=edits, evidence=[shown])

    def _mkdir(
        self, module: SourceModule, call: ast.Call, made: list[ast.Call], message: str, edits: list[Edit], shown: Evidence
    ) -> Finding:
        if not all(isinstance(c.func, ast.Attribute) and all(k.arg != "dir_fd" for k in c.keywords) for c in made):
            reason = "os.mkdir has no exist_ok: write os.makedirs(…, exist_ok=True)"
            return self.finding(module, call, message, evidence=[shown], reason=reason)
        assumes = "os.mkdir has no exist_ok; os.makedirs also creates missing parents, which is assumed to be welcome"
        unsafe = Applicability.UNSAFE
        return self.finding(module, call, message, level=unsafe, edits=edits, evidence=[shown], reason=assumes)


def _with_exist_ok(module: SourceModule, call: ast.Call) -> Iterator[Edit]:
    if creates_folder(module, call) == "os.mkdir" and isinstance(call.func, ast.Attribute):
        yield ReplaceExpression(module.path, module.span(call.func), f"{module.text_of(call.func.value)}.makedirs")
    yield SetKeyword(module.path, module.span(call), "exist_ok", "True")


def _without_test(module: SourceModule, call: ast.Call, path: ast.expr) -> tuple[Edit, ...]:
    """Nothing for a path that may be that of a file: the test has left that alone, and `exist_ok` does not."""
    return () if may_be_a_file(module, path) else without_test(module, call, path)


def _clock(module: SourceModule, path: ast.expr) -> ast.expr | None:
    """What reads the clock, where it stands in the value of a name that the path is made of."""
    names = [(n, name) for n in walk(path) if isinstance(n, (ast.Name, ast.Attribute)) and (name := dotted(n))]
    values = [v for n, name in names for v in assigned(module, n, name)]
    values += [w for v in values for n in walk(v) if isinstance(n, ast.Name) for w in assigned(module, n, n.id)]
    read = [v for v in values if _CLOCK.search(module.text_of(v))]
    return read[-1] if read else None


def _shown_by_callers(project: Project, module: SourceModule, call: ast.Call) -> Evidence | None:
    """What shows several processes on a way to a helper that makes what it does not find, over any number of files."""
    path = folder_of(call, creates_folder(module, call))
    if path is None or module.function_of(call) is None or not is_tested(module, call, path):
        return None
    if not may_be_run_by_ranks(project, module.path) or _OWN_PATH.search(origin_text(module, path)):
        return None
    way = way_of_every_rank(project, module, call)
    return way.shown if way is not None and not is_made_above_fit(project, way) and not is_dead(project, way) else None


def _is_of_first_process(project: Project, way: Way) -> bool:
    """True above Lightning's `fit`, whose launcher starts the other processes of this node: each node has a first process."""
    return comes_first(project, way) and not names_nodes(project)
