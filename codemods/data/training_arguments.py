"""The parameters of the Hugging Face Trainer by version of transformers: one table for the fixes, `explain` and the docs.

Measured: the dataclass fields of the last patch release of each minor line from 3.0 to 5.23 were compared, so a version is that
of a minor line. Defaults and replacements are those of the source of the named versions; the errors were seen in runs of 5.23.
"""

from __future__ import annotations

from collections.abc import Mapping

from codemods.runtime.record import field, record

Minor = tuple[int, int]
MEASURED_FROM: Minor = (3, 0)
MEASURED_TO: Minor = (5, 23)


@record
class Replacement:
    """What one value of an old parameter is called now. python and flag: how it is written in code, and behind a flag."""

    name: str
    python: str
    flag: str


@record
class Parameter:
    """A parameter of TrainingArguments, or of the Trainer itself.

    since: the first minor line that has it (MEASURED_FROM: or an older one), None where that was not looked up. gone: the
    first that no longer has it. new: its name now, renamed: since which version that name is there. idle: values (as Python
    writes them) with which it does nothing, so that it can go. values: values with a spelling of their own today.
    note: what changed besides the name.
    """

    name: str
    since: Minor | None = None
    gone: Minor | None = None
    default: str = ""
    new: str = ""
    renamed: Minor | None = None
    idle: tuple[str, ...] = ()
    values: Mapping[str, Replacement] = field(default_factory=dict)
    note: str = ""
    owner: str = "TrainingArguments"


V5: Minor = (5, 0)
_LAST_OF: Mapping[int, Minor] = {3: (3, 5), 4: (4, 57)}  # the last minor line of a major one


def _p(name: str, since: Minor | None, gone: Minor | None = None, default: str = "", **more: object) -> Parameter:
    return Parameter(name, since, gone, default, **more)  # type: ignore[arg-type]


TABLE: tuple[Parameter, ...] = (
    # renamed
    _p("evaluation_strategy", (3, 2), (4, 51), "'no' → None", new="eval_strategy", renamed=(4, 41),
       note="deprecated from 4.41; on versions before 4.41 the new name is a TypeError"),
    _p("evaluate_during_training", MEASURED_FROM, (4, 0), "False", idle=("False",),
       values={"True": Replacement("eval_strategy", '"steps"', "steps")}, renamed=(4, 41)),
    _p("no_cuda", MEASURED_FROM, V5, "False", new="use_cpu", renamed=(4, 32), note="deprecated from 4.32"),
    _p("per_gpu_train_batch_size", MEASURED_FROM, V5, "None", new="per_device_train_batch_size", renamed=(3, 0), idle=("None",),
       note="where both were given, the old one won"),
    _p("per_gpu_eval_batch_size", MEASURED_FROM, V5, "None", new="per_device_eval_batch_size", renamed=(3, 0), idle=("None",),
       note="where both were given, the old one won"),
    _p("include_inputs_for_metrics", (4, 19), V5, "False", idle=("False",),
       values={"True": Replacement("include_for_metrics", '["inputs"]', "inputs")}, renamed=(4, 46)),
    _p("group_by_length", (4, 3), (5, 2), "False", idle=("False",),
       values={"True": Replacement("train_sampling_strategy", '"group_by_length"', "group_by_length")}, renamed=(5, 2)),
    _p("warmup_ratio", (4, 4), (5, 15), "0.0", new="warmup_steps", renamed=(5, 15), idle=("0.0", "0", "None"),
       note="`warmup_steps` takes a share of all steps where it is below 1"),
    _p("push_to_hub_token", None, V5, "None", new="hub_token", renamed=V5, idle=("None",)),
    _p("push_to_hub_model_id", None, V5, "None", new="hub_model_id", renamed=V5, idle=("None",),
       note="`hub_model_id` holds the organisation as well: `name/model`"),
    _p("torchdynamo", None, V5, "None", new="torch_compile_backend", renamed=V5, idle=("None",)),
    _p("adafactor", None, V5, "False", idle=("False",),
       values={"True": Replacement("optim", '"adafactor"', "adafactor")}, renamed=V5),
    _p("gradient_checkpointing", (4, 11), None, "False → None", new="activation_checkpointing", renamed=(5, 23),
       note="a deprecated alias from 5.23, to be removed in 6"),
    _p("gradient_checkpointing_kwargs", (4, 35), None, "None", new="activation_checkpointing_kwargs", renamed=(5, 23),
       note="the default of its `use_reentrant` became False in 5.0"),
    _p("xpu_backend", (4, 11), (4, 32), "None", new="ddp_backend", renamed=(4, 29), idle=("None",)),
    # removed
    _p("logging_dir", MEASURED_FROM, (5, 15), "None", idle=("None",),
       note="now the environment variable TENSORBOARD_LOGGING_DIR"),
    _p("overwrite_output_dir", None, V5, "False", idle=("True", "False"),
       note="was for scripts that look for a checkpoint in the folder"),
    _p("fp16_backend", (4, 1), V5, "'auto'", idle=("'auto'",), note="only torch's own mixed precision is left"),
    _p("half_precision_backend", (4, 13), V5, "'auto'", idle=("'auto'", "'cuda_amp'"),
       note="only torch's own mixed precision is left"),
    _p("fp16_opt_level", None, V5, "'O1'", idle=("'O1'",), note="was apex's"),
    _p("save_safetensors", None, V5, "True", idle=("True",), note="safetensors is the only format"),
    _p("dispatch_batches", (4, 32), (4, 51), "None", idle=("None",), note="now in `accelerator_config={...}`, known from 4.38"),
    _p("split_batches", (4, 35), (4, 51), "None", idle=("None", "False"),
       note="now in `accelerator_config={...}`, known from 4.38"),
    _p("push_to_hub_organization", None, V5, "None", idle=("None",), note="now the first half of `hub_model_id`"),
    _p("past_index", None, V5, "-1", idle=("-1",)),
    _p("ray_scope", None, V5, "'last'", idle=("'last'",)),
    _p("use_mps_device", None, V5, "False", idle=("True", "False"), note="MPS is taken where it is there"),
    _p("tpu_num_cores", None, V5, "None", idle=("None",)),
    _p("tpu_metrics_debug", None, V5, "False", idle=("False",), note="now `debug=\"tpu_metrics_debug\"`"),
    _p("use_legacy_prediction_loop", None, V5, "False", idle=("False",)),
    _p("jit_mode_eval", None, V5, "False", idle=("False",)),
    _p("use_ipex", (4, 20), (4, 57), "False", idle=("False",)),
    _p("sharded_ddp", (4, 1), (4, 35), "''", idle=("''", "False", "None"), note="FSDP takes its place"),
    _p("include_tokens_per_second", None, V5, "False", idle=("False",)),
    _p("mp_parameters", None, V5, "''", idle=("''",), note="was SageMaker's"),
    _p("fsdp_min_num_params", None, V5, "0", idle=("0",), note="now `min_num_params` in `fsdp_config`"),
    _p("fsdp_transformer_layer_cls_to_wrap", None, V5, "None", idle=("None",),
       note="now `transformer_layer_cls_to_wrap` in `fsdp_config`"),
    # there, and otherwise than before
    _p("ddp_find_unused_parameters", (4, 3), None, "None",
       note="None is on, but for a `PreTrainedModel` with checkpointing, for which it is off"),
    _p("ddp_bucket_cap_mb", (4, 15), None, "None", note="25 is what torch takes anyway: it changes nothing"),
    _p("ddp_broadcast_buffers", (4, 31), None, "None"),
    _p("ddp_static_graph", (5, 6), None, "None"),
    _p("ddp_timeout", (4, 22), None, "1800", note="not handed on with `use_cpu=True`"),
    _p("ddp_backend", (4, 29), None, "None"),
    _p("dataloader_num_workers", (3, 3), None, "0", note="for each process"),
    _p("dataloader_pin_memory", (4, 3), None, "True", note="off with `use_cpu=True`"),
    _p("dataloader_persistent_workers", (4, 36), None, "False", note="an error with 0 workers, when the loader is made"),
    _p("dataloader_prefetch_factor", (4, 38), None, "None", note="an error with 0 workers"),
    _p("dataloader_multiprocessing_context", (5, 15), None, "None"),
    _p("logging_steps", MEASURED_FROM, None, "500", note="0 is an error"),
    _p("logging_strategy", (4, 4), None, "'steps'"),
    _p("save_strategy", (4, 4), None, "'steps'"),
    _p("logging_nan_inf_filter", (4, 11), None, "True", note="two waits for the device in each micro step"),
    _p("average_tokens_across_devices", (4, 46), None, "False → True", note="True from 4.54: one collective more a step"),
    _p("save_total_limit", MEASURED_FROM, None, "None",
       note="counts every checkpoint in the folder, those of other runs as well"),
    _p("eval_strategy", (4, 41), None, "'no'"),
    _p("local_rank", MEASURED_FROM, None, "-1",
       note="written with the process's own rank before 5.0, and never from 5.0 on: -1 everywhere"),
    _p("use_cpu", (4, 32), None, "False"),
    _p("activation_checkpointing", (5, 23), None, "None"),
    _p("prediction_loss_only", (3, 1), None, "False"),
    _p("batch_eval_metrics", (4, 41), None, "False", note="`compute_metrics` then needs a parameter `compute_result`"),
    _p("report_to", (4, 3), None, "None → 'none'", note="from 5.0 no logger reports unless it is named"),
    _p("include_for_metrics", (4, 46), None, "[]"),
    _p("train_sampling_strategy", (5, 2), None, "'random'"),
    _p("accelerator_config", (4, 38), None, "None"),
    # the Trainer's own
    _p("tokenizer", (3, 1), V5, "None", new="processing_class", renamed=(4, 46), idle=("None",),
       note="deprecated from 4.46", owner="Trainer"),
    _p("processing_class", (4, 46), None, "None", owner="Trainer"),
    _p("preprocess_logits_for_metrics", (4, 17), None, "None", owner="Trainer"),
    _p("compute_loss_func", (4, 46), None, "None", owner="Trainer"),
    _p("optimizer_cls_and_kwargs", (4, 47), None, "None", owner="Trainer"),
)  # fmt: skip

OLD: Mapping[str, Parameter] = {p.name: p for p in TABLE if (p.gone or p.new) and p.owner == "TrainingArguments"}
OLD_OF_TRAINER: Mapping[str, Parameter] = {p.name: p for p in TABLE if (p.gone or p.new) and p.owner == "Trainer"}

# Fields of TrainingArguments by which a mapping or a command is known to be one of its own (5.23, and older names).
FIELDS: frozenset[str] = frozenset({p.name for p in TABLE if p.owner == "TrainingArguments"}) | frozenset(
    {"output_dir", "per_device_train_batch_size", "per_device_eval_batch_size", "num_train_epochs", "max_steps",
     "learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps", "optim", "optim_args", "weight_decay",
     "adam_beta1", "adam_beta2", "adam_epsilon", "gradient_accumulation_steps", "max_grad_norm",
     "label_smoothing_factor", "bf16", "fp16", "bf16_full_eval",
     "fp16_full_eval", "tf32", "torch_compile", "torch_compile_backend", "neftune_noise_alpha", "logging_first_step", "log_level",
     "disable_tqdm", "run_name", "eval_steps", "eval_delay", "eval_on_start", "eval_accumulation_steps", "save_only_model",
     "save_steps", "push_to_hub", "hub_token", "hub_model_id", "hub_strategy", "hub_private_repo", "load_best_model_at_end",
     "metric_for_best_model", "greater_is_better", "ignore_data_skip", "seed", "data_seed", "dataloader_drop_last",
     "remove_unused_columns", "label_names", "length_column_name", "fsdp", "fsdp_config", "deepspeed", "do_train", "do_eval",
     "do_predict", "resume_from_checkpoint", "auto_find_batch_size"}
)  # fmt: skip


def text_of(version: Minor | None) -> str:
    return f"{version[0]}.{version[1]}" if version else ""


def last_with(parameter: Parameter) -> str:
    """The last minor line that has the parameter, for people; "" where it is still there."""
    if parameter.gone is None:
        return ""
    major, minor = parameter.gone
    return text_of((major, minor - 1) if minor else _LAST_OF[major - 1])


def now_of(parameter: Parameter) -> str:
    """What stands in its place, in Markdown; "" where the parameter is what it was."""
    if parameter.new:
        return f"`{parameter.new}` ({text_of(parameter.renamed)}+)"
    if parameter.values:
        new = (f"`{r.name}={r.python}` for {value}" for value, r in parameter.values.items())
        return f"{', '.join(new)} ({text_of(parameter.renamed)}+)"
    return "gone" if parameter.gone else ""


def row(parameter: Parameter) -> str:
    """A line of a Markdown table: name, first, last, default, now, note."""
    first = "≤ 3.0" if parameter.since == MEASURED_FROM else text_of(parameter.since) or "–"
    default = f"`{parameter.default}`".replace(" → ", "` → `") if parameter.default else ""
    cells = (f"`{parameter.name}`", first, last_with(parameter) or "there", default, now_of(parameter), parameter.note)
    return f"| {' | '.join(cells)} |"
