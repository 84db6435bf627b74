"""What `DataLoader(data, **options)` is given, where the same function writes the options out."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.loading.written_options import written_options
from tests.places import module_of


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("options = {'shuffle': True}", {"shuffle"}),
        ("options = dict(shuffle=True, batch_size=8)", {"shuffle", "batch_size"}),
        (
            "options = {'shuffle': True}\n    if gpu:\n        more = {'pin_memory': True}\n        options.update(more)",
            {"shuffle", "pin_memory"},
        ),
        ("options = {}\n    options['shuffle'] = True", {"shuffle"}),
    ],
)
def test_options_that_are_written_out(lines: str, keys: set[str]) -> None:
    assert (_given(lines) or {}).keys() == keys


@pytest.mark.parametrize(
    "lines",
    [
        "options = settings()",  # nobody sees what it gives
        "options = {'shuffle': True}\n    fill(options)",  # it may put a sampler in
        "options = {'shuffle': True}\n    if several:\n        options['sampler'] = sampler",  # in some runs
        "options = {'shuffle': True}\n    options.update(settings)",
        "options = {**settings, 'shuffle': True}",
        "options = {'shuffle': True}\n    options[key] = value",
        "options = {'shuffle': True} if gpu else settings",
    ],
)
def test_options_that_may_hold_more(lines: str) -> None:
    assert _given(lines) is None


def _given(lines: str) -> dict[str, ast.expr] | None:
    module = module_of(f"def make(data, gpu, settings):\n    {lines}\n    return DataLoader(data, **options)\n")
    return written_options(module, module.calls_named("DataLoader")[0])
