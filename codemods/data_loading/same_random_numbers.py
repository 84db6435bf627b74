"""DDP405: every rank draws the same random numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.guards.entry_points import group_name
from codemods.analysis.job_files.documented_starts import is_pinned_to_one
from codemods.analysis.loading.configured_draws import configured_draws
from codemods.analysis.loading.drawn_by_somebody import is_drawn_by_somebody
from codemods.analysis.loading.drawn_items import DrawnItem, drawn_items, may_draw_items
from codemods.analysis.loading.draws import Draw, draws_near, may_train
from codemods.analysis.loading.items_of_trainers import items_of_trainers, may_train_on_items
from codemods.analysis.loading.origins import Origin, all_known, made_class, origins
from codemods.analysis.loading.own_generators import draws_from_own, equal_generator, parts_of
from codemods.analysis.loading.passes import evaluates, training_passes
from codemods.analysis.loading.programs import wrap_in, wraps
from codemods.analysis.loading.run_in_program import is_run_in_program
from codemods.analysis.loading.same_program import callers, comes_to_training
from codemods.analysis.loading.samplers import loader_of, short
from codemods.analysis.loading.seed_options import option_of
from codemods.analysis.loading.seeds import Seed, depends_on_rank, handed_seeds, is_in_helper, is_unused, seeded_by_rank, seeds_in
from codemods.analysis.loading.trains_on_several import runs_on_several
from codemods.analysis.loading.worker_seeds import is_never_set, leaves_workers
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import CallSite
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter
from codemods.files.left_alone import left
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_OF_TORCH = frozenset({"manual_seed", "seed_everything", "set_seed"})
_EVALUATION = re.compile(r"(^|_)(eval\w*|test|infer\w*|predict\w*|sample|generate|demo|playground|chat|app|metri\w*|fid)(_|$)")


class SameRandomNumbers(DdpCodemod):
    """Every rank draws the same random numbers for its samples.

    ## What it does
    Finds a seed that is the same on every rank, where the training step then draws noise, time steps, masks or a permutation for
    each sample of the batch. In raw torch it offers a second seed behind the wrap, with the rank in it. It reports generators
    (`torch.Generator().manual_seed(seed)`, `random.Random(seed)` in a transform) with the same seed on every rank, too, and data
    sets that draw which sample they give, whatever index they are asked for, also under the seed that the Trainer of transformers
    sets.

    ## Why it matters
    Each rank has samples of its own, but in each step all of them get the same noise, time steps or crops. A batch of eight ranks
    has the variety of one. Nothing fails and the loss looks right.

    ## Example
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def main(net, loader, seed):
        dist.init_process_group("nccl")
        torch.manual_seed(seed)
        model = DistributedDataParallel(net)
        for x in loader:
            noise = torch.randn_like(x)
            (model(x + noise) - noise).square().mean().backward()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def main(net, loader, seed):
        dist.init_process_group("nccl")
        torch.manual_seed(seed)
        model = DistributedDataParallel(net)
        torch.manual_seed(seed + dist.get_rank())
        for x in loader:
            noise = torch.randn_like(x)
            (model(x + noise) - noise).square().mean().backward()
    ```

    ## Safety
    Unsafe: nothing that is drawn behind the wrap may have to be the same on all ranks. What is made above it, the weights too,
    stays the same on all of them. The numbers of a run change.

    ## Refuses
    - Says nothing of a seed in a function that starts the ranks with `mp.spawn`: they do not have its numbers. Nothing of one in
      a program that only evaluates, or in a helper that nobody calls. Nothing where its program makes no object of the class
      that draws, or fits another model.
    - Says nothing where any seed of the project differs between the ranks, or is `device_specific`.
    - Says nothing of numbers that decide over a step and not over samples: a task, a branch, one number for all.
    - Says nothing of draws in `forward` (dropout and its kin) but for the time steps of a diffusion and the order by which parts
      of each sample are hidden, in evaluation, and in a data set's workers, where they do not choose the sample.
    - Says nothing of a model that a configuration names where several scripts fit and nothing says which of them takes it.
    - Says nothing of what workers draw behind `seed_everything(..., workers=True)`, which puts the rank into their seeds, and
      behind a seed that a configuration may have and none of the project has.
    - Says nothing of a data set that draws its samples under the Trainer of transformers where workers may draw them, unless a
      release below 4.52 is pinned: from there on a worker's seed holds the rank.
    - Says nothing where the function puts the numbers back as they were (`set_rng_state`, `fork_rng`).
    - Says nothing of a seed that one rank alone sets, of one that a loader sets in each of its workers, and of a repository's
      own tests.
    - Says nothing of Lightning where nothing shows several devices, and of a script that every command of the repository starts
      as one process (`CUDA_VISIBLE_DEVICES=0 accelerate launch train.py`).
    - Reports seeds of Lightning, Accelerate and Fabric, each with its own way, and generators.
    - Reports a seed where the wrap stands elsewhere, or where a split or permutation is drawn behind the wrap.

    ## References
    Two processes with torch 2.13, Accelerate 1.15 (`set_seed(..., device_specific=True)`) and Lightning 2.6 (`seed_everything`
    gives all ranks the same numbers); huggingface/accelerate#236; threestudio-project/threestudio#195.
    """

    code = "DDP405"
    severity = "data"
    subject = "Draw other noise on each rank"
    must_show = "The first batch of noise differs between the processes, and the weights are the same on both."
    printed = ()
    TRIGGERS = ((b"seed", b"Random(", b"Trainer("),)
    SITES = (
        Site(rb"seed\w*[ \t]*\(", b"seed"),
        Site(rb"[A-Z]\w*[ \t]*\([^\n]*seed", b"seed"),
        Site(rb"Trainer[ \t]*\(", b"Trainer"),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        if b"Trainer(" in (project.read(path) or b"") and may_train_on_items(project):
            return True
        words = (b"DistributedDataParallel", b"ccelerat", b"ightning", b"Fabric")
        return any(project.files_containing(word) for word in words) and bool(
            may_train(project) or may_draw_items(project) or b"Random(" in (project.read(path) or b"")
        )

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or is_pinned_to_one(project, module.path):
            return
        yield from self._of_process(module, project)
        told: set[int] = set()
        yield from self._of_items(module, project, told)
        yield from self._of_trainers(module, project, told)
        yield from self._of_generators(module, project)
        yield from self._of_transforms(module, project)

    def _of_process(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """Draws from the numbers of the process, by the seed that fixed them."""
        seeds = [s for s in (*seeds_in(module), *handed_seeds(project, module)) if _fixes_torch(s)]
        mine = [s for s in seeds if not is_in_helper(project, s) and not is_never_set(project, s) and not is_unused(project, s)]
        named = configured_draws(project, module) if mine else ()
        draws = [d for d in (*draws_near(project, module.path), *named) if d.generator is None] if mine else []
        told: set[int] = set()
        for seed in mine:
            if ranks_reaching(project, module, seed.call).some or not _is_for_training(seed):
                continue
            near = [d for d in draws if runs_on_several(project, d.module, module)]
            if near and not comes_to_training(project, module.path):
                continue
            if near and depends_on_rank(project, module, seed.value):
                continue
            function = id(module.function_of(seed.call))
            if near and function not in told and not seeded_by_rank(project, module.path, of_process=True):
                told.add(function)
                near = [d for d in near if is_drawn_by_somebody(project, d.module, d.call)]
                if not near and left(module, seed.call, "nothing calls the functions that draw"):
                    continue
                at = CallSite(module, seed.call)
                near = [d for d in near if d in named or is_run_in_program(project, d.module, d.call, at)]
                if not near and left(module, seed.call, "its program makes no object of the classes that draw"):
                    continue
                edits, reason = _second_seed(module, project, seed)
                option = option_of(project, seed)
                yield self._tell(module, seed.call, near, edits, reason, given=f"with `{option}` " if option else "")

    def _of_items(self, module: SourceModule, project: Project, told: set[int]) -> Iterator[Finding]:
        """Data sets that draw which sample they give, from numbers that are the same on every rank."""
        mine = [s for s in seeds_in(module) if _fixes_all(s) and _is_for_training(s) and not leaves_workers(s)]
        mine = [s for s in mine if not is_never_set(project, s)]
        for item in drawn_items(project, module.path) if mine else ():
            seed = next((s for s in mine if not ranks_reaching(project, module, s.call).some), None)
            if seed is None or not runs_on_several(project, item.module, module) or item.module.holds(b"worker_init_fn"):
                continue
            if seeded_by_rank(project, module.path) or depends_on_rank(project, module, seed.value):
                continue
            told.add(id(item.call))
            evidence = Evidence("static", f"`{short(module, seed.call)}`", module.path, seed.call.lineno)
            yield self._of_item(item, "the seed is the same on every rank", evidence, "put the rank into the seed")

    def _of_trainers(self, module: SourceModule, project: Project, told: set[int]) -> Iterator[Finding]:
        """The same of data sets whose ranks a Trainer of transformers seeds, without a seed in the project."""
        for found in items_of_trainers(project, module):
            if id(found.item.call) in told:
                continue
            told.add(id(found.item.call))
            line = found.deal.trainer.call.lineno
            evidence = Evidence("static", "the Trainer seeds each rank with `args.seed`", module.path, line)
            instead = "seed a generator of its own with the index or the rank"
            yield self._of_item(found.item, "the Trainer seeds every rank alike", evidence, instead)

    def _of_item(self, item: DrawnItem, why: str, evidence: Evidence, instead: str) -> Finding:
        name = short(item.module, item.call)
        return self.finding(
            item.module,
            item.call,
            f"{item.kept.name} draws its sample with `{name}` and takes no notice of the index, and {why}: all ranks train on "
            "the same samples",
            evidence=[evidence],
            reason=f"take the sample of the index that the sampler hands over, or {instead}",
        )

    def _of_generators(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """Draws from a generator that has the same seed on every rank."""
        found: dict[int, tuple[Origin, list[Draw]]] = {}
        if not module.holds(b"Generator"):
            return
        for draw in draws_near(project, module.path):
            if draw.generator is None or not runs_on_several(project, draw.module, module):
                continue
            made = origins(project, draw.module, draw.generator)
            if all_known(made) and all(equal_generator(project, o) for o in made):
                for origin in made:
                    if origin.module is module:
                        found.setdefault(id(origin.node), (origin, []))[1].append(draw)
        for origin, draws in found.values():
            if not ranks_reaching(project, module, origin.node).some and not seeded_by_rank(project, module.path):
                yield self._tell(module, origin.node, draws, [], "put the rank into the seed of the generator")

    def _of_transforms(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """Objects that a training set is made with, and that draw for each sample from a generator of their own."""
        done: set[int] = set()
        for found in training_passes(project, module.path) if module.nodes(ast.Call) else ():
            for origin in origins(project, found.module, found.source):
                loader = loader_of(origin)
                data = (
                    origins(project, loader.module, loader.dataset) if loader is not None and loader.dataset is not None else ()
                )
                for part in (p for d in data for p in parts_of(project, d)):
                    site = made_class(project, part)
                    if (
                        part.module is not module
                        or site is None
                        or id(part.node) in done
                        or wraps(project, found, module) is None
                    ):
                        continue
                    if (line := draws_from_own(project, site, part)) is not None:
                        done.add(id(part.node))
                        shown = [Evidence("static", "each sample is drawn for here", site.module.path, line)]
                        what = short(module, part.node)
                        message = f"`{what}` has the same seed on every rank: all ranks draw alike for their samples"
                        yield self.finding(module, part.node, message, evidence=shown, reason="put the rank into its seed")

    def _tell(
        self, module: SourceModule, at: ast.AST, draws: list[Draw], edits: list[Edit], reason: str, *, given: str = ""
    ) -> Finding:
        first = draws[0]
        what = short(first.module, first.call)
        message = f"{given}the seed is the same on every rank, so `{what}` gives the samples of all ranks the same numbers"
        if given:
            message += "; without it each rank draws its own"
        evidence = [
            Evidence("static", f"`{short(d.module, d.call)}` in the training step", d.module.path, d.call.lineno)
            for d in draws[:3]
        ]
        level = Applicability.UNSAFE if edits else Applicability.DISPLAY
        return self.finding(module, at, message, level=level, edits=edits, evidence=evidence, reason=reason)


def _fixes_torch(seed: Seed) -> bool:
    """True for a seed of the numbers that torch draws from, with a number that is given."""
    if seed.helper:
        return seed.helper in ("torch.manual_seed", "torch.random.manual_seed")
    name = qualified(seed.module, seed.call.func)
    if seed.own or seed.value is None or last(name) not in _OF_TORCH:
        return False
    root = name.partition(".")[0]
    if last(name) == "manual_seed":
        return name in ("torch.manual_seed", "torch.random.manual_seed")
    return root in ("accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "transformers") or _is_fabric(
        seed.module, seed.call
    )


def _fixes_all(seed: Seed) -> bool:
    """True for a seed of Python's, numpy's and torch's numbers at once, which fixes those of the loader's workers, too."""
    return _fixes_torch(seed) and last(qualified(seed.module, seed.call.func) or dotted(seed.call.func)) != "manual_seed"


def _is_fabric(module: SourceModule, call: ast.Call) -> bool:
    return last(dotted(call.func)) == "seed_everything" and "fabric" in dotted(call.func).lower()


def _is_for_training(seed: Seed) -> bool:
    """False for a seed in an evaluation, and for one that is taken as a generator."""
    function = seed.module.function_of(seed.call)
    alone = isinstance(seed.module.parent(seed.call), ast.Expr)
    if not alone or _only_evaluates(seed.module) or _starts_processes(seed.module, function):
        return False
    if function is not None and any(word in seed.module.text_of(function) for word in ("set_rng_state", "fork_rng")):
        return False  # the numbers go on behind it as if there had been none
    return not (function is not None and (evaluates(function) or _is_for_workers(seed.module, function)))


def _is_for_workers(module: SourceModule, function: FunctionNode) -> bool:
    """True for what a loader calls in each of its workers: the numbers of the process itself stay as they are."""
    given = (k.value for c in module.calls_named("DataLoader") for k in c.keywords if k.arg == "worker_init_fn")
    named = {last(dotted(n)) for value in given for n in walk_scope(value) if isinstance(n, (ast.Name, ast.Attribute))}
    named |= {last(dotted(k.value)) for c in module.calls_named("DataLoader") for k in c.keywords if k.arg == "worker_init_fn"}
    first = next((a.arg for a in function.args.args), "")
    return function.name in named or first in ("worker_id", "worker_idx", "worker_index")


def _only_evaluates(module: SourceModule) -> bool:
    """True for `eval_voc.py`, where nothing makes a step: what the training draws elsewhere is not drawn by its seed.

    So it is with a script that makes a Trainer of Lightning, and fits nothing with it.
    """
    trainers = (c for c in module.calls_named("Trainer") if family(qualified(module, c.func)) == "lightning")
    if not module.holds(b".fit(") and any(True for _ in trainers):
        return True
    stem = module.path.removesuffix(".py").rpartition("/")[2]
    return _EVALUATION.search(stem) is not None and not any(module.holds(word) for word in (b"backward(", b".fit(", b".step("))


def _starts_processes(module: SourceModule, function: FunctionNode | None) -> bool:
    """True where the seed is the parent's: `mp.spawn` starts fresh interpreters, which do not have its numbers."""
    near = function.body if function is not None else module.tree.body
    return any(qualified(module, call.func).endswith("multiprocessing.spawn") for s in near for call in _calls(s))


def _calls(statement: ast.stmt) -> list[ast.Call]:
    return [n for n in (statement, *walk_scope(statement)) if isinstance(n, ast.Call)]


def _second_seed(module: SourceModule, project: Project, seed: Seed) -> tuple[list[Edit], str]:
    """A seed with the rank in it behind the wrap, where seed and wrap are made in one function or the seed is handed down."""
    name = qualified(module, seed.call.func)
    of_accelerate = any(n.partition(".")[0] == "accelerate" for n in module.imported_modules)
    if of_accelerate and not name.startswith("accelerate"):
        return [], "seed again before training, with the rank in it: `torch.manual_seed(seed + accelerator.process_index)`"
    if name.startswith("accelerate"):
        return [], (
            "give the call that sets the seed `device_specific=True` behind `prepare`, if nothing drawn later has to be the same "
            "on all ranks"
        )
    if name.startswith("transformers.") and module.holds(b"TrainingArguments"):
        return [], "put the rank into it, behind the arguments: `set_seed(training_args.seed + training_args.process_index)`"
    if last(name) != "manual_seed" and not project.files_containing(b"ightning"):
        return [], "seed again behind the wrap, with the rank in it: `torch.manual_seed(seed + dist.get_rank())`"
    if last(name) != "manual_seed":
        return (
            [],
            "seed again with the rank in it before training: `torch.manual_seed(seed + self.global_rank)` in `on_fit_start`",
        )
    told = "seed again behind the wrap, with the rank in it: `torch.manual_seed(seed + dist.get_rank())`"
    places: list[tuple[SourceModule, ast.Call, ast.expr | None]] = [(module, seed.call, seed.value)]
    function = module.function_of(seed.call)
    if function is not None and isinstance(seed.value, ast.Name):
        names = [a.arg for a in function.args.args]
        for site in callers(project, module, function):
            index = names.index(seed.value.id) if seed.value.id in names else -1
            if 0 <= index < len(site.call.args):
                places.append((site.module, site.call, site.call.args[index]))
    for there, call, value in places:
        if there is module and (edit := _behind_the_wrap(there, call, value)) is not None:
            return [edit], "assumes that nothing drawn behind the wrap has to be the same on all ranks"
    return [], told


def _behind_the_wrap(module: SourceModule, call: ast.Call, value: ast.expr | None) -> Edit | None:
    wrap = wrap_in(module)
    function = module.function_of(call)
    if wrap is None or value is None or module.function_of(wrap) is not function or wrap.lineno <= call.lineno:
        return None
    statement = module.statement_of(wrap)
    body = function.body if function is not None else module.tree.body
    plain = any(statement is s for s in body) and module.is_whole(statement) and any(module.statement_of(call) is s for s in body)
    group = group_name(module, statement)
    torch = any(i.dotted == "torch" for i in module.imports.get("torch", ()))
    if not plain or not group or not torch or not isinstance(value, (ast.Name, ast.Attribute, ast.Constant)):
        return None
    later = [n for s in body if s.lineno > statement.lineno for n in walk(s) if isinstance(n, ast.Call)]
    if any(last(dotted(n.func)) in ("random_split", "randperm", "DataLoader", "shuffle", "manual_seed") for n in later):
        return None
    code = f"torch.manual_seed({module.text_of(value)} + {group}.get_rank())"
    return InsertAfter(module.path, module.span(statement), code)
