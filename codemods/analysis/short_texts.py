"""Texts of a program as a message shows them: on one line, cut between two words where they are long."""

from __future__ import annotations

import ast
import re

from codemods.files.source import SourceModule


def shortened(text: str, most: int = 60) -> str:
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    end = most - 3
    word = re.search(r"\w+$", text[:end]) if text[end].isalnum() or text[end] == "_" else None
    if word is not None and word.start() > most // 2:
        end = word.start()
    return text[:end] + "..."


def short(module: SourceModule, node: ast.AST) -> str:
    """The text of a node."""
    return shortened(module.text_of(node))


def shorter(module: SourceModule, node: ast.AST) -> str:
    """The text of a node that stands in the middle of a sentence."""
    return shortened(module.text_of(node), 50)
