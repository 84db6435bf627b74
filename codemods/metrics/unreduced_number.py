"""DDP106: rank 0 shows the loss or the metric of its own share as if it were that of all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.own_among_gathered import OwnAmongGathered, own_among_gathered
from codemods.analysis.logged.own_entries import OwnEntry, own_entries
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.analysis.variance.mismatches import mismatches_in
from codemods.analysis.variance.number_roles import Role
from codemods.analysis.variance.numbers import Number
from codemods.analysis.variance.parallel_files import may_be_parallel
from codemods.analysis.variance.parts_of_the_others import is_put_together
from codemods.analysis.variance.told_numbers import numbers_of_one_rank
from codemods.analysis.variance.values import Proof
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.data.rank_variance import BARS
from codemods.data.rank_words import NAMES_FILES, SHOWS_NUMBERS, TESTS_BEST
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project


class UnreducedNumber(DdpCodemod):
    """A loss or a metric of one rank's own share that rank 0 prints, logs or goes by.

    ## What it does
    Follows losses and metrics from the loader, whose sampler gives each rank its own share, through sums, meters, lists,
    means, comprehensions over the batches, constructors, returns and files to where rank 0 prints them, hands them to a
    tracker, or where they are compared with the best so far. Reports those that nothing reduces on the way, once for each loop
    over batches, and says what the number is: it decides which checkpoint is kept (by rank 0's share, or by each rank's own;
    also in a function that answers whether it is the best), or it is given as the result of an evaluation, or as part of the
    name of what rank 0 saves. Output of rank 0 is what stands under a test of the rank, or of `wandb.run` where rank 0 alone
    starts a run, what goes to an object that rank 0 alone has, or whose class writes on rank 0 alone, also where a field says so
    that rank 0 alone has set, and what goes through a logger that the project keeps quiet on the other ranks, or a `print`
    that the program has replaced by one which does (DETR's `setup_for_distributed`). Entries of a dict of results that are
    shown one by one (`for name, value in results.items():`) count, and so does the mean over all batches of an evaluation
    that is written into a text (`f"PVE: {np.mean(gaps)}"`), whatever it is called; a row of a table that is the values of
    such a dict (`writer.writerow(row.values())`) counts as the dict. Also reports a result that is made of the rank's own
    part where the function has just gathered those of all ranks, and the mean loss of a training epoch that is shown in the
    same way as a loss that the function reduces over the ranks. Of numbers that are shown side by side
    (`writer.add_scalar(...)` in one block, or the entries of one dict), of which at least three are gathered where they are
    shown, it reports the one `.item()` that is not. Of a result that every rank prints behind the loop it says that there are
    as many results as ranks, where the function reduces nothing, and gives nothing of it to its caller.

    ## Why it matters
    On eight ranks the number is that of an eighth of the data. The printed accuracy is not that of the set it is taken for, and
    the "best" checkpoint is the one that was best on rank 0's share.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    @torch.no_grad()
    def evaluate(model, dataset, loss_of):
        loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        total = 0.0
        for batch in loader:
            total += loss_of(model(batch)).item()
        loss = total / len(loader)
        if dist.get_rank() == 0:
            print(f"validation loss {loss:.4f}")
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    @torch.no_grad()
    def evaluate(model, dataset, loss_of):
        loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        sums = torch.zeros(2, device="cuda")
        for batch in loader:
            sums += torch.stack([loss_of(model(batch)), torch.ones((), device="cuda")])
        dist.all_reduce(sums)
        loss = (sums[0] / sums[1]).item()
        if dist.get_rank() == 0:
            print(f"validation loss {loss:.4f}")
    ```

    ## Safety
    There is no fix: what is to be reduced (sums and counts, not means of unequal shares) is a decision.

    ## Refuses
    - Says nothing in a repository's own tests, and nothing of values that Lightning logs in an evaluation (DDP101).
    - Says nothing where the loader hands every rank the same batches, or the whole set in an order of its own: each rank has
      the whole number then.
    - Says nothing of a result or a decision where only the name of a loader says that it shares the data out.
    - Says nothing of a dict of loaders of which some are whole, and of a data set that is given a constant rank.
    - Says nothing behind an all_reduce, a gather, a broadcast, `Metric.compute()`, or a helper that reduces, and nothing of a
      loss whose forward gathers over the ranks.
    - Says nothing of other output that every rank makes, and of lines that name the rank.
    - Says nothing of a single batch of an evaluation, and nothing of pictures and tables.
    - Says nothing of a loss or an accuracy that rank 0 draws or prints while it trains, of a step or of an epoch, where no
      reduced number of its kind is shown by the same function in the same way: that is what most programs want, and nothing
      rests on it. Nothing of what Lightning logs at each step.
    - Says nothing where no program of several processes comes to the place.
    - Says nothing of a part that was gathered where those of the others are put into it afterwards, nor behind a function that
      reads what each rank has written to a file, and gives back the whole.
    - Says nothing of an entry of a dict of losses beside a reduced copy of it, where it goes backward or was added later.
    - Reports one number a loop: what decides before a result.
    - Says nothing of a loss that only its name says to be the rank's own.

    ## References
    torch 2.13: `DistributedSampler`; runs on two gloo processes, in which the printed loss was that of rank 0's half.
    """

    code = "DDP106"
    severity = "data"
    TRIGGERS = (
        (b"print", b"best", b"lowest", b"highest", b"min", b"max", b"log", b"add_scalar", b"write", b"dump", b"save"),
        (b"loss", b"acc", b"metric", b"score", b"item()", b"avg", b"mean", b"iou", b"dice", b"recall", b"precision", b"rror"),
    )
    SITES = (SHOWS_NUMBERS, NAMES_FILES, *TESTS_BEST)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        if not may_show_ranks(project, path):
            return False
        data = project.read(path) or b""
        return b"rank" in data or b"reduce" in data or may_be_parallel(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        told: set[int] = set()
        for number in numbers_of_one_rank(project, module):
            line = getattr(number.shown, "lineno", 0)
            if number.role is not Role.DECIDES and _is_for_a_moment(number.shown) and left(module, number.at, _BESIDE_A_BAR):
                continue
            if number.everyone and any(m.node.lineno == line for m in mismatches_in(project, module)):
                left(module, number.at, "the ranks part over it before a collective: DDP305 reports that")
                continue
            if is_run_by_nobody(project, module, number.at, by_one=True):
                continue
            if is_put_together(project, module, number.at, number.value.chain) and left(module, number.at, _TOGETHER):
                continue
            told |= {number.at.lineno, line} if isinstance(number.at, (ast.stmt, ast.expr)) else {line}
            yield self._number(module, number)
        for entry in own_entries(project, module) if module.holds(b"reduce") else ():
            yield self._entry(module, entry)
        for among in own_among_gathered(project, module) if module.holds(b"gather") or module.holds(b"reduce") else ():
            if among.own.lineno not in told and not is_run_by_nobody(project, module, among.own, by_one=True):
                yield self._among(module, among)

    def _entry(self, module: SourceModule, found: OwnEntry) -> Finding:
        text = module.text_of(found.read)
        return self.finding(
            module,
            found.read,
            f"`{text}` is the rank's own, and is shown in line {found.shown.lineno} beside entries of `{found.copy}`, which are "
            "put together from all ranks",
            evidence=[
                Evidence("static", f"`{found.copy}` is put together from all ranks", module.path, found.reduced.lineno),
                Evidence("static", "this shows it", module.path, found.shown.lineno),
            ],
            reason=f"read it from `{found.copy}`",
        )

    def _among(self, module: SourceModule, found: OwnAmongGathered) -> Finding:
        text = " ".join(module.text_of(found.own).split())
        lines = sorted({n.lineno for n in found.gathered})
        return self.finding(
            module,
            found.own,
            f"`{text}` is that of the rank's own share of the data, and the {len(found.gathered)} numbers that are shown beside "
            "it are put together from all ranks: this one is not",
            evidence=[Evidence("static", "this is put together from all ranks", module.path, line) for line in lines[:_SHOWN]],
            reason="gather it as the others: every rank has to make that call",
        )

    def _number(self, module: SourceModule, number: Number) -> Finding:
        strength = "strong" if number.value.proof is Proof.PROVEN else "weak"
        way = [Evidence("way", x.text, x.path, x.line, strength) for x in number.value.chain]
        if number.beside is not None:
            line = number.beside.reduced.lineno
            way.append(Evidence("static", f"`{number.beside.text}` is that of all ranks", module.path, line))
        texts = " ".join((number.text, *(x.text for x in number.value.chain)))
        advice = _OF_SCORES if _BY_ORDER.search(texts) else _ADVICE
        return self.finding(module, number.at, _message(number), evidence=way, reason=_ALONE if number.alone else advice)


_SHOWN = 3  # of the numbers beside it
_BESIDE_A_BAR = "a progress bar shows it for a moment"
_TOGETHER = "the parts of the other ranks are put into it"


def _is_for_a_moment(shown: ast.AST) -> bool:
    """True for what a progress bar shows beside itself: the result of the loop is given elsewhere, or by nobody."""
    return isinstance(shown, ast.Call) and isinstance(shown.func, ast.Attribute) and shown.func.attr in BARS


_ADVICE = (
    "reduce sums and counts over the ranks first (`all_reduce`, `accelerator.gather_for_metrics`), then divide; every rank has "
    "to make that call"
)
# Numbers that hang on the order of all scores: no sums of parts make them.
_BY_ORDER = lazy(r"(?<![a-z])(?:eer|auc|auroc|auprc|roc_?curve|average_precision|spearmanr?|kendalltau)(?![a-z])", re.IGNORECASE)
_OF_SCORES = (
    "gather the scores and labels of all ranks first (`all_gather`, `accelerator.gather_for_metrics`), and work it out of all of "
    "them: it is no quotient of sums; every rank has to make that call"
)
_ALONE = (
    "let every rank go through the loader, then reduce sums and counts; or give rank 0 a loader of the whole set, without the "
    "sampler and not prepared"
)


def _message(number: Number) -> str:
    line = getattr(number.shown, "lineno", 0)
    there = "" if number.at is number.shown else f" in line {line}"
    text = number.text if len(number.text) <= 60 else number.text[:57] + "..."
    if number.over is not None:
        over = number.over
        return (
            f"line {over.gathered.lineno} gathers `{over.own}` of all ranks into `{over.parts}`, and this is made of the rank's "
            f"own: rank 0 gives `{text}`{there} as the result, without what the others have"
        )
    if number.alone:
        use = "decides which result is the best" if number.role is Role.DECIDES else "is given as the result"
        return f"rank 0 alone goes through a loader that shares the data out, and `{text}`{there}, of that one share, {use}"
    if number.role is Role.DECIDES and number.everyone and number.answers:
        return (
            f"`{text}` is held against the best so far{there}, and it is that of the rank's own share of the data: no result is "
            "the best by the whole set"
        )
    if number.role is Role.DECIDES and number.everyone:
        return (
            f"each rank holds `{text}` against the best so far{there}, and it is that of the rank's own share of the data: the "
            "ranks decide differently which result is the best, and none by the whole set"
        )
    if number.everyone and number.role is Role.RESULT:
        return (
            f"each rank prints `{text}`{there} as the result, and it is that of its own share of the data: there are as many "
            "results as ranks, and none is that of the whole set"
        )
    if number.beside is not None:
        return (
            f"rank 0 shows `{text}`{there} by the side of `{number.beside.text}`, which line {number.beside.reduced.lineno} "
            "reduces over all ranks: this one is not reduced, it is that of rank 0's own share of the training data"
        )
    if number.role is Role.DECIDES:
        return (
            f"`{text}` is what rank 0 has of its own share of the data, and decides{there} which result is the best: the "
            "other shares have no say"
        )
    if number.names:
        return (
            f"rank 0 puts `{text}`{there} into the name of the file, and it is that of its own share of the data: the others' "
            "are not in it"
        )
    return f"rank 0 gives `{text}`{there} as the result, but it is that of its own share of the data: the others' are not in it"
