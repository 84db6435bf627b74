"""What a setting of the flag comes to in the versions that the project allows: the defaults differ by framework and version."""

from __future__ import annotations

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper
from codemods.data.find_unused_parameters import LIGHTNING_OFF_FROM, LIGHTNING_ON_FROM
from codemods.project import Project


def effect_of(project: Project, wrapper: Wrapper, setting: Setting) -> State:
    """On, off or unknown. The Hugging Face Trainer switches on what nobody set, unless it checkpoints a model of its own."""
    if setting.state is not State.DEFAULT:
        return setting.state
    if wrapper.framework is Framework.HF:
        return State.ON
    if wrapper.framework is not Framework.LIGHTNING:
        return State.OFF
    pin = lightning_pin(project, near=wrapper.module.path)
    if pin is None:
        return State.UNKNOWN
    if pin.surely_at_least(LIGHTNING_OFF_FROM):
        return State.OFF
    return State.ON if pin.surely_at_least(LIGHTNING_ON_FROM) and pin.surely_below(LIGHTNING_OFF_FROM) else State.UNKNOWN
