"""Layers of other packages than torch whose result depends on all of their parameters in every step, and those without any.

Each was run in training mode, forward and backward, six times: timm 1.0.10, torchvision 0.28, einops 0.8.2 on torch 2.13.
DropPath and its kin multiply by a mask, so the parameters of what they drop stay in the graph.
"""

from __future__ import annotations

WHOLE = {
    ("timm.layers.", "timm.models.layers."): frozenset(
        {"Mlp", "GluMlp", "SwiGLU", "SwiGLUPacked", "GatedMlp", "ConvMlp", "GlobalResponseNormMlp", "PatchEmbed", "LayerNorm",
         "LayerNorm2d", "RmsNorm", "GroupNorm", "GroupNorm1", "SqueezeExcite", "EcaModule", "ConvNormAct", "BatchNormAct2d",
         "AttentionPoolLatent"}
    ),
    ("timm.models.vision_transformer.",): frozenset({"Attention", "Block", "LayerScale", "Mlp", "PatchEmbed"}),
    ("torchvision.ops.",): frozenset({"MLP", "Conv2dNormActivation", "SqueezeExcitation"}),
    ("einops.layers.torch.",): frozenset({"EinMix"}),
}  # fmt: skip
BARE = {
    ("timm.layers.", "timm.models.layers.", "timm.models.vision_transformer."): frozenset(
        {"DropPath", "DropBlock2d", "PatchDropout"}
    ),
    ("torchvision.ops.",): frozenset({"StochasticDepth", "DropBlock2d", "FrozenBatchNorm2d"}),
    ("einops.layers.torch.",): frozenset({"Rearrange", "Reduce"}),
}


def has_parameters(name: str) -> bool | None:
    """True for a layer all of whose parameters take part in every step, False for one without any, None for others."""
    end = name.rpartition(".")[2]
    if any(name.startswith(homes) and end in classes for homes, classes in WHOLE.items()):
        return True
    return False if any(name.startswith(homes) and end in classes for homes, classes in BARE.items()) else None
