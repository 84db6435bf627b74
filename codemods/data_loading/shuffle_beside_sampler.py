"""DDP419: a loader is told to shuffle, and has a DistributedSampler."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.literals import is_true
from codemods.analysis.loading.shuffle_beside import Beside, shuffled_beside
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project


class ShuffleBesideSampler(DdpCodemod):
    """A loader that is given `shuffle=True` and a `DistributedSampler`.

    ## What it does
    Finds a `DataLoader` with `shuffle=True` whose sampler is a `DistributedSampler`, or is one where the program runs as several
    processes. Leaves `shuffle` out, or writes `shuffle=(sampler is None)` where one process has no sampler. The `True` may be
    what a caller hands to the function that makes the loader.

    ## Why it matters
    The order is either the sampler's or the loader's: torch ends with "sampler option is mutually exclusive with shuffle". Where
    one process has no sampler, that shows on several GPUs alone: each rank ends before the training begins.

    ## Example
    ```python
    from torch.utils.data import DataLoader, DistributedSampler


    def make_loader(data, args):
        sampler = DistributedSampler(data) if args.distributed else None
        return DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, DistributedSampler


    def make_loader(data, args):
        sampler = DistributedSampler(data) if args.distributed else None
        return DataLoader(data, batch_size=8, shuffle=(sampler is None), sampler=sampler)
    ```

    ## Safety
    Safe: a loader with a sampler never comes past `shuffle=True`, and one without shuffles as before. Unsafe where settings
    decide whether the sampler shuffles: assumes that they are meant.

    ## Refuses
    - Says nothing of `shuffle` that is no `True` written out, there or in the call of the function that makes loader and sampler,
      and of samplers whose making is not seen.
    - Says nothing of such a call under a test of its own, or where a setting of the call, or the wish itself, decides over the
      sampler.
    - Says nothing where a test decides over the loader by what decides over the sampler, or by the sampler itself.
    - Reports a sampler with `shuffle=False`: which of the two is meant is not shown.
    - Reports a sampler written out in the call under a test of several parts.
    - Says nothing in a repository's own tests, and of code that no program runs.

    ## References
    `torch.utils.data.DataLoader`: `shuffle` "must not be specified" beside a sampler; runs with torch 2.13.
    """

    code = "DDP419"
    severity = "crash"
    subject = "Leave the order to the DistributedSampler"
    must_show = "Two processes get past the loader; one process shuffles as before."
    printed = ("sampler option is mutually exclusive with shuffle",)
    TRIGGERS = ((b"DataLoader",), (b"True",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"DistributedSampler"))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in shuffled_beside(project, module):
            if not is_run_by_nobody(project, module, found.loader.call):
                yield self._tell(module, found)

    def _tell(self, module: SourceModule, found: Beside) -> Finding:
        edit, reason = _repair(module, found)
        unsafe = edit is not None and found.drawn is None
        level = Applicability.DISPLAY if edit is None else Applicability.UNSAFE if unsafe else Applicability.SAFE
        where = "" if found.always else " where it has one"
        sampler = found.sampler
        what = "`shuffle=True` stands"
        if not is_true(found.shuffle):
            what = f"a caller hands True over for `{module.text_of(found.shuffle)}`, which stands"
        return self.finding(
            module, found.shuffle,
            f"{what} beside a DistributedSampler: torch refuses the loader{where}, and each rank ends here with ValueError",
            level=level,
            edits=[edit] if edit is not None else [],
            evidence=[Evidence("static", "the sampler is made here", sampler.module.path, sampler.line)],
            reason="assumes that the sampler's setting decides over the order" if unsafe else reason,
        )  # fmt: skip


def _repair(module: SourceModule, found: Beside) -> tuple[Edit | None, str]:
    if found.drawn is False:
        return None, "the sampler does not shuffle: leave `shuffle` out, or give it to the sampler in its place"
    named = any(k.value is found.shuffle for k in found.loader.call.keywords)
    if found.always and named:
        return DropKeyword(module.path, module.span(found.loader.call), "shuffle"), ""
    instead = "False" if found.always else found.instead
    if not instead:
        return None, "leave `shuffle` to the ways on which the loader has no sampler"
    if not is_true(found.shuffle) and not found.always:
        instead = f"{module.text_of(found.shuffle)} and {instead}"
    written = f"({instead})" if named and " is " in instead else instead
    return ReplaceExpression(module.path, module.span(found.shuffle), written), ""
