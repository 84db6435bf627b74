"""What a number of one rank is used for, where it is shown or compared."""

from __future__ import annotations

from codemods.analysis.variance.number_roles import Role, Source


def role_of(source: Source, *, decides: bool) -> Role:
    """A number of the training that nothing goes by is a curve: an accuracy of an epoch as well as a loss.

    It is an estimate over a share that is dealt anew, and nobody takes it for the result of the run.
    """
    if decides:
        return Role.DECIDES
    return Role.CURVE if source.trains else Role.RESULT
