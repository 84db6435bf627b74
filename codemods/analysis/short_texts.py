"""Texts of a program as a message shows them: on one line, cut where they are long."""

from __future__ import annotations

import ast

from codemods.files.source import SourceModule


def shortened(text: str, most: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def short(module: SourceModule, node: ast.AST) -> str:
    """The text of a node."""
    return shortened(module.text_of(node))


def shorter(module: SourceModule, node: ast.AST) -> str:
    """The text of a node that stands in the middle of a sentence."""
    return shortened(module.text_of(node), 50)
