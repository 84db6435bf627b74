"""docs/ranks.md: every guard form and every collective that the analyses know, each form put to them when the page is made."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.ranks import collectives
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.data import rank_names
from codemods.store.project import Project

# Heading -> statements in which `here()` stands, as text; `\n` parts lines.
FORMS: dict[str, tuple[str, ...]] = {
    "Tests": (
        "if rank == 0: here()", "if not rank: here()", "if rank in (-1, 0): here()", "if rank <= 0: here()",
        "if rank > 0: here()", "if rank: here()", "if -1 <= rank <= 0: here()", "if rank == 1: here()",
        "if rank % 8 == 0: here()",
        "if dist.get_rank() == 0: here()", "if dist.get_rank(group) == 0: here()", "if (r := dist.get_rank()) == 0: here()",
        'if int(os.environ["RANK"]) == 0: here()', 'if os.environ.get("RANK") in ("0", None): here()',
        'if os.environ["RANK"] == 0: here()', 'if int(os.environ["SLURM_PROCID"]) == 0: here()',
        'if int(os.environ["LOCAL_RANK"]) == 0: here()', "if args.local_rank in (-1, 0): here()", "if args.rank == 0: here()",
        'if cfg["rank"] == 0: here()', "if trainer.is_global_zero: here()", "if trainer.global_rank == 0: here()",
        "if state.is_world_process_zero: here()", "if trainer.is_world_process_zero(): here()",
        "if state.is_local_process_zero: here()", "if accelerator.is_main_process: here()",
        "if accelerator.is_local_main_process: here()", "if rank_zero_only.rank == 0: here()",
        "if xm.is_master_ordinal(): here()",
        "if rank == 0 and best: here()", "if not dist.is_initialized() or rank == 0: here()", "if save or rank == 0: here()",
        "if dist.is_initialized(): here()",
    ),
    "Places": (
        "if rank == 0: pass\nelse: here()", "rank == 0 and here()", "rank == 0 or here()", "x = here() if rank == 0 else None",
        "[here() for x in xs if rank == 0]", "match rank:\n    case 0: here()", "while rank == 0: here()",
        "if rank != 0: return\nhere()", "if rank != 0: sys.exit()\nhere()",
        "for x in xs:\n    if rank != 0: continue\n    here()", "try:\n    if rank != 0: return\nfinally: here()",
        "with a:\n    if rank != 0: return\nhere()", "if x:\n    if rank != 0: return\nhere()",
        "with accelerator.main_process_first(): here()", "first = rank == 0\nif first: here()",
        "args.first = rank == 0\nif args.first: here()",
        "if rank == 0:\n    def g(): here()",
        "@rank_zero_only\ndef g(): here()", "@accelerator.on_local_main_process\ndef g(): here()",
    ),
}  # fmt: skip
_NAMES = (
    ("The global rank", rank_names.GLOBAL_NAMES),
    ("The local rank", rank_names.LOCAL_NAMES),
    ("A rank within a part of the processes: who passes is not shown", rank_names.GROUP_NAMES),
    ("Only where the file shows processes", rank_names.WEAK_NAMES | rank_names.WEAK_FLAGS),
    ("True on global rank 0", rank_names.ZERO_FLAGS),
    ("True on local rank 0", rank_names.LOCAL_FLAGS),
    ("True where transformers writes, on `args`", rank_names.ARGUMENT_FLAGS),
    ("Decorators for global rank 0", rank_names.ZERO_DECORATORS),
    ("Decorators for local rank 0", rank_names.LOCAL_DECORATORS),
    ("Contexts that every rank enters, one after the other", rank_names.ORDERED_CONTEXTS),
    ("Calls that nobody comes back from", rank_names.EXIT_CALLS),
)
_COLLECTIVES = (
    ("torch.distributed", "`dist.…`, and `DistributedDataParallel(…)`", collectives.TORCH),
    ("Lightning", "`trainer.…`; `save_checkpoint` from 2.1.0", collectives.LIGHTNING_TRAINER),
    ("Lightning", "the read of `trainer.…`; `log_dir` from 1.2", collectives.PROPERTIES),
    ("Lightning", "`trainer.strategy.…` from 1.6, `trainer.training_type_plugin.…` from 1.2 to 1.7", collectives.STRATEGY),
    ("Lightning", "`self.…` of a LightningModule, `log` and `log_dict` with `sync_dist=True` or of a metric",
     frozenset({"all_gather", "log", "log_dict"})),
    ("Fabric", "`fabric.…`", collectives.FABRIC),
    ("transformers", "`trainer.…`", collectives.HF_TRAINER),
    ("Accelerate", "`accelerator.…`", collectives.ACCELERATOR),
    ("torchmetrics", "of a metric that is an attribute", frozenset({"compute", "sync"})),
)  # fmt: skip


def page() -> str:
    """The page in Markdown."""
    out = [
        "# Guards and collectives", "",
        "What the rank analysis knows. The answers in the first two tables are its own, given when this page is made: who comes",
        "to `here()` in a function `main(args, cfg, rank, trainer, state, accelerator)`. A name or an attribute bound to such a",
        "test, a helper, method or property that returns one, and a decorator that calls what it decorates under one, are",
        "followed, into other files too; a member of a base class in another file only if its name has a word of ranks in it.",
        "What cannot be shown is unknown, and unknown never makes a fix safe.", "",
    ]  # fmt: skip
    for heading, forms in FORMS.items():
        out += [f"## {heading}", "", "| written | who comes to `here()` |", "| --- | --- |"]
        out += [f"| {_code(form)} | {reaching(form).value} |" for form in forms]
        out.append("")
    out += [
        'The environment holds texts, and a text is never equal to a number: nobody passes `os.environ["RANK"] == 0`.',
        "From transformers 5.0 on `args.local_rank` is -1 on every rank: all of them pass `in (-1, 0)`, and none `== 0`.", "",
    ]  # fmt: skip
    out += ["## Names", "", "| meaning | names |", "| --- | --- |"]
    out += [f"| {meaning} | {_list(names)} |" for meaning, names in _NAMES]
    out += ["", "## Collectives", "", "| framework | written | names |", "| --- | --- | --- |"]
    out += [f"| {framework} | {written} | {_list(names)} |" for framework, written, names in _COLLECTIVES]
    out += [f"| {package} | `{package}.…` | {_list(names)} |" for package, names in sorted(collectives.PACKAGES.items())]
    out += ["", "A project function that reaches one, through any number of calls and files, counts as one."]
    return "\n".join(out) + "\n"


def reaching(form: str) -> Ranks:
    """The ranks that come to `here()` where a function has `form` as its body."""
    lines = "".join(f"    {line}\n" for line in form.split("\n"))
    source = f"import os, sys\nimport torch.distributed as dist\ndef main(args, cfg, rank, trainer, state, accelerator):\n{lines}"
    project = Project.of({"main.py": source.encode()})
    module = project.module("main.py")
    assert module is not None
    call = next(c for c in module.nodes(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == "here")
    return ranks_at(module, call, project=project)


def _code(form: str) -> str:
    return "<br>".join(f"`{line.replace('    ', '· ')}`" for line in form.split("\n")).replace("|", "\\|")


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
