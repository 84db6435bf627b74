"""One line a finding, without marks and reasons: what editors and `grep` take."""

from __future__ import annotations

from ddpfix.escaping import harmless
from ddpfix.outputs.answer import Answer
from ddpfix.outputs.text import flat


def document(answer: Answer) -> str:
    rows = (
        f"{p.shown(f.path)}:{f.where}:{f.span.column + 1}: {f.code} {flat(f.message)}" for p, f in answer.rows()
    )
    return "".join(f"{harmless(row)}\n" for row in rows)
