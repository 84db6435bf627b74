"""The names that stand for the rank or a test of it in a project, for the byte gate, and the numbers of started processes."""

from __future__ import annotations

from codemods.analysis.ranks.bound_to_rank import bound_to_rank
from codemods.analysis.ranks.rank_attributes import rank_attributes
from codemods.analysis.ranks.spawned import numbered_elsewhere
from codemods.store.project import Project


def gate_names(project: Project) -> frozenset[str]:
    """Names, and `work(device` for one that counts where `def work(` stands alone."""
    return bound_to_rank(project) | rank_attributes(project) | numbered_elsewhere(project)
