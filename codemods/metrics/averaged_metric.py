"""DDP116: a metric of each rank's own part of the data, averaged over the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.averages.averaged_exponents import Exponent, averaged_exponents
from codemods.analysis.averages.averaged_extremes import Extreme, averaged_extremes
from codemods.analysis.averages.averaged_metrics import Averaged, averaged_metrics
from codemods.analysis.distribution import is_test_module
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, SetKeyword
from codemods.files.source import SourceModule
from codemods.store.project import Project

_PACKAGES = (b"sklearn", b"scipy", b"pycocotools", b"seqeval", b"sacrebleu", b"nltk", b"torchmetrics")


_OF_PREDICTIONS = (
    "gather predictions and labels of all ranks and work it out once, or log a torchmetrics object, which keeps them"
)
_OF_COUNTS = "reduce the counts over the ranks (`all_reduce`), and work the score out of the sums behind that"


def _names_a_metric(project: Project) -> bool:
    return any(project.files_containing(word) for word in (*_PACKAGES, b"diag"))


def _may_hold_one(project: Project, module: SourceModule) -> bool:
    return module.holds(b"sqrt") or module.holds(b"sync_dist") or _names_a_metric(project)


class AveragedMetric(DdpCodemod):
    """A metric that each rank works out for its own part of the data, and that is averaged over the ranks.

    ## What it does
    Finds an F1, a precision, a correlation, an AUC, a BLEU or the average precision of COCO (of scikit-learn, SciPy, pycocotools,
    seqeval, sacrebleu, nltk or torchmetrics) that an evaluation works out for one batch, or for the share of one rank, and then
    averages over the ranks: with `all_reduce`, a function of the project that does, meters that are added up
    (`synchronize_between_processes()`), or Lightning's `sync_dist=True`. The root of a mean (an RMSE) of a share counts. Metric
    objects count by what they return for a batch: those of an attribute, of a dict that is gone through, and of the function
    itself, and a metric class of the project by the scores of classes (an IoU, a Dice, a recall) that it works out of the
    diagonal of the matrix it has counted, or by dividing one of its counts by the sum of several (`tp / (tp + fp + fn)`). So
    does a function of the project that ranks all rows which the steps of this rank have gathered (an average precision, an AUC).
    Finds the largest or smallest number of a rank that is logged with `sync_dist=True` under a key that says so, and writes
    `reduce_fx`. Finds an exponent (a perplexity) that the end of an evaluation takes of its own mean and logs with
    `sync_dist=True`.

    ## Why it matters
    The mean of such numbers is not the number of the set. A batch without a positive counts as an F1 of zero, COCOeval takes the
    boxes of the other ranks for missed. The score is too low, changes with the batch size and the number of GPUs, and picks the
    best checkpoint.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from sklearn.metrics import f1_score
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    @torch.no_grad()
    def evaluate(model, dataset):
        loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        scores = []
        for x, y in loader:
            score = torch.tensor(f1_score(y, model(x).argmax(1)))
            dist.all_reduce(score)
            scores.append(score.item() / dist.get_world_size())
        return sum(scores) / len(scores)
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from sklearn.metrics import f1_score
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    @torch.no_grad()
    def evaluate(model, dataset):
        loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
        seen = []
        for x, y in loader:
            seen += zip(y.tolist(), model(x).argmax(1).tolist())
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, seen)
        labels, predictions = zip(*(row for part in parts for row in part))
        return f1_score(labels, predictions)
    ```

    ## Safety
    There is no fix for a metric: predictions have to be kept and gathered, or a metric object has to take them. The one for a
    maximum is unsafe: over the batches of an epoch it takes the largest as well, where the mean of them was shown.

    ## Refuses
    - Says nothing of accuracies, errors and losses, whose mean over parts of one size is that of the whole.
    - Says nothing in a function that trains, or that gathers.
    - Says nothing where the data are not seen to be the rank's own: each rank may evaluate the whole set.
    - Says nothing of the accuracy of such a matrix, and of what is divided by one count alone, which may be a mean.
    - Says nothing where the class that counts speaks to the other ranks itself, or the counts were reduced before.
    - Says nothing of rows that are ranked in a loop over rows, or along a dimension: each query may have a curve of its own,
      whose mean is a mean.
    - Says nothing of `sync_dist` from a setting, but of an attribute that is given True alone.
    - Says nothing of a maximum or minimum over the ranks, and where `reduce_fx` is given.
    - Says nothing where a step or a caller has gathered what the metric is worked out of.
    - Says nothing of an exponent that a step logs: it is the batch's own on one process, too.
    - Says nothing of a maximum along a dimension, or under a key that does not call it one.
    - Says nothing under Lightning where every Trainer has one device, or is kept from sharing the data out.
    - A repository's own tests.

    ## References
    The documentation of torchmetrics ("Metrics in distributed data parallel mode"); runs on two gloo processes.
    """

    code = "DDP116"
    names_number = True
    severity = "data"
    subject = "Work metrics out of the predictions of all ranks"
    must_show = "One process and two give the same score for the same checkpoint."
    printed = ()
    TRIGGERS = ((b"reduce", b"sync_dist", b"synchronize_between_processes"),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        said = _names_a_metric(project) or b"sync_dist" in data or b"sqrt" in data
        return said and may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in averaged_metrics(project, module) if _may_hold_one(project, module) else ():
            yield self._tell(module, found)
        for extreme in averaged_extremes(project, module):
            yield self._extreme(module, extreme)
        for exponent in averaged_exponents(project, module):
            yield self._exponent(module, exponent)

    def _exponent(self, module: SourceModule, found: Exponent) -> Finding:
        return self.finding(
            module,
            found.call,
            f"`sync_dist=True` takes the mean of the ranks' exponents of `{found.of}`, which is more than the exponent of the "
            "mean of all, and changes with the number of processes",
            reason=f"take the exponent of the mean of all ranks: `torch.exp(self.all_gather({found.of}).mean())`",
        )

    def _extreme(self, module: SourceModule, found: Extreme) -> Finding:
        which = "largest" if found.word == "max" else "smallest"
        return self.finding(
            module,
            found.call,
            f"`sync_dist=True` takes the mean of the ranks' `{found.of}`, which is not the {which} of all, and changes with the "
            "number of processes",
            level=Applicability.UNSAFE,
            edits=[SetKeyword(module.path, module.span(found.call), "reduce_fx", f'"{found.word}"')],
            reason=f"assumes that the {which} of all is meant, over the batches of an epoch, too, where they are put together",
        )

    def _tell(self, module: SourceModule, found: Averaged) -> Finding:
        words, metric = found.metric.words, found.metric
        of = "of each batch" if found.in_batches else "of each rank's own share"
        by = "`sync_dist=True` averages" if found.logged else "this averages"
        evidence = [Evidence("static", "it is worked out of this rank's own data", module.path, metric.outer.lineno)]
        if metric.call is not metric.outer:
            evidence.append(Evidence("static", f"{words} is called here", metric.module.path, metric.call.lineno))
        return self.finding(
            module,
            found.at,
            f"{by} {words} {of} over the ranks: the mean of these is not the metric of the whole set, and changes with the "
            "number of processes",
            evidence=evidence,
            reason=_OF_COUNTS if metric.counts else _OF_PREDICTIONS,
        )
