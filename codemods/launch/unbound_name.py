"""DDP714: names that only a run with several processes reads, and that nothing binds."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_module
from codemods.analysis.frameworks import pinned_packages
from codemods.analysis.names import family
from codemods.analysis.ranks.brought_names import Brought
from codemods.analysis.ranks.lost_names import LostName, lost_names
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, NeedImport
from codemods.data.rank_words import GUARDS, PROCESSES
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK
from codemods.rewriting.imports import in_scope, plan_statement
from codemods.store.project import Project

# Modules of PyTorch that fail to import where a package is missing that PyTorch does not bring along.
_NEEDS = {"torch.utils.tensorboard": "tensorboard"}
_LONGEST_SUBJECT = 60
# What a file without an import of its own may still say: `dist.barrier()`, `hvd.init()`, `mp.spawn(…)`.
_NAMES = (b"dist.", b"hvd.", b"DDP(", b"DistributedSampler", b"DistributedDataParallel", b"world_size", b"mp.spawn")


class UnboundName(DdpCodemod):
    """A name that only a run with several processes reads, and that nothing in the file binds.

    ## What it does
    Finds reads of `dist`, `DDP`, `hvd` or a project's own `get_rank` in a file that neither imports nor defines them, and of any
    such name below a test of the rank or for several processes, or on one way with a call of torch.distributed. Writes the
    import where the other files of the project agree in what the name is, and where it is a usual one and none has it.

    ## Why it matters
    On one GPU that line is never run, so the program seems to work. The run on several ends with NameError: on all of them, or on
    rank 0 alone, for which the others then wait until the timeout of the process group.

    ## Example
    ```python
    import torch


    def mean_of_all(value):
        total = torch.tensor([value])
        dist.all_reduce(total)
        return total.item() / dist.get_world_size()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def mean_of_all(value):
        total = torch.tensor([value])
        dist.all_reduce(total)
        return total.item() / dist.get_world_size()
    ```

    ## Safety
    Safe where every file of the project that imports the name takes it from PyTorch, and this file imports PyTorch, or imports a
    module of Python by it. Unsafe where it is a function of the project, or another package's: assumes that the same is meant
    here; where no other file has the name: assumes what it is in most projects; and for `torch.utils.tensorboard`, where no file
    of requirements names tensorboard: without it the whole file could not be imported.

    ## Refuses
    - Says nothing in a file with a star import, `globals()`, `exec`, `locals()` or `vars()`, and of names that another file puts
      into this one or into the built-ins.
    - Says nothing of names of Python 2 and of notebooks, of annotations, and below a handler that takes NameError.
    - Says nothing of `dist.x` that torch.distributed does not have: it may be another package's.
    - Reports a name whose import stands in a comment of the file: somebody has taken it out, and another may lack the package.
    - Reports a name that no other file imports and that is no usual one, a name that two files import from different places, and
      one in a file that uses Horovod, where a name of torch.distributed finds no process group.
    - Says nothing in a repository's own tests, of code that no program runs (a test of a setting, `if args.train:`, is no call of
      a method `train`), and of what every run comes to behind a line that fails, as at another name that nothing binds.

    ## References
    The Python reference, 4.2: names are looked for in the function, in those round it, in the module and in the built-ins.
    """

    code = "DDP714"
    severity = "crash"
    subject = "Import the name that the ranks read"
    must_show = "Two processes get past the line; with one process nothing changes."
    printed = ("is not defined",)
    names_failure = True
    TRIGGERS = ((*GUARDS, *_NAMES), (*PROCESSES, *_NAMES))
    READS_TESTS = False

    @classmethod
    def commit_subject(cls, findings: Sequence[Finding]) -> str:
        """With the import, where it is one that is short enough: `Add import torch.distributed as dist`."""
        added = {edit.code for finding in findings for edit in finding.edits if isinstance(edit, NeedImport)}
        said = f"Add {' '.join(added)}"
        return said if len(added) == 1 and len(said) <= _LONGEST_SUBJECT else cls.subject

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or module.path.endswith(NOTEBOOK):
            return
        for lost in lost_names(project, module):
            yield self._tell(module, project, lost)

    def _tell(self, module: SourceModule, project: Project, lost: LostName) -> Finding:
        name, brought = lost.name.id, lost.brought
        edits, level, reason = _repair(project, module, lost) if brought is not None else ((), Applicability.DISPLAY, "")
        who = "rank 0 ends there with NameError, and the others wait" if lost.alone else "each rank ends there with NameError"
        evidence = [Evidence("static", lost.because, module.path, lost.name.lineno)]
        if brought is not None and brought.path:
            evidence.append(Evidence("static", f"this file has it by `{brought.code}`", brought.path))
        if edits and level is Applicability.SAFE:
            evidence += [Evidence("safe", _why_safe(module, lost), module.path)]
        evidence += [Evidence("static", f"it is read here too: {name}", module.path, line) for line in lost.others[:4]]
        return self.finding(
            module, lost.name, f"nothing in this file binds `{name}`: {who}",
            level=level, edits=edits, evidence=evidence, reason=reason if edits or reason else "import or define it",
        )  # fmt: skip


def _repair(project: Project, module: SourceModule, lost: LostName) -> tuple[tuple[Edit, ...], Applicability, str]:
    brought = lost.brought
    assert brought is not None
    if module.holds(b"horovod") and family(brought.dotted) == "torch":
        return (), Applicability.DISPLAY, "the file uses Horovod: ask that for it, or import it and start the process group"
    if line := _import_in_comment(module, lost.name.id):
        return (), Applicability.DISPLAY, f"line {line} has its import in a comment: import it again, or take the use out too"
    if not _can_be_written_here(module, brought):
        return (), Applicability.DISPLAY, f"import it, as {brought.path} does by `{brought.code}`"
    edits = plan_statement(module, brought.code, brought.source)
    if not edits:
        return (), Applicability.DISPLAY, f"import it: `{brought.code}`"
    if not brought.path:
        return edits, Applicability.UNSAFE, f"assumes that `{brought.dotted}` is meant: no other file has the name"
    if brought.dotted in sys.stdlib_module_names:
        return edits, Applicability.SAFE, ""
    needed = _NEEDS.get(brought.source, "")
    if needed and needed not in pinned_packages(project):
        return edits, Applicability.UNSAFE, f"assumes that {needed} is installed: without it the whole file cannot be imported"
    if family(brought.dotted) == "torch" and in_scope(module, lambda dotted: family(dotted) == "torch") is not None:
        return edits, Applicability.SAFE, ""
    return edits, Applicability.UNSAFE, f"assumes that the same is meant as in {brought.path}"


def _why_safe(module: SourceModule, lost: LostName) -> str:
    """Why the import is the one that was meant, and fails nowhere."""
    assert lost.brought is not None
    if lost.brought.dotted in sys.stdlib_module_names:
        return f"`{lost.brought.dotted}` is a module of Python"
    return f"each file that imports `{lost.name.id}` takes it from PyTorch, which this file imports as well"


def _import_in_comment(module: SourceModule, name: str) -> int:
    """The line of a comment that is an import of the name, 0 for none: somebody took it out, and may have had a reason."""
    imported = re.compile(rb"\s*#+\s*(?:from\s+[\w.]+\s+)?import\s[^#]*\b" + re.escape(name.encode()) + rb"\b")
    return next((n for n, line in enumerate(module.data.splitlines(), 1) if imported.match(line)), 0)


def _can_be_written_here(module: SourceModule, brought: Brought) -> bool:
    """True for a package, and for a part of the project that a file of the same folder imports."""
    folder, other = (path.rpartition("/")[0] for path in (module.path, brought.path))
    own = module.path.removesuffix(".py").rpartition("/")[2]
    return (folder == other and brought.source.rpartition(".")[2] != own) or (
        family(brought.dotted) in ("torch", "horovod") or brought.dotted in sys.stdlib_module_names
    )
