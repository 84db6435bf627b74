"""DDP307: every rank fills the same files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_module, ranks_in_file, ranks_in_importers
from codemods.analysis.files.asked_paths import text_of_path
from codemods.analysis.files.before_fit import is_of_each_round, starts_its_ranks
from codemods.analysis.files.fetched_by_all import OF_HUB, Fetch, fetched_by_all
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.filled_on_demand import OnDemand, filled_on_demand
from codemods.analysis.files.loose_ends import may_be_made_elsewhere
from codemods.analysis.files.missing_by_exception import made_by_a_handler
from codemods.analysis.files.polled_files import polled_files
from codemods.analysis.files.shared_caches import SharedCache, shared_caches
from codemods.analysis.files.whole_files import whole_file
from codemods.analysis.names import qualified
from codemods.analysis.run_by_ranks import may_be_run_by_ranks
from codemods.analysis.short_texts import short, shortened
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.data.printed_errors import HALF_WRITTEN
from codemods.files.sites import Site
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project


class CacheFilledByEveryRank(DdpCodemod):
    """A cache that every rank fills, while others read it.

    ## What it does
    Finds data sets whose constructor writes files, itself or through its methods, that `__getitem__`, `__iter__` or `__len__`
    read or list, with no test of the rank and no collective, in a project that runs on several processes. Finds functions and
    constructors, too, where every rank comes, that ask whether a file or folder is there, write or unpack it in place where it
    is not, and read it, or that load it and make it where that fails with `FileNotFoundError` alone; so where rank 0 alone
    writes it in place while the others still ask, or look for it in a loop until it is there. The test may stand in a function
    of the project that answers for the path, or be `name in os.listdir(folder)`, and the reader may be the caller, or a loader
    that is given the path, or a method of the object, or of an heir, that is called next; what writes may be a tokenizer that
    saves itself, or an LMDB database that is opened to be filled. A file that one call writes gets another name until it is
    whole; the rest is reported. A wait of the function counts where it stands between the making and the reading, or above the
    test behind something that some ranks do alone: a training waits at many other places. Reports what every rank fetches into
    one folder on the first run: `torch.hub.load`, `list` and `help`, the weights of OpenAI's `clip.load`, data sets of
    torchvision, torchaudio and torchgeo with `download=True`, also where a caller gives it, be the class in a variable, chosen
    by its name, or one of the project below it that hands `download` on, archives (`beir.util.download_and_unzip`,
    torchvision's `download_and_extract_archive`), and data sets of torch_geometric: its own (`Planetoid(root, "Cora")`), and
    classes with a `process` or `download` of their own, also where a name says which class of a module is made.
    A class that a Lightning data module names is made on every rank; so is one that goes out of a factory or a registry which a
    script of several processes imports, or that a setting names for such a script, also by the name of an heir or by the package
    that hands it on; one that `getattr(sets, name)` or `eval("sets." + name)` finds is made where that is called.

    ## Why it matters
    Each rank does the whole work, and all of them write the same files: one reads what another has half written, and `__len__`
    counts files that are still being made, so that the ranks disagree about the length. A test for the file does not help: it is
    there as soon as it is opened, long before it is whole.

    ## Example
    ```python
    import os

    import torch
    import torch.distributed as dist


    def load_rows(path, build):
        if not os.path.exists(path):
            torch.save(build(), path)
        return torch.load(path)


    def main(build):
        dist.init_process_group("gloo")
        return load_rows("rows.pt", build)
    ```

    ## Use instead
    ```python
    import os

    import torch
    import torch.distributed as dist


    def load_rows(path, build):
        if not os.path.exists(path):
            torch.save(build(), f"{path}.{os.getpid()}")
            os.replace(f"{path}.{os.getpid()}", path)
        return torch.load(path)


    def main(build):
        dist.init_process_group("gloo")
        return load_rows("rows.pt", build)
    ```

    ## Safety
    A file that is written under a name of the process and then renamed is whole for whoever finds it; the fix is unsafe, since it
    leaves the work on every rank. There is none where a handler takes the file away: the part beside it would stay. For data sets
    that write many files there is none: they are built before the process group starts as well as after, and a barrier is nothing
    there before.
    What the constructor keeps in memory beside the files is needed on every rank.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing where nothing shows several processes, in the file or in one that imports it.
    - Says nothing of a fetch where `prepare_data` of the class, a call under a test of the rank, or a lock comes first, or a
      barrier above behind something that some ranks do alone and that may bring the files.
    - Says nothing of data sets that torch_geometric makes up in memory (`FakeDataset`).
    - Says nothing of a class below a data set of torchvision, torchaudio or torchgeo that keeps `download` to itself.
    - Says nothing of `clip.load` from a file that lies there, and of a `clip` of the project's own.
    - Says nothing of a class of a factory where a file between it and the script lets one process in first.
    - Says nothing where some callers may not write (`if read_only: raise`).
    - Says nothing of what a Lightning script makes above `fit`, unless a text or a job script of the repository starts all
      processes from outside (torchrun, srun, Hydra's launcher for Slurm): rank 0 is through with it before its Trainer starts
      the others.
    - Says nothing of functions that no program comes to, and of what the program ends behind; nothing of a copy of an installed
      package that only `import clip` beside it names: that means the installed one.
    - Says nothing of a sample's own file in `__getitem__`, or a method that it calls, where a sharded loader deals
      the samples out: one rank makes it.
    - Says nothing of a file that the repository itself holds: no rank finds it missing.
    - Says nothing of a file that `os.replace`, `rename` or `torch.hub.download_url_to_file` puts in its place, of one that
      gdown loads, of one that is only waited for and read by nobody, and of one that is waited for and read after a
      `time.sleep(5)` or behind a collective.
    - Says nothing where some caller lets rank 0 in first, or alone: the others find the files.
    - Says nothing of a load whose `try` also catches what a half-written file raises (`EOFError`, `Exception`): it is made anew.
    - Says nothing where the constructor or function waits for the other ranks, takes a lock, or writes under a test of the rank.
    - Says nothing of files whose names hold the rank, and of files that no method of the class reads.

    ## References
    Runs on two gloo processes: concurrent writers left readers corrupt files in 4 of 10 loads (torch 2.13).
    """

    code = "DDP307"
    severity = "data"
    subject = "Let a cache appear under its name when it is whole"
    must_show = (
        "With the cache deleted first, both processes load the same rows, and no file with a number behind its name is left."
    )
    printed = HALF_WRITTEN
    TRIGGERS = (
        (b"save", b"open(", b"dump", b"imwrite", b"write_", b"to_", b"extract", b"download", b"unpack", b"urlretrieve", b"build",
         b"hub", b"clip", b"memmap", b"generate", b"create", b"process", b"torch_geometric"),
        (b"load", b"open(", b"read", b"listdir", b"glob", b"iterdir", b"memmap", b"return", b"torch_geometric"),
    )
    SITES = (
        re.compile(rb"class[ \t]+\w+[ \t]*\([^)\n]*Dataset"),
        Site(
            rb"(?:if|while)\b[^\n]*(?:exists?|(?:is|has)_?(?:file|dir)|is_?cached|is_?there)\w*\(",
            b"exist", b"isfile", b"isdir", b"is_file", b"is_dir", b"has_file", b"has_dir", b"cached",
            b"there",
        ),
        Site(rb"\bin[ \t]+(?:\w+\.)?listdir\(", b"listdir("),
        Site(
            rb"\bexcept\b[^\n]*(?:FileNotFound|OS|IO|Environment)Error", b"FileNotFoundError", b"OSError", b"IOError",
            b"EnvironmentError",
        ),
        Site(
            rb"\b(?:hub|clip)\.load\(|\bhub\.(?:list|help)\("
            rb"|\bdownload[ \t]*=[ \t]*(?:True|self\.\w+|(?!False|None)\w+[ \t]*[,)\r\n])|torch_geometric"
            rb"|\bdownload_and_(?:unzip|extract_archive)\(",
            b"hub.load(", b"hub.list(", b"hub.help(", b"clip.load(", b"download", b"torch_geometric",
        ),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_be_run_by_ranks(project, path) or may_be_made_elsewhere(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        told: set[int] = set()
        written: set[int] = set()
        for demand in (*filled_on_demand(project, module), *made_by_a_handler(project, module)):
            told.add(id(demand.function))
            written.add(id(demand.write.call))
            yield self._on_demand(project, module, demand)
        yield from (self._polled(project, module, demand) for demand in polled_files(project, module))
        by_function: dict[int, list[Fetch]] = {}
        for fetch in (f for f in fetched_by_all(project, module) if id(f.call) not in written):
            by_function.setdefault(id(module.function_of(fetch.call)), []).append(fetch)
        for fetches in by_function.values():
            yield self._fetched(module, fetches[0], fetches[1:])
        for found in shared_caches(project, module):
            if id(module.function_of(found.call)) in told:
                continue
            shown = ranks_in_file(project, module) or ranks_in_importers(project, module)
            if shown is None:
                return
            places = [
                Evidence("static", _text(step.module, step.call), step.module.path, _line(step.call))
                for step in (found.write, found.read)
            ]  # fmt: skip
            yield self.finding(
                module,
                found.call,
                _message(module, found),
                evidence=[*places, shown],
                reason="let one process write them before the data sets are built (`prepare_data`, a script of its own, or rank "
                "0 with a barrier behind it once the process group exists)",
            )

    def _fetched(self, module: SourceModule, fetch: Fetch, others: Sequence[Fetch] = ()) -> Finding:
        what = _text(module, fetch.call)
        clip = what.endswith("clip.load")
        folder = short(module, fetch.folder) if fetch.folder is not None else ""
        hub = qualified(module, fetch.call.func) in OF_HUB
        where = f"`{folder}`" if folder else "the cache of torch.hub" if hub else "~/.cache/clip" if clip else "its folder"
        message = (
            f"every rank calls {what}(…), and on the first run all of them download and unpack into {where} at once: one "
            "loads what another has half written, or takes away"
        )
        if fetch.processes:
            message = (
                f"every rank calls {what}(…), and where the processed files are missing all of them process the raw ones and "
                f"write the results into {where} at once: one loads what another has half written"
            )
        if clip:
            message = (
                f"every rank calls {what}(…), and on the first run all of them download the weights into one file in {where}: "
                "each empties what another writes, and the checksum of a half-written file ends the run"
            )
        if fetch.by_name:
            message += f" (as where it makes a {fetch.by_name})"
        if (asked := fetch.asked) is not None:
            message += f" (`download` is True by the call in {_place(module, asked.module, asked.call)})"
        if others:
            message += f" (also {', '.join(f'{_text(module, o.call)} in line {_line(o.call)}' for o in others[:4])})"
        places = [Evidence("static", _text(h, n), h.path, _line(n)) for h, n in fetch.way.frames[:3]]
        reason = "fetch it once before the training starts, or let rank 0 call it first, with a barrier before the others do"
        return self.finding(module, module.statement_of(fetch.call), message, evidence=[*places, fetch.way.shown], reason=reason)

    def _polled(self, project: Project, module: SourceModule, found: OnDemand) -> Finding:
        """The loop that waits for the file is the test for it."""
        here = found.write.module is module
        edits = whole_file(project, module, found) if here else []
        at = module.statement_of(found.write.call if here else found.asked.call)
        path = shortened(text_of_path(module, found.asked.path))
        message = (
            f"the other ranks wait until `{path}` is there (line {found.asked.call.lineno}), and rank 0 writes it in place "
            f"({_place(module, found.write.module, found.write.call)}): it is there as soon as it is opened, and they read it "
            f"empty or half written ({_place(module, found.read.module, found.read.call)})"
        )
        reason = "write it beside its place and rename it at the end, or let a barrier wait for rank 0 where there is a group"
        level = Applicability.DISPLAY
        if edits:
            level, reason = Applicability.UNSAFE, "assumes that no earlier run left such a file, which lets the others through"
        places = [Evidence("static", _text(s.module, s.call), s.module.path, _line(s.call)) for s in (found.write, found.read)]
        return self.finding(module, at, message, level=level, edits=edits, evidence=[*places, found.way.shown], reason=reason)

    def _on_demand(self, project: Project, module: SourceModule, found: OnDemand) -> Finding:
        write = found.write
        here = write.module is module
        itself = bool(write.forms & forms(module, found.asked.path))  # else the folder is there before the file
        near = here and itself and not found.by_zero and module.function_of(write.call) is found.function
        edits = whole_file(project, module, found) if here and itself else []
        test = module.statement_of(found.asked.call)
        within = isinstance(test, ast.If) and _line(write.call) <= (test.body[-1].end_lineno or 0)
        at = module.statement_of(write.call) if near and (edits or not within) else test  # the test needs the guard
        places = [
            Evidence("static", _text(module, found.asked.call), module.path, found.asked.call.lineno),
            *(Evidence("static", _text(s.module, s.call), s.module.path, _line(s.call)) for s in (write, found.read)),
        ]
        path = shortened(text_of_path(module, found.asked.path))
        who = "rank 0" if found.by_zero else "each that does not find it"
        later = is_of_each_round(found.way, found.asked.path) and starts_its_ranks(project, module)
        when = "from the second round of the loop on, when the first `fit` has started the others, " if later else ""
        message = (
            f"{when}every rank asks whether `{path}` is there, and {who} writes it in place "
            f"({_place(module, write.module, write.call)}): another reads it half written "
            f"({_place(module, found.read.module, found.read.call)})"
        )
        if found.loaded:
            message = (
                f"every rank loads `{path}`, and each that finds it missing writes it in place "
                f"({_place(module, write.module, write.call)}): another loads it half written, and that error is not caught"
            )
        places.append(found.way.shown)
        if edits:
            assumes = "assumes that each rank may make it for itself; it appears whole, under its name, once it is written"
            if found.by_zero:
                assumes = "assumes that the others may make for themselves what rank 0 has not put there yet"
            level = Applicability.UNSAFE
            return self.finding(module, at, message, level=level, edits=edits, evidence=places, reason=assumes)
        reason = "let rank 0 make it, then a barrier, then all ranks load it; or write beside it and rename at the end"
        return self.finding(module, at, message, evidence=places, reason=reason)


def _message(module: SourceModule, found: SharedCache) -> str:
    write = _place(module, found.write.module, found.write.call)
    read = _place(module, found.read.module, found.read.call)
    return f"every rank that builds this data set writes the same files ({write}) and reads them back ({read}): half written"


def _place(here: SourceModule, module: SourceModule, call: ast.AST) -> str:
    return f"line {_line(call)}" if module is here else f"{module.path}:{_line(call)}"


def _line(call: ast.AST) -> int:
    return line_of(call)


def _text(module: SourceModule, call: ast.AST) -> str:
    text = " ".join(module.text_of(call.func if isinstance(call, ast.Call) else call).split())
    return text if len(text) <= 60 else text[:57] + "..."
