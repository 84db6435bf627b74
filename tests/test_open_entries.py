"""Entries of dicts in fields: small programs, and what is known of their `probe(...)`."""

from __future__ import annotations

import pytest

from codemods.analysis.variance.values import Cause
from tests.test_variance import probed

# A field with a time under one key; `note` gives another field's entries anew, under any key.
_SETTINGS = """
class A:
    def __init__(self, cfg):
        self.cfg = {"opt": cfg, "run": {"at": time.time()}}
        self.late = {"opt": cfg}

    def note(self, name):
        self.late["at"] = time.time()
        self.late[name] = time.time()

"""

# A method of the set-up gives one entry of settings of which nothing is known anew.
_GIVEN = """
class A:
    def __init__(self, cfg):
        self.cfg = cfg
        self.note()

    def note(self):
        self.cfg["run"]["at"] = time.time()

"""

DIFFER = {
    "an own entry of settings that a caller hands over": (
        _GIVEN + "    def f(self):\n        probe(self.cfg['run'])", Cause.PLACE
    ),
    "settings with an own entry, as a whole": (_GIVEN + "    def f(self):\n        probe(self.cfg)", Cause.PLACE),
    "another entry of settings that differ themselves": (
        _GIVEN + "    def f(self):\n        probe(self.cfg['opt'])\n\nA(rows[rank::world]).f()", Cause.DATA
    ),
    "an entry of settings of which any may be given anew": (
        _GIVEN.replace('["run"]["at"]', "[name]") + "    def f(self):\n        probe(self.cfg['opt'])", Cause.PLACE
    ),
    "an own entry of a field, in another method": (_SETTINGS + "    def f(self):\n        probe(self.cfg['run'])", Cause.PLACE),
    "an own entry of a field, got": (_SETTINGS + "    def f(self):\n        probe(self.cfg.get('run', 0))", Cause.PLACE),
    "an own entry of a field, two keys down": (_SETTINGS + "    def f(self):\n        probe(self.cfg['run']['at'])", Cause.PLACE),
    "an own entry of a field that another method fills": (
        "class A:\n    def __init__(self):\n        self.sums = {'loss': 0, 'count': 0}\n"
        "    def step(self):\n        for row in rows[rank::world]:\n            self.sums['loss'] = self.sums['loss'] + row\n"
        "    def f(self):\n        probe(self.sums['loss'])",
        Cause.DATA,
    ),
    "an own inner entry of a field that another method gives anew": (
        "class A:\n    def __init__(self):\n        self.sums = {'of': {'loss': 0}}\n"
        "    def step(self):\n        for row in rows[rank::world]:\n            self.sums['of']['loss'] = row\n"
        "    def f(self):\n        probe(self.sums['of']['loss'])",
        Cause.DATA,
    ),
    "an own value in the place of an entry": (
        _SETTINGS + "    def f(self):\n        probe(self.cfg.get('opt', time.time()))", Cause.PLACE
    ),
    "an entry of a field that is filled under any key": (
        _SETTINGS + "    def f(self):\n        probe(self.late['opt'])", Cause.PLACE
    ),
}

SAME = {
    "another entry of settings that a caller hands over": _GIVEN + "    def f(self):\n        probe(self.cfg['opt'])",
    "another entry of them, got": _GIVEN + "    def f(self):\n        probe(self.cfg.get('opt', 1))\n\nA(load()).f()",
    "another entry of them, in the method of an heir": (
        _GIVEN + "class B(A):\n    def f(self):\n        if self.cfg['opt']:\n            n = 1\n"
        "        else:\n            n = 2\n        probe(n)"
    ),
    "a counter that starts where an entry of them says, and goes up by one a batch": (
        _GIVEN + "    def f(self):\n        self.step = self.start()\n        for batch in loader:\n            self.step += 1\n"
        "            probe(self.step > self.cfg['opt'])\n"
        "    def start(self):\n        state = torch.load(self.cfg['file'])\n        if self.cfg['anew'] == False:\n"
        "            step = state['step']\n        else:\n            step = 0\n        return step"
    ),
    "another entry of a field, in another method": _SETTINGS + "    def f(self):\n        probe(self.cfg['opt'])\n\nA(3).f()",
    "another entry of a field, got": _SETTINGS + "    def f(self):\n        probe(self.cfg.get('opt', 1))\n\nA(3).f()",
    "another entry of a field, two keys down": (
        _SETTINGS + "    def f(self):\n        probe(self.cfg['opt'].get('every', 1))\n\nA({'every': 3}).f()"
    ),
    "an inner entry of a field beside an own one": (
        "class A:\n    def __init__(self):\n        self.cfg = {'run': {'at': time.time(), 'every': 3}}\n"
        "    def f(self):\n        probe(self.cfg['run']['every'])"
    ),
    "another entry of a field than the ones that two methods change": (
        "class A:\n    def __init__(self, cfg):\n        self.cfg = {'opt': cfg, 'run': time.time(), 'sum': 0}\n"
        "        self.late()\n"
        "    def late(self):\n        self.cfg['plan']['every'] = self.cfg['plan']['steps']\n"
        "    def count(self):\n        for row in rows[rank::world]:\n            self.cfg['sum'] += row\n"
        "    def f(self):\n        probe(self.cfg['opt'])\n\nA(3).f()"
    ),
    "another entry of a field that a base sets": (
        _SETTINGS + "class B(A):\n    def f(self):\n        probe(self.cfg['opt']['every'])\n\nB({'every': 3}).f()"
    ),
}


@pytest.mark.parametrize("name", DIFFER)
def test_an_entry_that_differs(name: str) -> None:
    program, cause = DIFFER[name]
    value = probed(program)
    assert value.differs and value.cause is cause


@pytest.mark.parametrize("name", SAME)
def test_an_entry_that_is_the_same(name: str) -> None:
    assert not probed(SAME[name]).differs
