"""What to say of one setting of the flag: a finding's fields, without its codemod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codemods.analysis.model.flag_setting import Setting
from codemods.api.findings import Applicability, Edit, Evidence
from codemods.runtime.record import record


@record
class Answer:
    """One answer. The finding points at the setting's place; edits only where the level lets them be made.

    open: it only says what the source leaves open, or that the flag is needed as it stands: there is nothing to do about it.
    """

    setting: Setting
    message: str
    level: Applicability = Applicability.DISPLAY
    edits: Sequence[Edit] = ()
    evidence: Iterable[Evidence] = ()
    reason: str = ""
    open: bool = False
