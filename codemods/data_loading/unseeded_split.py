"""DDP403: each rank divides the data at random, and nothing makes them do it alike."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module, ranks_in_file, ranks_in_importers
from codemods.analysis.loading.programs import wrap_in
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.seeded_way import is_seeded_on_the_way
from codemods.analysis.loading.split_in_hooks import hook_round
from codemods.analysis.loading.splits import Split, splits_in
from codemods.analysis.names import is_from, qualified
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.seen_starts import is_of_several
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.run_by_ranks import shows_ranks
from codemods.analysis.trainer.trainer_calls import trainer_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, SetKeyword
from codemods.files.source import SourceModule
from codemods.store.project import Project

_TEXTS = (".yaml", ".yml", ".json", ".toml", ".cfg")

# What gives Lightning's Trainer several processes, on a machine with several GPUs.
_SEVERAL = (
    b'strategy="ddp', b"strategy='ddp", b"DDPStrategy", b"num_nodes=", b'devices="auto"', b"devices='auto'", b"devices=-1",
    b"gpus=-1",
)  # fmt: skip


class UnseededSplit(DdpCodemod):
    """A random split that each rank makes in another way.

    ## What it does
    Finds `random_split`, `train_test_split` of scikit-learn and of `datasets`, rows that pandas draws
    (`train = rows.sample(frac=0.9)`, the rest by `rows.drop(train.index)`, or dealt out by a `DistributedSampler`), permutations
    and lists that are mixed of which each rank takes its part, which are cut in two (`train = rows[:n]`, `val = rows[n:]`, or by
    a function of the project: `train, val = cut(rows, [0.8, 0.2])`), or which a `DistributedSampler` deals out in the same
    function, `rows.shuffle()` of `datasets` in front of the Trainer or of `accelerator.prepare`, a list that the constructor of
    a data set mixes whose samples the ranks share, and a `SubsetRandomSampler` that an heir of `DistributedSampler` goes
    through, without a generator, in a program for several processes in which nothing on the way seeds
    the numbers of the library that draws: one that wraps its model, that Accelerate or Lightning deals out for, or the Trainer
    of transformers where its commands start several. It adds a generator with a seed.

    ## Why it matters
    Each process draws from a seed of its own. A sample that one rank keeps for validation is trained on by another, so the
    validation score looks better than it is, and no two runs compare. Nothing fails.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import random_split


    def main(data, net):
        dist.init_process_group("nccl")
        train_set, val_set = random_split(data, [0.9, 0.1])
        return DistributedDataParallel(net), train_set, val_set
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import random_split


    def main(data, net):
        dist.init_process_group("nccl")
        train_set, val_set = random_split(data, [0.9, 0.1], generator=torch.Generator().manual_seed(0))
        return DistributedDataParallel(net), train_set, val_set
    ```

    ## Safety
    Unsafe: every run then has the same division, which a study over several divisions does not want.

    ## Refuses
    - Says nothing where anything on the way seeds that library: above the split, above the calls of its function, in what is
      called there, at the import of a file, or by `seed_everything` in a configuration file of its program. A helper that is
      not read counts as one that seeds all.
    - Says nothing where a generator or a random state is given, or a collective in the function makes the division equal.
    - Says nothing where no file shows that several processes come to the split, of a split on one rank alone, and of tests.
    - Says nothing where only a hook of Lightning comes to the split, and LightningCLI, which seeds by itself, may run that.
    - Says nothing of an order that the Trainer or the sampler does not come to within the function.
    - Reports a permutation of which each rank takes its part, and a file without `torch` under its own name.

    ## References
    `torch.random.initial_seed` on two processes with torch 2.13: each starts from a number of its own.
    """

    code = "DDP403"
    severity = "data"
    subject = "Seed random splits"
    must_show = "Both processes train on the same samples, and validate on the others."
    printed = ()
    TRIGGERS = (
        (b"random_split", b"train_test_split", b"randperm", b"permutation", b".sample(", b".shuffle(", b"RandomSampler("),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        dealt = b"rainer" in data or b"ightningDataModule" in data or b"def __getitem__" in data or _any_deals(project)
        return dealt or shows_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        configured = any(project.files_containing(b"seed_everything", kinds=_TEXTS))
        if is_test_module(module) or (configured and not project.files_containing(b"LightningCLI")):
            return
        for split in splits_in(project, module):
            if split.given is not None or ranks_reaching(project, module, split.call).some:
                continue
            # a configuration that seeds is one of LightningCLI's, and says nothing of a hook that no such program comes to
            shown = None if configured else _shared(project, module, split)
            shown = shown or _in_a_hook(project, module, split)
            if shown is not None and not is_seeded_on_the_way(project, module, split.call, split.source):
                yield self._tell(module, split, shown)

    def _tell(self, module: SourceModule, split: Split, shown: Evidence) -> Finding:
        message = f"nothing seeds `{short(module, split.call)}`: {split.outcome}"
        code = "torch.Generator().manual_seed(0)" if split.argument == "generator" else "0"
        reason = split.repair
        torch = any(i.dotted == "torch" for i in module.imports.get("torch", ()))
        edits: list[Edit] = []
        if split.taken is None and (torch or split.argument != "generator"):
            edits = [SetKeyword(module.path, module.span(split.call), split.argument, code)]
            reason = "assumes that every run may have the same division"
        level = Applicability.UNSAFE if edits else Applicability.DISPLAY
        return self.finding(module, split.call, message, level=level, edits=edits, evidence=[shown], reason=reason)


def _shared(project: Project, module: SourceModule, split: Split) -> Evidence | None:
    """What shows that several processes come to the split, but for the hooks of Lightning."""
    if (loader := split.loader) is not None:
        return Evidence("static", "the ranks share the samples of this loader", loader.module.path, loader.call.lineno)
    return _several(project, module) or _dealt_by_trainer(project, module, split) or _used(project, module, split)


def _several(project: Project, module: SourceModule) -> Evidence | None:
    """What shows that several processes come here: a wrap in this file or in one that uses it, or Lightning."""
    shown = ranks_in_file(project, module)
    wrapped = wrap_in(module) is not None or _prepares(module) or _is_of_an_engine(module)
    if shown is not None and (wrapped or _is_lightning_with_several(project, module)):
        return shown
    above = ranks_in_importers(project, module)
    if above is not None:
        user = project.module(above.path)
        if user is not None and wrap_in(user) is not None:
            return above
    return None


def _any_deals(project: Project) -> bool:
    """True where a file has what `_used` looks for at the calls of a function."""
    engines = set(project.files_containing(b"deepspeed")).intersection(project.files_containing(b"initialize("))
    loaders = set(project.files_containing(b"accelerate")).intersection(project.files_containing(b"prepare("))
    return bool(engines or loaders)


def _used(project: Project, module: SourceModule, split: Split) -> Evidence | None:
    """The call of the function that splits in a file whose own model DeepSpeed or an Accelerator shares out."""
    function = module.function_of(split.call)
    for site in uses_of(project, module, function).outside_tests().calls if function is not None else ():
        if _prepares(site.module) or _is_of_an_engine(site.module):
            return Evidence("static", "each process of this program divides the data here", site.module.path, site.call.lineno)
    return None


def _in_a_hook(project: Project, module: SourceModule, split: Split) -> Evidence | None:
    """The hook of Lightning that comes to the split in each process."""
    if (found := hook_round(project, module, split.call)) is None:
        return None
    home, hook = found
    return Evidence("static", f"Lightning runs `{hook.name}` in each process, and it divides the data", home.path, hook.lineno)


def _is_of_an_engine(module: SourceModule) -> bool:
    return any(qualified(module, call.func) == "deepspeed.initialize" for call in module.calls_named("initialize"))


def _dealt_by_trainer(project: Project, module: SourceModule, split: Split) -> Evidence | None:
    """What shows that the Trainer of transformers deals out, to several processes, what each has split by itself."""
    trainer = next(iter(trainer_calls(project, module)), None)
    if (
        trainer is None
        or trainer.method("get_train_dataloader") is not None
        or not is_of_several(project, module, split.call)
    ):
        return None
    return Evidence("static", "the Trainer deals out what each process has divided by itself", module.path, trainer.call.lineno)


def _prepares(module: SourceModule) -> bool:
    """True where an Accelerator prepares loaders: it deals out what each process has split by itself."""
    return any(is_from(name, "accelerate") for name in module.imported_modules) and bool(module.calls_named("prepare"))


def _is_lightning_with_several(project: Project, module: SourceModule) -> bool:
    if not any(is_from(name, "lightning") for name in module.imported_modules):
        return False
    return any(project.files_containing(word) for word in _SEVERAL)
