"""The hook tables of Lightning and the HF Trainer: who calls a hook, on which ranks, at which level it logs.

Measured on Lightning 2.6.6, 1.9.5 and 1.6.5 with two processes; names from `lightning.pytorch.core.hooks` and `.callbacks`.
"""

from __future__ import annotations

# Hooks whose value or effect every rank needs. Decorated with rank_zero_only, the other ranks diverge, crash or hang.
NEEDED_ON_EVERY_RANK = frozenset(
    {
        "training_step", "validation_step", "test_step", "predict_step", "forward", "configure_optimizers",
        "configure_model", "configure_sharded_model", "configure_callbacks", "configure_gradient_clipping", "setup",
        "teardown", "prepare_data", "train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader",
        "optimizer_step", "optimizer_zero_grad", "lr_scheduler_step", "backward", "manual_backward", "on_fit_start",
        "transfer_batch_to_device", "on_before_batch_transfer", "on_after_batch_transfer", "state_dict",
        "load_state_dict", "on_load_checkpoint", "on_save_checkpoint", "on_before_zero_grad", "on_before_backward",
        "on_after_backward", "on_before_optimizer_step",
    }
)  # fmt: skip

# Hooks that only observe: a body of host-side input and output may be left to rank 0.
OBSERVERS = frozenset(
    {f"on_{stage}_{edge}" for stage in ("train", "validation", "test", "predict") for edge in ("start", "end")}
    | {f"on_{stage}_epoch_{edge}" for stage in ("train", "validation", "test", "predict") for edge in ("start", "end")}
    | {f"on_{stage}_batch_{edge}" for stage in ("train", "validation", "test", "predict") for edge in ("start", "end")}
    | {"on_fit_end", "on_sanity_check_start", "on_sanity_check_end", "on_epoch_start", "on_epoch_end"}
)
# Hooks that not all ranks run: one process of a node makes the data, and the rank that raised reports it (Lightning raises again
# there, and the launcher ends the others; `trainer/call.py`, `_call_and_handle_interrupt`).
ONE_PROCESS_HOOKS = frozenset({"prepare_data", "on_exception", "on_keyboard_interrupt"})

EVALUATION_STEPS = frozenset({"validation_step", "test_step"})
# Hooks whose self.log defaults to the epoch level, evaluation side (lightning.pytorch fx_validator).
EVALUATION_HOOKS = EVALUATION_STEPS | frozenset(
    f"on_{stage}_{edge}" for stage in ("validation", "test") for edge in ("epoch_start", "epoch_end", "batch_start", "batch_end")
) | frozenset({"validation_epoch_end", "test_epoch_end", "validation_step_end", "test_step_end"})  # fmt: skip
# No callback reads a monitor there: ModelCheckpoint, EarlyStopping and the schedulers do so in `fit` alone, and a test is no part
# of it.
TEST_HOOKS = frozenset(
    f"on_test_{edge}" for edge in ("start", "end", "epoch_start", "epoch_end", "batch_start", "batch_end")
) | frozenset({"test_step", "test_step_end", "test_epoch_end"})  # fmt: skip
TRAINING_HOOKS = frozenset(
    {"training_step", "training_step_end", "on_train_batch_start", "on_train_batch_end", "on_train_epoch_start",
     "on_train_epoch_end", "training_epoch_end", "on_train_start", "on_before_backward", "on_after_backward",
     "on_before_optimizer_step", "optimizer_step", "on_before_zero_grad"}
)  # fmt: skip
TRAINING_EPOCH_HOOKS = frozenset({"on_train_epoch_start", "on_train_epoch_end", "training_epoch_end", "on_train_start"})

# What a BasePredictionWriter does with the predictions: each rank is handed those of its own batches.
WRITER_HOOKS = frozenset({"write_on_batch_end", "write_on_epoch_end"})

LIGHTNING_HOOKS = WRITER_HOOKS | NEEDED_ON_EVERY_RANK | OBSERVERS | EVALUATION_HOOKS | TRAINING_HOOKS

# transformers.TrainerCallback: every one runs on every rank.
HF_CALLBACK_HOOKS = frozenset(
    {
        "on_init_end", "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_step_begin", "on_step_end",
        "on_substep_end", "on_pre_optimizer_step", "on_optimizer_step", "on_evaluate", "on_predict", "on_save", "on_log",
        "on_prediction_step", "on_push_begin",
    }
)  # fmt: skip
