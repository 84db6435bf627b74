"""All faults that programs are made with."""

from __future__ import annotations

from tests.generated import data, files_and_meetings, models, numbers, starts

FAULTS = (*files_and_meetings.FAULTS, *numbers.FAULTS, *data.FAULTS, *models.FAULTS, *starts.FAULTS)
