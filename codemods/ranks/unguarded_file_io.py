"""DDP202: files that every rank writes, renames or deletes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_test_module, ranks_in_file, runs_trials
from codemods.analysis.files.before_fit import is_above_fit
from codemods.analysis.files.behind_first_mkdir import is_behind_first_mkdir, is_called_behind_first_mkdir
from codemods.analysis.files.beside_tracker import is_beside_tracker
from codemods.analysis.files.entered_by_device import is_entered_by_device
from codemods.analysis.files.every_rank import is_for_some, runs_alone, way_of_every_rank
from codemods.analysis.files.file_locks import is_under_lock
from codemods.analysis.files.file_runs import (
    HOOKS,
    NOT_READ,
    below_tests,
    decides_a_name,
    files_of,
    is_a_run_for_nobody,
    is_made_sure_of,
    level_of,
    level_unless_read,
    only_takes_away,
    takes_away,
    trimmed,
    used_behind,
    writes_of,
)
from codemods.analysis.files.files_of_all import FileOfAll, files_of_all
from codemods.analysis.files.files_of_each_rank import are_of_each_rank
from codemods.analysis.files.found_by_later_ranks import is_found_by_those_of_fit
from codemods.analysis.files.guarded_too_early import guarded_too_early
from codemods.analysis.files.hooks_that_write import CLASSES, comes_by_a_hook, is_of_a_hook
from codemods.analysis.files.items_of_a_loop import advice_for_items, is_of_a_share
from codemods.analysis.files.own_contents import holds_own
from codemods.analysis.files.paths_in_statements import changed_paths_in, paths_in
from codemods.analysis.files.reads_beside import for_readers
from codemods.analysis.files.rounds_of_own import in_own_rounds
from codemods.analysis.files.same_contents import writes_the_same
from codemods.analysis.files.save_judgement import Judgement
from codemods.analysis.files.save_repairs import holds_save
from codemods.analysis.files.settings_dumps import is_unread_settings
from codemods.analysis.files.source_copies import copies_source
from codemods.analysis.files.told_files import (
    advice_for,
    is_above_the_start,
    message_of,
)
from codemods.analysis.files.unfixed_runs import why_no_fix
from codemods.analysis.files.writing_functions import WRITES, writes_below
from codemods.analysis.files.written_saves import is_of_saves
from codemods.analysis.guards.before_group import group_comes_later, is_of_group
from codemods.analysis.guards.imported_again import imports_again
from codemods.analysis.hooks import WRITER_HOOKS
from codemods.analysis.output.effects import Effect, Kind, effects_of_function, names_rank, phrases
from codemods.analysis.output.guard_edits import guard_edit
from codemods.analysis.output.guard_spelling import Spelling, guard_for, has_guard, written_out
from codemods.analysis.output.observers import is_taken_as_a_whole
from codemods.analysis.output.output_runs import Run, is_guarded_at_its_calls, makes_folder, output_runs
from codemods.analysis.output.package_names import asks_the_group
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import decorated_ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.unused import is_never_run
from codemods.analysis.run_by_ranks import may_be_run_by_ranks
from codemods.analysis.short_texts import shortened
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, Severity
from codemods.data.process_words import OFFERS_A_GUARD, SHOWS_PROCESSES
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_A_NODE = lazy(r"cache|scratch|/tmp|tmpdir|temp_?dir|shm", re.IGNORECASE)  # each node may have its own
_MOVED = lazy(r"^(?:os\.rename|os\.renames|os\.replace|shutil\.move)\(")

_OVERWRITE = "the ranks overwrite or repeat each other's output"

# Of files that hold these, functions are looked at that have a test for rank 0 at hand.
_KNOWS_RANKS = (
    (b"rank", b"RANK", b"lightning", b"torch.distributed", b"ccelerat", b"Trainer", b"Callback", b"Lightning", b"DataModule",
     b"WORLD_SIZE", b"TrainingArguments", b"DistributedDataParallel"),
    SHOWS_PROCESSES,
    (*OFFERS_A_GUARD, b"torch.distributed"),
)  # fmt: skip
_TOLD_FILES = 4  # of a constructor that opens several


class UnguardedFileIo(DdpCodemod):
    """A file that every rank writes, renames or deletes.

    ## What it does
    Finds neighbouring statements that write, rename, delete or plot, in hooks and in functions that know the rank, and puts
    the smallest block of them under a test for rank 0. Where no such test is at hand, it reports what every rank writes anew,
    moves or takes away under one name: above the start of the process group, in helpers whose callers show the processes, on the
    module level of a script that `mp.spawn` imports again in each process, and a log that each
    rank opens anew (`FileHandler(path, "w")`) or rotates by itself (`TimedRotatingFileHandler(path)`,
    `RotatingFileHandler(path, maxBytes=n)`), also where a helper that answers 0 without a process group keeps it to rank 0,
    and is asked above the start of the group. It reports a folder that every rank takes away (`rm -rf`, too) and that is made
    again behind it without a wait. What a Lightning script moves away above `fit` is reported as what its later
    processes no longer find. It names the way by which every rank comes there.

    ## Why it matters
    The ranks open the same file at once: the last writer wins, lines are torn, appended rows stand there once for each rank.
    A rank that deletes or renames takes the file from under the others, which die with FileNotFoundError.

    ## Example
    ```python
    import json

    import lightning.pytorch as pl


    class History(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            metrics = {k: float(v) for k, v in trainer.callback_metrics.items()}
            with open("history.json", "a") as f:
                json.dump(metrics, f)
    ```

    ## Use instead
    ```python
    import json

    import lightning.pytorch as pl


    class History(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            metrics = {k: float(v) for k, v in trainer.callback_metrics.items()}
            if trainer.is_global_zero:
                with open("history.json", "a") as f:
                    json.dump(metrics, f)
    ```

    ## Safety
    Safe in observing hooks, and in scripts where what is written comes from the arguments, the configuration or the result of
    a Trainer, is what an accelerator has gathered, or what a function of the project makes of the names, shapes and counts of a
    model's parameters, in a project that cuts no model up. Elsewhere unsafe: the finding names the values that are assumed to be
    the same on every rank. Unsafe too where a file or folder is removed or moved that others may still be at: in scripts, and
    in hooks that name it again below; where the test rests on the launcher's `RANK`; where the same source reads a file of
    that suffix on every rank, which may be this one; in a cache or a temporary folder, which each node may have for itself.

    ## Refuses
    - Copies of the program's own source (`shutil.copy(__file__, folder)`): the same bytes, which no run reads. Silent.
    - Paths that name the rank or the process, what stands in a loop over the rank's own share, and functions that such a loop
      calls: each rank's own file; paths below the `log_dir` of a logger of Lightning that numbers its folders: each process may
      have a number of its own.
      So are paths made of what a `DistributedSampler` draws, or of an item of a loader that has one; and, in a repository with
      such a sampler, paths made of what a batch says of its sample, unless its loader is seen to have none.
    - Names that each process draws for itself (`f"{random.randint(0, 999)}.png"`), unless a seed that is the same on all ranks
      is set for that library in the program: each rank's own files. Silent.
    - What is written below a folder that the function has made just above without `exist_ok`: the other ranks end there, as
      DDP204 says, and the one that goes on need not be rank 0. Silent.
    - Paths with the GPU's number in them (`torch.cuda.current_device()`, too), and what is only called under a test
      of it (`if self.device == 0:`): silent.
    - What is only taken away for each batch or item, and the trials of Ray Tune, which have no ranks: silent.
    - A scratch file that a function writes, reads back and removes: reported, for each process needs one of its own.
    - Files of a loop that goes on to the next item where the file is there: the ranks share the items out by that. Silent.
    - What is only made where it is missing, above the `fit` of a script whose Trainer starts the other processes: they find it.
      So do those that come to `setup` of a data module find what `prepare_data` has made. Silent.
    - Files that are taken away where one that is gone already is put up with (`suppress`, `except`, `missing_ok=True`, `rm -rf`),
      unless it is a folder that is made again behind it.
    - A file that other ranks read, list or test: reported, for the guard and a barrier must come together.
    - What only this rank has seen (batches, lists that a step fills, numbers of its own share of the data), and what is written
      for each item of a loop without being shown to be the same everywhere: reported, gather first.
    - Writing to a file that is opened outside of what would go under the test, reported: each rank's opening empties it.
    - Statements that create a folder stay outside the test.
    - Constructors, reported: the rank is not known there for sure.
    - Statements that bind a name used later, or that stand between calls every rank needs: reported in hooks.
    - Hooks that only write (DDP201 takes them as a whole), folders (DDP204), `torch.save` (DDP501).
    - Statements that are guarded already, by a test, a decorator, or every caller; a repository's own tests.
    - Functions of a repository of scripts that nothing in it calls, hands on or names; those that are only handed on.
    - Tasks that return above the start of the process group (`if args.task == "convert": ...; return`): silent.
    - Tests of a parameter that no caller makes true, of an argument that every maker of the object leaves None, files that a
      caller names after the sample of a batch, and an Accelerator that a program of one process has for half precision alone.
    - Where no test is at hand, silent about: lines that are added (`"a"`), the settings of the run in a file that nobody reads
      (`json.dump(vars(args), f)`: each rank writes the same), files of one item of a loop, names made of a clock or
      of random letters, handlers of errors (unless every rank fails at that very file), locks, calls that may be another
      object's method of that name, functions under a decorator of the project that asks for the rank, paths that no call gives.
    - Lines that each rank adds to one file about the device that it has; buffers in memory; paths made of the rank by a function.
    - What only scripts call that show nothing of several processes.
    - A test that asks the group where it starts further down, reported: it is true on every rank there.
    - Functions without a sure test for rank 0; scripts whose Trainer has one device on one node.

    ## References
    Two-process runs on Lightning 2.6.6: unguarded writes, appends, `rmtree` and renames in hooks; transformers 5 callbacks.
    """

    code = "DDP202"
    severity = "data"
    takes_several = True
    subject = "Write files from one process"
    must_show = "The files are written once and are whole, and no other process looks for one before it is there."
    printed = ()
    TRIGGERS = (
        (b"open(", b"save", b"dump", b"write", b"to_csv", b"to_json", b"to_excel", b"to_p", b"to_f", b"to_h", b"tofile",
         b"remove", b"rmtree", b"rename", b"unlink", b"shutil", b"copy",
         b"FileHandler", b"filemode", b"rm -", b'"rm"', b"'rm'"),
    )
    SITES = (WRITES,)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_be_run_by_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.holds(b"split_between_processes") or runs_trials(module):
            return
        yield from self._known(module, project)
        yield from self._left(module, project)
        yield from self._early(module, project)

    def _known(self, module: SourceModule, project: Project) -> tuple[Finding, ...]:
        """What is found where a test for rank 0 is known, in a file that is looked at: by its words it may write something."""
        if not all(any(module.holds(word) for word in group) for group in (*_KNOWS_RANKS, *self.TRIGGERS)):
            return ()
        if not any(WRITES.lines(module.data)):
            return ()
        return project.memo(("files under known tests", module.path), lambda: tuple(self._guarded(module, project)))

    def _told_lines(self, module: SourceModule, project: Project) -> set[int]:
        told = self._known(module, project)
        lines = {n for f in told for n in range(f.span.line, f.span.end_line + 1)}
        return lines | {e.line for f in told for e in f.evidence if e.path == module.path}

    def _left(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """What every rank comes to where no test for rank 0 is known, or none that its function could be given."""
        lines = self._told_lines(module, project)
        seen: set[tuple[str, int]] = set()
        for found in files_of_all(project, module):
            if holds_own(project, found.home, iter([found.file.call])) or is_unread_settings(project, found.home, found.file):
                continue  # DDP211 tells of the first
            if is_of_a_hook(project, found) or copies_source(found.home, found.file.call):
                continue  # looked at above, with the whole of its class
            if comes_by_a_hook(project, found):
                continue  # unguarded-hook keeps the hook to rank 0
            place = found.module.path, found.at.lineno
            if found.file.call.lineno in lines or place in seen or self._is_told_with_a_caller(project, found):
                continue
            seen.add(place)
            evidence = [Evidence("static", shortened(h.text_of(n)), h.path, line_of(n)) for h, n in found.way.frames[:3]]
            evidence.append(found.way.shown)
            reason = advice_for(project, found)
            same = not found.removes and writes_the_same(project, found.home, [found.home.statement_of(found.file.call)])
            severity: Severity = "noise" if same else ""
            yield self.finding(
                found.module, found.at, message_of(found), evidence=evidence, reason=reason, severity=severity
            )

    def _early(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """Files that are kept to rank 0 by a test that is asked above the start of the group."""
        for found in guarded_too_early(project, module):
            site = found.site
            if is_run_by_nobody(project, site.module, site.call, shared=False):
                continue
            message = (
                f"{found.helper} is asked here before there is a process group: every process takes itself for rank 0, and "
                f"{module.text_of(found.file.call.func)}(…) of each writes into the same file"
            )
            evidence = [
                Evidence("static", "rank 0 alone is meant to come here", module.path, found.file.call.lineno),
                Evidence("static", f"the group comes later: {found.start}", site.module.path, site.call.lineno),
            ]
            reason = "move the call below that, or ask what the launcher sets (`os.environ[\"RANK\"]`)"
            yield self.finding(site.module, site.module.statement_of(site.call), message, evidence=evidence, reason=reason)

    def _is_told_with_a_caller(self, project: Project, found: FileOfAll) -> bool:
        """True where the place, a part of it, or a call that leads to it is told with a test that is known there."""
        places = [(found.module, found.at), *((h, h.statement_of(n)) for h, n in found.way.frames[:3])]
        for home, statement in places:
            span = home.span(statement)
            head = isinstance(statement, (ast.With, ast.For, ast.If))
            end = span.end_line if head and statement is found.at else span.line
            if self._told_lines(home, project) & set(range(span.line, end + 1)):
                return True
        return False

    def _guarded(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for function in module.functions:
            if function.name in WRITER_HOOKS or decorated_ranks(module, function, project=project).some:
                continue  # DDP211 tells of what a writer overwrites
            if function.name != "__init__" and not writes_below(project, module, function):
                continue  # asked first: whose class it is may stand in other files
            owner = module.parent(function)
            in_class = isinstance(owner, ast.ClassDef) and any(class_facts(project, module, owner).is_a(r) for r in CLASSES)
            if in_class and function.name == "__init__":
                yield from self._constructor(module, project, function)
            hidden = function.name.startswith("__") and (in_class or function.name != "__init__")
            if hidden or not (in_class or ranks_in_file(project, module)):
                continue
            if function.name == "__init__" and not writes_below(project, module, function):
                continue
            if not has_guard(project, module, function) and (in_class or not asks_the_group(module)):
                continue
            done = list(self._runs(module, project, function, in_class=in_class))
            if not done and in_class and function.name in HOOKS:
                done = list(self._between(module, project, function))
            elif done and is_guarded_at_its_calls(project, module, function):
                continue
            if done and (is_never_run(project, module, function) or runs_alone(module, function)):
                continue
            if not done or is_taken_as_a_whole(project, module, function):  # the dearest questions, asked of few
                continue
            if not is_run_by_nobody(project, module, function.body[0], shared=False):
                yield from done
        if ranks_in_file(project, module):
            yield from self._runs(module, project, module.tree, in_class=False)

    def _runs(
        self, module: SourceModule, project: Project, function: FunctionNode | ast.Module, *, in_class: bool
    ) -> Iterator[Finding]:
        for run in output_runs(project, module, function, lambda s: _may_move(module, s) and not holds_save(project, module, s)):
            files = files_of(project, module, run.effects.output)
            run = trimmed(project, module, run) if files else run
            if not files or any(is_of_saves(project, e) for e in files):
                continue
            if ranks_reaching(project, module, run.first).some or is_for_some(project, module, run.first):
                continue
            if is_a_run_for_nobody(project, module, run) or is_entered_by_device(project, module, run.first):
                continue
            if is_under_lock(module, run.first) or is_found_by_those_of_fit(project, module, run.statements):
                continue
            if function is module.tree and imports_again(module, run.first) is not None:
                continue  # nobody knows the rank there
            spelled = guard_for(project, module, run.first)
            unsure = spelled is None or bool(spelled.assumes)
            if unsure and not in_class and (way := way_of_every_rank(project, module, run.first)) is not None:
                if any(is_above_the_start(home, node) for home, node in way.frames):
                    continue  # there is no group to ask yet: told below
                spelled = written_out(project, module, run.first) or spelled
            if spelled is None or (
                (spelled.asks_group or is_of_group(spelled.test)) and group_comes_later(project, module, run.first)
            ):
                continue  # a test that asks the group is true on all ranks there: told below
            if in_own_rounds(project, module, run.statements) or runs_alone(module, module.function_of(run.first)):
                continue
            if holds_own(project, module, (n for s in run.statements for n in walk(s) if isinstance(n, ast.Call))):
                continue  # DDP211 tells of it
            paths = [p for s in run.statements for p in paths_in(s)]
            if is_behind_first_mkdir(module, run.first, paths) or is_beside_tracker(module, paths):
                continue  # the other ranks end above it (DDP204 tells of that), or have no such path
            if is_called_behind_first_mkdir(project, module, run.first, paths):
                continue
            if not are_of_each_rank(project, module, run, paths):
                yield from self._judged(module, project, function, run, files, paths, spelled, in_class=in_class)

    def _judged(
        self, module: SourceModule, project: Project, function: FunctionNode | ast.Module, run: Run, files: list[Effect],
        paths: list[ast.expr], spelled: Spelling, *, in_class: bool,
    ) -> Iterator[Finding]:  # fmt: skip
        """What is told of a run that every rank comes to, or its guard."""
        harm = "the second one raises FileNotFoundError" if only_takes_away(files) else _OVERWRITE
        message = f"every rank comes here, and {phrases(files[:1])}: {harm}"
        evidence = [Evidence("static", e.phrase, e.path, e.line) for e in files[:2]]
        if _MOVED.search(files[0].text) and decides_a_name(module, run) and is_above_fit(project, module, run.first):
            message = (
                f"each process runs the script up to here, and {files[0].text} takes the file away: those that `fit` starts "
                "later no longer find it, and do not go on as rank 0 does"
            )
            reason = "let `rank_zero_only.rank == 0` do it, and find the file under its old and its new name on every rank"
            yield self.finding(module, run.first, message, evidence=evidence, reason=reason)
            return
        changed = [p for s in run.statements for p in changed_paths_in(s)]
        if told := why_no_fix(module, project, function, run, changed):
            yield self.finding(module, run.first, message, evidence=evidence, reason=told)
            return
        told, other_harm = for_readers(project, module, function, run, changed)
        if told:
            message = f"every rank comes here, and {phrases(files[:1])}: {other_harm or harm}"
            yield self.finding(module, run.first, message, evidence=evidence, reason=told)
            return
        level, assumes = level_of(project, module, function, run, in_class=in_class)
        if level is Applicability.SAFE:
            level, assumes = level_unless_read(module, project, function, paths)
        if level is Applicability.SAFE and any(_OF_A_NODE.search(origin_text(module, p)) for p in paths):
            level, assumes = Applicability.UNSAFE, "assumes that the nodes share the disk on which it lies"
        if level is Applicability.SAFE and (gone := takes_away(module, function, run, paths, in_class=in_class)):
            level = Applicability.UNSAFE
            assumes = f"assumes that no other rank needs what {gone} takes away before that is done"
        if level is Applicability.SAFE:
            level, assumes = spelled.level(), spelled.assumes
        if level is not Applicability.SAFE and not assumes.startswith(NOT_READ) and is_of_a_share(module, function, run):
            if only_takes_away(files):
                return  # what is gone cannot be gathered
            yield self.finding(module, run.first, message, evidence=evidence, reason=advice_for_items(project, module, run))
            return
        handed = Judgement(level=level, reason=assumes, writes=writes_of(project, module, run))
        handed = handed.behind(project, module, below_tests(module, run), spelled.test)
        if handed.told:
            yield self.finding(module, run.first, message, evidence=evidence, reason=handed.told)
            return
        level, assumes = handed.level, handed.reason
        same = not only_takes_away(files) and not in_class and writes_the_same(project, module, run.statements)
        guard = guard_edit(project, module, run.first, run.last, spelled.test, alone=not handed.edits)
        edits: list[Edit] = [guard, *spelled.edits, *handed.edits]
        if level is Applicability.SAFE:
            what = "each rank has the same to write" if not in_class else "the block puts something out, and does nothing else"
            evidence.append(Evidence("safe", f"{what}, and rank 0 is known by `{spelled.test}`", module.path, run.first.lineno))
        yield self.finding(
            module, run.first, message, level=level, edits=edits, evidence=evidence, reason=assumes,
            severity="noise" if same else "",
        )  # fmt: skip

    def _constructor(self, module: SourceModule, project: Project, function: FunctionNode) -> Iterator[Finding]:
        output = effects_of_function(project, module, function).output
        files = [e for e in files_of(project, module, output) if e.called == "open" and not is_made_sure_of(project, e)]
        if files:
            message = f"every rank builds this object, and {phrases(files[:1])}: the ranks overwrite each other's file"
            reason = "a constructor runs before the rank is sure to be known: open the file in a hook, on rank 0"
            evidence = [Evidence("static", e.phrase, e.path, e.line) for e in files[:_TOLD_FILES]]
            yield self.finding(module, function, message, evidence=evidence, reason=reason)

    def _between(self, module: SourceModule, project: Project, function: FunctionNode) -> Iterator[Finding]:
        """A hook that writes, but not in statements of their own."""
        effects = effects_of_function(project, module, function)
        files = files_of(project, module, effects.output)
        rest = effects.besides(Kind.STATE)
        if not files or not rest or names_rank(module.text_of(function)) or any(is_of_saves(project, e) for e in files):
            return
        message = f"every rank runs {function.name}, and {phrases(files[:1])}: the ranks overwrite each other's output"
        reason = f"every rank may need what else is done there ({phrases(rest)}): put the writing alone under a guard"
        if (line := used_behind(project, module, function)) is not None:
            reason += f", and a barrier behind it: every rank uses what is written in line {line}"
        yield self.finding(module, function, message, reason=reason)


def _may_move(module: SourceModule, statement: ast.stmt) -> bool:
    """False for a rank's own file, and for folders: other ranks may write into them, on their own node's disk too."""
    return not names_rank(module.text_of(statement)) and not makes_folder(module, statement)
