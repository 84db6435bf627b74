"""Programs in which each rank trains a model of its own: nothing wraps it, and no gradients are reduced by hand.

The ranks may put their weights together now and then; what the optimizer holds, and the weights in between, are each rank's own.
"""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.files.without_docstrings import without_words
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_JOINS = lazy(rb"(?<!def )\binit_process_group\(")
_TRAINS = lazy(rb"\.backward\(")
# What keeps the models of the ranks equal, or may hand out one that is kept so; and what works on gradients by hand.
_KEEPS_EQUAL = lazy(
    rb"(?i:ddp|parallel(?!ism)|fsdp|fully_?shard|shard|replicat|wrap|lightning|accelerat|fabric|deepspeed|horovod|hvd|bagua|megatron|"
    rb"coloss|torch_xla|fairseq|composer|mmcv|mmengine|detectron)|\.prepare\(|Trainer\(|register_(?:comm_|post_|full_backward_)?hook|"
    rb"\.grad\b(?![ ]*\()|(?i:(?:average|reduce|sync\w*|gather)_?\w*grad)|DistributedOptimizer"
)


def trains_own_models(project: Project, program: str) -> bool:
    """True for the file of a program that joins its group and trains by itself, where no file of it keeps models equal."""
    return project.keep(("models of each rank", program), lambda: _trains_own(project, program))


def _trains_own(project: Project, program: str) -> bool:
    own = without_words(project.read(program) or b"")
    if b"__main__" not in own or is_test_file(program) or not _JOINS.search(own) or not _TRAINS.search(own):
        return False
    texts = (without_words(project.read(path) or b"") for path in sorted(whole_program(project, program)))
    return not any(_KEEPS_EQUAL.search(text) for text in texts)
