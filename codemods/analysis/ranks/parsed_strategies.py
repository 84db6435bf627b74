"""Does anybody give a Trainer made by `Trainer.from_argparse_args(args)` a strategy? Its options stand in commands then."""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.documented_starts import starts
from codemods.files.text_file import NOTEBOOK, SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TEXTS = (*SHELL_KINDS, NOTEBOOK, ".md", ".rst", ".txt", ".job", ".yaml", ".yml", ".json", ".toml", ".cfg", "Dockerfile")
_OF_THE_FORGE = ".github/"  # a workflow has a strategy of its own
# `--strategy ddp`, `strategy: ddp`, `args.strategy = "ddp"`, and what Lightning reads from the environment.
_SAYS = lazy(
    rb"(?i)--(?:strategy|distributed[_-]backend|plugins|num[_-]nodes|"
    rb"accelerator(?![ =\"',]+(?:default[ ]?=[ ]?[\"'])?(?:gpu|cuda|auto|cpu)\b))\b"
    rb"|(?<![\w-])(?:strategy|distributed_backend|plugins|num_nodes|accelerator)[\"']?\]?[ ]*(?:=(?!=)|:)"
    rb"|PL_TRAINER_"
)
_WORDS = (b"trategy", b"TRATEGY", b"distributed_backend", b"plugins", b"num_nodes", b"num-nodes", b"accelerator", b"PL_TRAINER_")
_DEVICES = frozenset({"gpus", "devices"})


def is_given_no_strategy(project: Project, *, several: bool = False) -> bool:
    """True where commands of the texts name the devices of a Trainer, and nothing in the project names a strategy or nodes.

    Without such a command nobody is seen to say how the program is run on several devices, unless the program's own options do
    (`several`).
    """
    named = several or any(s.flags & _DEVICES and not s.launched for s in starts(project))
    return named and project.keep("parsed Trainers have no strategy", lambda: _is_given_none(project))


def _is_given_none(project: Project) -> bool:
    found = {p for word in _WORDS for kinds in ((".py",), _TEXTS) for p in project.files_containing(word, kinds=kinds)}
    told = (p for p in found if not p.startswith(_OF_THE_FORGE) and not is_test_file(p))
    return not any(_SAYS.search(project.read_text(p) or b"") for p in told)
