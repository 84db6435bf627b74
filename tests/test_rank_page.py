"""The page of guards and collectives says what the analysis says."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from ddpfix.rank_page import FORMS, page, reaching


@pytest.mark.parametrize(
    ("form", "ranks"),
    [
        ("if rank == 0: here()", Ranks.ZERO),
        ("if rank != 0: return\nhere()", Ranks.ZERO),
        ("if rank == 0: pass\nelse: here()", Ranks.OTHERS),
        ('if int(os.environ["LOCAL_RANK"]) == 0: here()', Ranks.LOCAL_ZERO),
        ("if dist.is_initialized(): here()", Ranks.ALL),
        ('if os.environ["RANK"] == 0: here()', Ranks.UNKNOWN),
    ],
)
def test_a_form_of_the_page(form: str, ranks: Ranks) -> None:
    assert form in [f for forms in FORMS.values() for f in forms]
    assert reaching(form) is ranks


def test_each_form_has_a_row_with_its_answer() -> None:
    rows = [line for line in page().splitlines() if line.endswith(" |") and "here()" in line and "written" not in line]
    forms = [f for forms in FORMS.values() for f in forms]
    assert [row.split(" | ")[-1].removesuffix(" |") for row in rows] == [reaching(f).value for f in forms]


def test_collectives_are_on_the_page() -> None:
    assert all(f"`{name}`" in page() for name in ("all_reduce", "save_checkpoint", "callback_metrics", "wait_for_everyone"))
