"""All faults that programs are made with, and those of their spellings that no codemod tells of."""

from __future__ import annotations

from tests.generated import data, files_and_meetings, models, numbers, starts

FAULTS = (*files_and_meetings.FAULTS, *numbers.FAULTS, *data.FAULTS, *models.FAULTS, *starts.FAULTS)

# (code, frame, which of the wrong ways) -> why it is missed in every shape.
MISSED = {
    ("DDP404", "raw", 0): "`os.listdir` in the order of the file system, which is the same for all ranks of one machine",
    ("DDP414", "raw", 0): "a draw that is added to the loss is not taken for noise of the samples",
    ("DDP503", "raw", 1): "a bare state without a key is not tied to the load of it by the path alone",
}
