"""What a setting of the flag comes to in the versions that the project allows: the defaults differ by framework and version."""

from __future__ import annotations

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper
from codemods.data.find_unused_parameters import LIGHTNING_FIRST_OFF_FROM, LIGHTNING_OFF_FROM, LIGHTNING_ON_FROM
from codemods.store.project import Project


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


def is_on(project: Project, wrapper: Wrapper, setting: Setting) -> bool:
    """True where the flag is on, by the default of Lightning's first versions too: they have no name to switch it off by."""
    if effect_of(project, wrapper, setting) is State.ON:
        return True
    by_itself = setting.state is State.DEFAULT and wrapper.framework is Framework.LIGHTNING
    pin = lightning_pin(project, near=wrapper.module.path) if by_itself else None
    return pin is not None and pin.surely_below(LIGHTNING_FIRST_OFF_FROM)
