"""Names that `from … import *` of a package brings, as far as the catalogue asks for them.

Seen in the sources of torch 2.13 (`torch.utils.data.__all__`) and MONAI 1.5 (`monai/data/__init__.py`, which has no `__all__`).
"""

from __future__ import annotations

_LOADING = frozenset({"DataLoader", "DistributedSampler"})

BROUGHT = {
    "monai.data": _LOADING,
    "torch.utils.data": _LOADING | {"RandomSampler", "SequentialSampler", "BatchSampler", "WeightedRandomSampler"},
}
# Roots of packages whose star imports bring none of these names under another meaning.
APART = frozenset({"math", "monai", "numpy", "os", "torch", "torchvision", "typing"})
