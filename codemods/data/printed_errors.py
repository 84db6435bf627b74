"""What torch and Lightning print where a fix is wrong, as seen in two-process runs."""

from __future__ import annotations

UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one.",
    "It looks like your LightningModule has parameters that were not used in producing the loss returned by training_step.",
)
# gloo, then NCCL
WAITING = ("Timed out waiting …ms for recv operation to complete", "Watchdog caught collective operation timeout")
HALF_WRITTEN = ("FileNotFoundError", "PytorchStreamReader failed")
