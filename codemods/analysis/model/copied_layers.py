"""Layers handed to torch's `TransformerDecoder(layer, n)`, which works with copies: a layer that is kept is left over."""

from __future__ import annotations

from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule

_LAYER = {"TransformerDecoder": "decoder_layer", "TransformerEncoder": "encoder_layer"}


def copied_by(module: SourceModule, line: int, attribute: str) -> str:
    """`nn.TransformerDecoder` for `self.layer`, made in this line, that its class hands to one; "" for any other."""
    for call in module.calls_named(*_LAYER):
        name = last(qualified(module, call.func))
        if name not in _LAYER or not qualified(module, call.func).startswith("torch.nn."):
            continue
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == _LAYER[name]), None)
        if dotted(given) != f"self.{attribute}":
            continue
        owner = module.class_of(call)
        if owner is not None and owner.lineno <= line <= (owner.end_lineno or 0):
            return f"nn.{name}"
    return ""
