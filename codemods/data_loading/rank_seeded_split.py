"""DDP409: each rank divides the data by a seed of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.origins import origins
from codemods.analysis.loading.salted import salted_hash
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.seeds import SEEDERS, Seed, depends_on_rank, names_the_rank
from codemods.analysis.loading.shuffled_by_own_seed import OwnOrder, orders_by_own_seed
from codemods.analysis.loading.splits import Split, seed_above, splits_in, without_rank
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Edit, Evidence, Finding, ReplaceExpression, SetKeyword
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_UNSAFE, _DISPLAY = Applicability.UNSAFE, Applicability.DISPLAY


class RankSeededSplit(DdpCodemod):
    """Data that each rank divides by a seed of its own.

    ## What it does
    Finds a seed with the rank in it above `random_split` or `train_test_split`, in the generator of such a split, in
    `DistributedSampler(seed=...)`, also where the sampler's function is handed it, and in a permutation of which each rank
    takes its part, which is cut in two, or which a sampler deals out. Does the same for rows that pandas draws
    (`rows.sample(n=9, random_state=seed)`) and a `DistributedSampler` then deals out, for `shuffle` of `datasets` in front
    of the Trainer, of a sampler, of a loader that Accelerate prepares or of `shard(index=rank)`, for a data set that the ranks
    share and whose constructor mixes the list that `__getitem__` looks the index up in, and for a `SubsetRandomSampler` that
    an heir of `DistributedSampler` goes through.
    Takes the rank out of that seed. Reports a seed of the `hash()` of a text, which Python salts in each process, and a
    `seed_everything` with a number of each rank's own: the sampler that Lightning and Fabric give a loader shuffles by it.

    ## Why it matters
    Each rank has another division of the data. A sample that rank 0 validates with is trained on by rank 1, and the parts of the
    ranks overlap while other samples are never seen. The validation score looks better than it is. Nothing fails.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.utils.data import random_split


    def parts(data, seed):
        torch.manual_seed(seed + dist.get_rank())
        return random_split(data, [0.9, 0.1])
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.utils.data import random_split


    def parts(data, seed):
        torch.manual_seed(seed + dist.get_rank())
        return random_split(data, [0.9, 0.1], generator=torch.Generator().manual_seed(seed))
    ```

    ## Safety
    Unsafe: the division changes, so numbers of earlier runs do not compare. The seed with the rank in it stays for what is drawn
    later.

    ## Refuses
    - Says nothing where the seed is the same on every rank, or another seed stands between it and the split.
    - Says nothing where a collective in the same function gives all ranks one division.
    - Says nothing of a split on one rank alone, and of a repository's own tests.
    - Says nothing of a permutation that is not cut in two, of which no rank takes a part and that no sampler deals out: its order
      may be each rank's own.
    - Reports a seed that holds the rank in another way than `seed + rank`, or that has no name at the split.
    - Says nothing in front of `prepare` where the project speaks of `dispatch_batches`, of a loader with a sampler of its own,
      and of a stream: rank 0 may read for all ranks.
    - Says nothing of a data set that looks the index up in a second list as well, which is not mixed.
    - Says nothing of the hash of a number, and where the repository speaks of `PYTHONHASHSEED`.
    - Says nothing of `seed_everything` where the program seeds elsewhere as well, speaks of `PL_GLOBAL_SEED` or spawns its ranks,
      and where no loader that shuffles is seen to be shared out.
    - Reports permutations: what the generator is for elsewhere is not followed.

    ## References
    The documentation of `DistributedSampler` (`seed`: "This number should be identical across all processes in the distributed
    group"); runs of splits and samplers with rank seeds on two processes with torch 2.13.
    """

    code = "DDP409"
    severity = "data"
    subject = "Divide data alike on all ranks"
    must_show = "Both processes train on the same samples, and validate on the others."
    printed = ()
    TRIGGERS = (
        (b"random_split", b"train_test_split", b"DistributedSampler", b"randperm", b"permutation(", b".sample(", b".shuffle(",
         b"RandomSampler(", b"seed_everything("),
    )  # fmt: skip
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path) or b".shard(" in (project.read(path) or b"")

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("DistributedSampler"):
            if (found := self._sampler(module, project, call)) is not None:
                yield found
        for split in splits_in(project, module):
            if not ranks_reaching(project, module, split.call).some and (told := self._split(module, project, split)) is not None:
                yield told
        for order in orders_by_own_seed(project, module) if module.holds(b"seed_everything(") else ():
            yield self._order(module, order)

    def _order(self, module: SourceModule, found: OwnOrder) -> Finding:
        """A loader that the framework shuffles by the number of `seed_everything`."""
        handed, loader = found.handed, found.handed.loader
        comes = "each process draws" if found.drawn else "each rank has its own"
        message = (
            f"{handed.framework} shuffles `{short(loader.module, loader.call)}` by this seed when it shares it out, and {comes} "
            f"(`{short(found.module, found.own)}`): the parts of the ranks overlap, and some samples are never seen"
        )
        evidence = [
            Evidence("static", f"`{short(found.module, found.own)}`", found.module.path, found.own.lineno),
            Evidence("static", "this loader is shared out", loader.module.path, loader.call.lineno),
        ]
        reason = "give all ranks one seed: a number of the settings, or one that is drawn once and handed to the processes"
        return self.finding(module, found.seed.call, message, evidence=evidence, reason=reason)

    def _sampler(self, module: SourceModule, project: Project, call: ast.Call) -> Finding | None:
        seed = next((k.value for k in call.keywords if k.arg == "seed"), None)
        if seed is None or not qualified(module, call.func).startswith("torch."):
            return None
        if (salted := salted_hash(project, module, seed)) is not None:
            return self._tell_salted(module, call, salted, "their parts overlap, and some samples are never seen")
        if not names_the_rank(project, module, seed):
            return self._sampler_of_a_handed_seed(module, project, call, seed)
        message = (
            f"the sampler's seed `{short(module, seed)}` differs between the ranks: "
            "their parts overlap, and some samples are never seen"
        )
        plain = without_rank(project, module, seed)
        edits: list[Edit] = []
        if plain is not None:
            edits = [ReplaceExpression(module.path, module.span(seed), module.text_of(plain))]
        elif rank_source(module, seed, project) is not None:
            edits = [DropKeyword(module.path, module.span(call), "seed")]
        if edits:
            reason = "changes the order of the data: numbers of earlier runs do not compare"
            return self.finding(module, call, message, level=_UNSAFE, edits=edits, reason=reason)
        return self.finding(module, call, message, reason="give all ranks the same seed")

    def _sampler_of_a_handed_seed(
        self, module: SourceModule, project: Project, call: ast.Call, seed: ast.expr
    ) -> Finding | None:
        """A seed that the sampler's function, or its object, is given elsewhere."""
        made = origins(project, module, seed) if isinstance(seed, (ast.Name, ast.Attribute)) else ()
        given = next((o for o in made if o.known and not o.path and names_the_rank(project, o.module, o.node)), None)
        if given is None:
            return None
        text = short(given.module, given.node)
        message = (
            f"the sampler's seed `{short(module, seed)}` is `{text}`, which differs between the ranks: their parts overlap, and "
            "some samples are never seen"
        )
        shown = [Evidence("static", f"`{text}` is given here", given.module.path, given.line)]
        return self.finding(module, call, message, evidence=shown, reason="give all ranks the same seed")

    def _split(self, module: SourceModule, project: Project, split: Split) -> Finding | None:
        if split.given is not None:
            return self._seeded_by_argument(module, project, split, split.given)
        above = seed_above(project, split)
        if above is None or not above.of_rank:
            return None
        seed = above.seed
        message = f"{_what(module, split)}: the seed above it is each rank's own, so {split.outcome}"
        evidence = [Evidence("static", f"`{short(seed.module, seed.call)}`", seed.module.path, seed.call.lineno), *_dealt(split)]
        edits = _with_generator(module, project, split, seed)
        level = _UNSAFE if edits else _DISPLAY
        reason = (
            "changes the division: numbers of earlier runs do not compare" if edits
            else f"{split.repair}, the same on every rank"
        )  # fmt: skip
        return self.finding(module, split.call, message, level=level, edits=edits, evidence=evidence, reason=reason)

    def _seeded_by_argument(self, module: SourceModule, project: Project, split: Split, given: ast.expr) -> Finding | None:
        """A split whose own generator, or random state, has the rank in its seed."""
        salted = salted_hash(project, module, given)
        if salted is not None:
            return self._tell_salted(module, split.call, salted, split.outcome)
        if split.argument in ("random_state", "seed"):
            if not _holds_the_rank(project, module, given):
                return None
            plain = without_rank(project, module, given)
            edits: list[Edit] = [ReplaceExpression(module.path, module.span(given), module.text_of(plain))] if plain else []
            return self._told(module, split, given, module, edits)
        for origin in origins(project, module, given):
            call = origin.node
            if not origin.known or origin.path or not isinstance(call, ast.Call) or not call.args:
                continue
            seeds = last(dotted(call.func)) in SEEDERS or (
                isinstance(call.func, ast.Attribute) and call.func.attr == "manual_seed"
            )
            if seeds and depends_on_rank(project, origin.module, call.args[0]):
                plain = without_rank(project, origin.module, call.args[0])
                written: list[Edit] = (
                    [ReplaceExpression(module.path, module.span(call.args[0]), origin.module.text_of(plain))] if plain else []
                )
                mine = call is given and split.taken is None
                return self._told(module, split, call, origin.module, written if mine else [])
        return None

    def _tell_salted(self, module: SourceModule, call: ast.Call, salted: ast.Call, outcome: str) -> Finding:
        held = short(module, salted)
        message = f"`{short(module, call)}`: its seed holds `{held}`, which differs in each process, so {outcome}"
        evidence = [Evidence("static", "Python salts the hash of a text in each process", module.path, salted.lineno)]
        reason = "take a hash that is the same in each process: `zlib.crc32(text.encode())`"
        return self.finding(module, call, message, evidence=evidence, reason=reason)

    def _told(self, module: SourceModule, split: Split, seed: ast.AST, home: SourceModule, edits: list[Edit]) -> Finding:
        message = f"{_what(module, split)}: its seed is each rank's own, so {split.outcome}"
        evidence = [Evidence("static", f"`{short(home, seed)}`", home.path, getattr(seed, "lineno", 0))]
        evidence += _dealt(split)
        if split.taken is not None and not split.cut and split.loader is None:
            evidence.append(Evidence("static", "each rank takes its part here", module.path, getattr(split.taken, "lineno", 0)))
        reason = "changes the division: numbers of earlier runs do not compare" if edits else "take the rank out of the seed"
        return self.finding(
            module, split.call, message, level=_UNSAFE if edits else _DISPLAY, edits=edits, evidence=evidence, reason=reason
        )


def _holds_the_rank(project: Project, module: SourceModule, seed: ast.expr) -> bool:
    """True for a seed with the rank in it, and for a name that is given nothing else."""
    if names_the_rank(project, module, seed):
        return True
    made = origins(project, module, seed) if isinstance(seed, ast.Name) else ()
    return bool(made) and all(o.known and not o.path and names_the_rank(project, o.module, o.node) for o in made)


def _dealt(split: Split) -> list[Evidence]:
    """The loader of the data set that mixes its samples."""
    loader = split.loader
    said = "the ranks share the samples of this loader"
    return [Evidence("static", said, loader.module.path, loader.call.lineno)] if loader is not None else []


def _what(module: SourceModule, split: Split) -> str:
    return f"`{short(module, split.call)}`"


def _with_generator(module: SourceModule, project: Project, split: Split, seed: Seed) -> list[Edit]:
    """A generator with the seed that the rank was added to, where that can be written at the split."""
    plain = without_rank(project, seed.module, seed.value) if seed.value is not None else None
    if plain is None or split.taken is not None or seed.module is not module:
        return []
    function = module.function_of(split.call)
    names = [n.id for n in walk(plain) if isinstance(n, ast.Name)]
    constants = all(n.isupper() for n in names)
    if module.function_of(seed.call) is not function and not constants:
        return []
    text = module.text_of(plain)
    if split.argument == "generator":
        if not any(i.dotted == "torch" for i in module.imports.get("torch", ())):
            return []
        text = f"torch.Generator().manual_seed({text})"
    return [SetKeyword(module.path, module.span(split.call), split.argument, text)]
