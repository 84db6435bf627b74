"""DDP401: a training loader that nobody shards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, class_facts
from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.handed_loaders import Handed, handed_loaders, trainer_loaders
from codemods.analysis.loading.origins import Origin, all_known, made_class, origins
from codemods.analysis.loading.passes import Pass, training_passes, uses_framework
from codemods.analysis.loading.programs import starts_group_before, wraps
from codemods.analysis.loading.samplers import Loader, is_none, loader_of, samplers_of, shares_out
from codemods.analysis.loading.seeds import is_seeded, seeded_by_rank
from codemods.analysis.loading.shares import is_random, may_hold_a_share, speaks_of_ranks, takes_a_share
from codemods.analysis.loading.streams import Stream, streams_of
from codemods.analysis.loading.workers import may_have_no_workers
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Edit, Evidence, Finding, SetKeyword
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, line_of, walk
from codemods.rewriting.imports import Planned, in_scope, plan_beside
from codemods.store.project import Project

_IN_ITER = "give each rank its part in `__iter__`: `islice(items, rank, None, world_size)`, with as many for each"
_OF_DATASETS = "give each rank its part: `datasets.distributed.split_dataset_by_node(stream, rank=..., world_size=...)`"
_STREAM_WORDS = (b"IterableDataset", b"to_iterable_dataset", b"streaming=True")
_SAMPLER = ("torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler")


_ENGINE = "the file trains by an engine of a framework, which may share the data out itself"


class MissingDistributedSampler(DdpCodemod):
    """A training loader that gives every rank all of the data.

    ## What it does
    Finds a DataLoader that a training loop with DistributedDataParallel goes through, where no sampler, no data set and no line
    of the loop gives each rank a part. It adds a `DistributedSampler` where data set and process group are there by then, and
    reports the rest: streams (`IterableDataset`), samplers that draw at random, loaders made where no group is seen to be there.
    Reports streams that Lightning or Fabric trains on, and that nothing shares out: an own IterableDataset, one of `datasets`
    (`load_dataset(streaming=True)`, `to_iterable_dataset()`), and one that shares by rank only where there are workers. Reports a
    loader that `get_train_dataloader` of a Hugging Face Trainer gives back, and nothing prepares: without a sampler, or with the
    Trainer's own (`self._get_train_sampler()`), which draws from all of the data from transformers 4.31 on.

    ## Why it matters
    Every rank goes through the whole data set. With the same seed all ranks compute the same gradients and more GPUs add nothing;
    with different seeds an epoch is as many epochs as there are ranks. The loss looks right in both cases.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset


    def main(x, y):
        dist.init_process_group("nccl")
        data = TensorDataset(x, y)
        loader = DataLoader(data, batch_size=8, shuffle=True)
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        for inputs, targets in loader:
            (model(inputs) - targets).square().mean().backward()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


    def main(x, y):
        dist.init_process_group("nccl")
        data = TensorDataset(x, y)
        loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        for inputs, targets in loader:
            (model(inputs) - targets).square().mean().backward()
    ```

    ## Safety
    Unsafe: the batch size is then that of one rank, an epoch has fewer steps, and a schedule that counts steps ends later. Where
    the loop counts epochs, DDP402 adds `set_epoch`.

    ## Refuses
    - Says nothing where one of the loaders may have a sampler of its own, a batch sampler, or options that hide one.
    - Says nothing where the data set, its class, what it is made of or the loop speaks of ranks or shards.
    - Says nothing of a data set whose making is not seen, and of one that each rank fills with random numbers of its own.
    - Says nothing under Accelerate, DeepSpeed and the Hugging Face Trainer, which share loaders out (but for one that the Trainer
      is given by an override); nor under Lightning and Fabric but for streams, which they leave as they are.
    - Says nothing of a stream without an end that draws at random, of samples that are drawn from nothing that is gone through,
      of a loader with a `worker_init_fn`, and of streams in a project that splits by node anywhere.
    - Says nothing of loaders without a backward pass, of a loop under a rank test, and of a repository's own tests.
    - Reports a stream: a sampler cannot share it out, its `__iter__` has to.
    - Reports `RandomSampler` and its kin, and a loader that is made where no process group is seen to be there.

    ## References
    Runs on two processes with torch 2.13 (the indices that each rank saw); the documentation of `torch.utils.data.distributed`.
    Lightning 2.6 and Fabric give no sampler to an IterableDataset (Lightning-AI/pytorch-lightning#15734).
    """

    code = "DDP401"
    severity = "data"
    subject = "Share training data out over the ranks"
    must_show = "Each process goes through half of the samples, and no sample comes on both."
    printed = ("Default process group has not been initialized",)
    TRIGGERS = ((b"DataLoader",),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"DistributedDataParallel")) or any(
            (_may_stream(project), project.files_containing(b"def get_train_dataloader"))
        )

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or not module.calls_named("DataLoader"):
            return
        done: set[int] = set()
        for found in training_passes(project, module.path):
            if uses_framework(found.backward.module) and left(found.module, found.loop, _ENGINE):
                continue  # an engine may have fewer shares than ranks: stages of a pipeline have the same batches
            made = origins(project, found.module, found.source)
            if not any(o.module is module for o in made):
                continue
            if not all_known(made) and left(found.module, found.loop, "where {} comes from is not seen to the end", found.source):
                continue
            loaders = [loader_of(o) for o in made if not is_none(o)]
            known = [x for x in loaders if x is not None]
            if len(known) != len(loaders) or not all(_gives_all(project, x) for x in known):
                left(found.module, found.loop, "{} may give each rank a share, or is no loader that is seen", found.source)
                continue
            if takes_a_share(project, found) and left(found.module, found.loop, "the loop leaves parts to the other ranks"):
                continue
            if ranks_reaching(project, found.module, found.loop).some and left(found.module, found.loop, "not all ranks run it"):
                continue
            for loader in known:
                if loader.module is module and id(loader.call) not in done:
                    if (told := self._tell(module, project, found, loader)) is not None:
                        done.add(id(loader.call))
                        yield told
        for handed in handed_loaders(project) if _may_stream(project) else ():
            loader = handed.loader
            if loader.module is not module or id(loader.call) in done or ranks_reaching(project, module, loader.call).some:
                continue
            if (read := streams_of(project, loader)) and (told := self._tell_handed(module, handed, read)) is not None:
                yield told

        for handed in trainer_loaders(project):
            data = handed.loader.dataset
            if handed.loader.module is module and data is not None and not speaks_of_ranks(project, module, data, fields=True):
                yield self._tell_trainer(module, handed)

    def _tell_trainer(self, module: SourceModule, handed: Handed) -> Finding:
        own = handed.loader.sampler is not None
        why = (
            "from transformers 4.31 on its own sampler draws from all of it"
            if own
            else "this loader has no sampler for the ranks"
        )
        before = "" if own else (
            "; before transformers 4.31, where the Trainer had samplers of its own, give it `sampler=self._get_train_sampler()`"
        )  # fmt: skip
        return self.finding(
            module,
            handed.loader.call,
            "each rank goes through all of the data: the Trainer takes what `get_train_dataloader` gives back as it is, and "
            f"{why}",
            evidence=[Evidence("static", "the Trainer gets it here", handed.module.path, line_of(handed.node))],
            reason=f"give back `self.accelerator.prepare(DataLoader(...))`{before}",
        )

    def _tell_handed(self, module: SourceModule, handed: Handed, read: tuple[Stream, ...]) -> Finding | None:
        stream = next((s for s in read if s.lone is None), None)
        if stream is None and not may_have_no_workers(handed.loader):
            return None
        evidence = [Evidence("static", f"{handed.framework} gets it here", handed.module.path, line_of(handed.node))]
        if stream is None:
            stream = read[0]
            what = (
                f"without workers (`num_workers=0`) every rank reads all of the stream {stream.name}: its `__iter__` gives each "
                f"rank its part only where there are workers, and {handed.framework} does not share out a stream"
            )
            test = line_of(stream.lone or stream.place)
            evidence.append(Evidence("static", "the way without workers", stream.module.path, test))
            reason = "take the rank into account on both ways: without workers a rank counts as one with one worker"
        else:
            own = ": its workers share it out, and the ranks do not" if stream.workers else ""
            what = (
                f"every rank reads all of the stream {stream.name}{own}; {handed.framework} gives a sampler to a data set with "
                "`__getitem__`, and does not share out a stream"
            )
            whole = [s for s in read if s.lone is None]
            evidence += [
                Evidence("static", f"nothing in {s.name} asks for the rank", s.module.path, line_of(s.place)) for s in whole
            ]
            reason = _OF_DATASETS if stream.name.endswith(")") else _IN_ITER
        return self.finding(module, handed.loader.call, what, evidence=evidence, reason=reason)

    def _tell(self, module: SourceModule, project: Project, found: Pass, loader: Loader) -> Finding | None:
        wrap = wraps(project, found, module)
        read = streams_of(project, loader)
        if any(s.lone is not None for s in read) or (not read and may_hold_a_share(project, loader)):
            return None
        if wrap is None or ranks_reaching(project, module, loader.call).some:
            return None
        made = origins(project, module, loader.dataset) if loader.dataset is not None else ()
        if not is_seeded(project) and any(is_random(project, o) for o in made):
            return None
        streams = [s for o in made if (s := _stream(project, o)) is not None]
        if any(_draws_its_own(s) for s in streams):
            return None
        if streams:
            what = f"every rank reads all of the stream {streams[0].name}: nothing in it gives a rank its part"
        elif seeded_by_rank(project, module.path):
            what = "each rank goes through all of the data, in an order of its own: no sampler gives it a part"
        else:
            what = "each rank goes through all of the data: no sampler gives it a part"
        evidence = [
            Evidence("static", "the training loop goes through it", found.module.path, found.loop.lineno),
            Evidence("static", "the model is wrapped for several processes", wrap[0].path, wrap[1].lineno),
        ]
        edits, reason = _repair(module, project, loader, made, streams)
        level = Applicability.UNSAFE if edits else Applicability.DISPLAY
        return self.finding(module, loader.call, what, level=level, edits=edits, evidence=evidence, reason=reason)


def _may_stream(project: Project) -> bool:
    """True where the project has streams, and a framework that takes loaders as they are."""
    frameworks = (b"train_dataloader", b"setup_dataloaders")
    return any(project.files_containing(w) for w in frameworks) and any(project.files_containing(w) for w in _STREAM_WORDS)


def _gives_all(project: Project, loader: Loader) -> bool:
    if loader.hides or loader.batch_sampler is not None:
        return False
    return not any(shares_out(project, o) for o in samplers_of(project, loader) if not is_none(o))


def _stream(project: Project, origin: Origin) -> ClassSite | None:
    site = made_class(project, origin)
    if site is None:
        return None
    external = class_facts(project, site.module, site.node).external
    return site if any(last(n) == "IterableDataset" for n in external) else None


def _draws_its_own(site: ClassSite) -> bool:
    """True for a stream of random numbers that no seed of its own fixes."""
    names = [qualified(site.module, n.func) for n in walk(site.node) if isinstance(n, ast.Call)]
    draws = any(n.startswith(("random.", "numpy.random.", "torch.rand")) for n in names)
    return (
        draws
        and not any(last(n) in ("manual_seed", "default_rng", "RandomState", "Random") for n in names)
        and not any(isinstance(n, ast.Attribute) and n.attr in ("manual_seed", "seed") for n in walk(site.node))
    )


_BESIDE_OPTIONS = (
    "give it `sampler=DistributedSampler(dataset)`, and take `shuffle` out of the options: torch refuses "
    "`shuffle=True` beside a sampler"
)


def _repair(
    module: SourceModule, project: Project, loader: Loader, made: tuple[Origin, ...], streams: list[ClassSite]
) -> tuple[list[Edit], str]:
    if streams:
        return [], _IN_ITER
    if loader.sampler is not None:
        return [], "a sampler that draws at random in each process shares nothing out: take a `DistributedSampler` instead"
    name = dotted(loader.dataset)
    if loader.is_given_options:
        return [], _BESIDE_OPTIONS
    if not name:
        return [], "give the data set a name, and the loader `sampler=DistributedSampler(dataset)` in the place of `shuffle`"
    if not starts_group_before(project, module, loader.call):
        return (
            [],
            "give it `sampler=DistributedSampler(dataset)` in the place of `shuffle`, where the process group is there by then",
        )
    planned = _sampler_name(module)
    if planned is None or len(loader.call.args) > 2:
        return [], "give it `sampler=DistributedSampler(dataset)` in the place of `shuffle`"
    span = module.span(loader.call)
    shuffle = next((k.value for k in loader.call.keywords if k.arg == "shuffle"), None)
    ordered = shuffle is None or (isinstance(shuffle, ast.Constant) and not shuffle.value)
    if shuffle is not None and not isinstance(shuffle, ast.Constant):
        order = f", shuffle={module.text_of(shuffle)}"
    else:
        order = ", shuffle=False" if ordered else ""
    edits: list[Edit] = [*planned.edits, SetKeyword(module.path, span, "sampler", f"{planned.name}({name}{order})")]
    if shuffle is not None:
        edits.append(DropKeyword(module.path, span, "shuffle"))
    return edits, "assumes that batch_size is meant for each rank, and that nothing counts on the number of steps in an epoch"


def _sampler_name(module: SourceModule) -> Planned | None:
    if name := in_scope(module, lambda d: d in _SAMPLER):
        return Planned(name)
    return plan_beside(module, "torch", lambda _: ("torch.utils.data", "DistributedSampler"))
