"""Names by which the analysis of what differs between the ranks knows calls and objects: torch, Lightning, Accelerate, Python.

Sources: the documentation of torch 2.13 (`torch.distributed`, `torch.utils.data`), Accelerate 1.15, Lightning 2.6 and Python
3.11; what a collective gives to each rank was measured with two processes.
"""

from __future__ import annotations

import re

from codemods.runtime.lazy_pattern import lazy

# Collectives that leave the same value on every rank, in the argument of that position.
IN_PLACE = {
    "all_reduce": 0, "broadcast": 0, "all_gather": 0, "all_gather_into_tensor": 0, "all_gather_object": 0,
    "broadcast_object_list": 0, "all_reduce_coalesced": 0, "gather": 1, "gather_object": 1, "allreduce_": 0,
}  # fmt: skip
# Those that give it to one rank alone: what the others hold then is no number of anybody.
TO_ONE_RANK = frozenset({"reduce"})
# The argument by which transformers' generation goes on until all ranks are done: for weights that are shared out over them.
SHARDED_GENERATION = "synced_gpus"
# Calls of a project that nothing shows the inside of: by these words they give everyone the same.
SAYS_REDUCED = lazy(
    r"(^|_)(all_?reduce\w*|reduce|reduced|reduce_\w+|all_?gather\w*|gather|gather_\w+|broadcast\w*|bcast|sync|synchronize\w*|sync_\w+|\w+_across_\w+"
    r"|across_\w+|average_tensor\w*|dist_\w*(mean|sum|avg)|pmean|global_(mean|sum|avg))$|_(reduce|sync|across_processes)(_|$)",
    re.I,
)
# Questions that the ranks answer together, by the method and what it is asked of: Determined's (the chief asks, and tells the
# others, unless it is set up otherwise), Accelerate's, Megatron's, and the one of JAX.
AGREED = lazy(
    r"(^|\.)(preempt(_context)?\.should_preempt|check_trigger|signals_received|reached_preemption_sync_point)$"
)
OWN_PREEMPTION = b"WorkersAskMaster"
HOST_PACKAGES = frozenset(
    {"functools", "itertools", "einops", "numpy", "pandas", "jax", "tensorflow", "operator", "re", "scipy", "sklearn",
     "string", "threading", "queue", "asyncio", "multiprocessing", "cv2", "tf", "jnp"}
)  # fmt: skip

# What a clock, a random number or the machine says: each process has its own.
CLOCKS = frozenset(
    {"time.time", "time.monotonic", "time.perf_counter", "time.process_time", "datetime.datetime.now", "datetime.now",
     "datetime.datetime.utcnow", "datetime.datetime.today", "time.time_ns", "time.perf_counter_ns", "timeit.default_timer"}
)  # fmt: skip
OWN_ANSWERS = frozenset(
    {"socket.gethostname", "platform.node", "os.getpid", "uuid.uuid4", "uuid.uuid1", "torch.cuda.memory_allocated",
     "torch.cuda.max_memory_allocated", "torch.cuda.memory_reserved", "psutil.virtual_memory", "torch.cuda.mem_get_info",
     "secrets.token_hex", "tempfile.mkdtemp", "tempfile.mkstemp", "tempfile.gettempdir", "select.select",
     "shutil.disk_usage", "wandb.util.generate_id"}
)  # fmt: skip
RANDOM_PACKAGES = ("random.", "numpy.random.", "secrets.")
RANDOM_OF_TORCH = frozenset(
    {"torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.bernoulli", "torch.multinomial",
     "torch.rand_like", "torch.randn_like", "torch.normal"}
)  # fmt: skip
LOOKS_AT_FILES = frozenset(
    {"exists", "isfile", "isdir", "is_file", "is_dir", "listdir", "glob", "iglob", "scandir", "rglob", "iterdir", "lexists",
     "getmtime", "stat", "getsize", "walk"}
)  # fmt: skip
ASKS_PATHS = frozenset({"exists", "is_file", "is_dir", "iterdir"})  # of pathlib

# Questions that every process answers alike.
SAME_CALLS = frozenset(
    {"isinstance", "issubclass", "hasattr", "callable", "type", "is_tensor", "get_world_size", "is_initialized",
     "is_available", "device_count", "is_torchelastic_launched", "is_nccl_available", "parse_args", "parse_known_args",
     "get_lr", "get_last_lr", "parameters", "named_parameters", "state_dict", "buffers", "modules", "named_modules",
     "clip_grad_norm_", "clip_grad_value_", "get_scale", "num_parameters", "is_grad_enabled", "get_device_name",
     "get_device_capability", "is_bf16_supported", "children", "dir", "step", "zero_grad", "train", "eval", "current_device",
     "has_length"}  # of transformers: does `len(loader)` work?
)  # fmt: skip
CASTS = frozenset(
    {"float", "int", "bool", "str", "abs", "round", "list", "tuple", "sorted", "set", "dict", "iter", "reversed", "sum",
     "min", "max", "any", "all", "map", "filter", "zip", "enumerate", "format", "repr", "frozenset", "divmod", "pow",
     "deepcopy", "copy", "getattr"}
)  # fmt: skip
# What a thing is, not what it holds.
IS_KIND = frozenset(
    {"isinstance", "issubclass", "hasattr", "callable", "is_tensor", "is_floating_point", "is_storage", "exists_key"}
)  # fmt: skip
# What is passed on, and it gives as many rounds.
PASSED_ON = frozenset(
    {"tqdm", "trange", "track", "iter", "list", "tuple", "sorted", "reversed", "progress_bar", "enumerate", "cycle",
     "islice", "compile", "log_every", "ProgressBar", "prefetcher", "auto_tqdm", "repeater", "infinite", "alive_it", "map",
     "chain", "auto"}
)  # fmt: skip
WITHOUT_END = frozenset({"cycle", "infinite", "repeater"})  # of these, whatever they go through
# Where a tensor is, and of which type, is no matter of what it holds.
MOVES = frozenset({"to", "cuda", "cpu", "half", "bfloat16", "pin_memory", "contiguous", "npu"})
# Packages of programs that one process runs, and that answer requests.
SERVERS = frozenset({"flask", "fastapi", "streamlit", "gradio", "dash", "tornado", "aiohttp", "sanic", "bottle"})
# What turns objects into text.
SHOWS = frozenset({"print", "str", "format", "info", "debug", "warning", "log", "write"})
# Bars that hand on what they show.
PROGRESS = frozenset({"tqdm", "trange", "track", "progress_bar", "ProgressBar", "auto_tqdm", "alive_it", "prange"})
# What a tensor is, and which fields a record has, not what they hold.
DESCRIPTIONS = frozenset(
    {"dataset", "batch_size", "sampler", "collate_fn", "device", "dtype", "ndim", "requires_grad", "is_cuda", "training",
     "__name__", "__class__", "name", "names", "__dataclass_fields__", "_fields", "__annotations__", "__slots__"}
)  # fmt: skip
# What keeps only some of the elements, by their values.
SELECTS = frozenset(
    {"nonzero", "masked_select", "unique", "argwhere", "unique_consecutive", "nms", "batched_nms", "flatnonzero",
     "intersect1d", "union1d", "setdiff1d", "setxor1d"}
)  # fmt: skip
# What reads a file.
LOADS = frozenset(
    {"load", "open", "loads", "read", "read_text", "from_pretrained", "load_file", "safe_load", "read_csv",
     "load_checkpoint"}
)  # fmt: skip
# Methods of so many objects that one parameter is not looked at for them.
COMMON_METHODS = frozenset(
    {"to", "item", "get", "items", "keys", "values", "append", "format", "join", "split", "size", "view", "reshape",
     "detach", "cpu", "cuda", "mean", "sum", "parameters", "eval", "train", "forward", "zero_grad", "backward",
     "state_dict", "load_state_dict", "shape", "clone", "contiguous", "float", "double", "half", "long", "int", "bool", "numpy",
     "tolist", "squeeze", "unsqueeze", "permute", "flatten", "expand", "max", "min", "std", "var", "argmax", "softmax",
     "mul_", "div_", "add_", "sub_", "copy_"}
)  # fmt: skip
FILLS = frozenset(
    {"append", "extend", "update", "add", "insert", "appendleft", "put", "push", "record", "accumulate", "extendleft",
     "setdefault", "add_batch", "update_dict", "log_metric", "add_scalar_value"}
)  # fmt: skip
EMPTIES = frozenset({"reset", "clear"})
# Names of what is a rank's own, where the source does not show what they hold.
DATA_NAMES = frozenset(
    {"batch", "loss", "losses", "total_loss", "loss_value", "val_loss", "valid_loss", "eval_loss", "test_loss", "inputs",
     "targets", "logits", "preds", "predictions", "outputs", "images", "labels", "batch_data", "train_loss", "samples",
     "batch_loss", "running_loss"}
)  # fmt: skip
LOSS_NAME = lazy(r"(^|_)loss(es)?(_|$)", re.I)
# Whether, which and how: no number of a batch.
SETTING_OF_LOSS = lazy(
    r"^(use|using|is|has|have|with|do|enable|disable|should|need|no|only|add|show|log|plot|apply|compute|return|want)s?_"
    r"|loss(es)?_(fn|func|function|type|name|names|mode|kind|weights?|coef\w*|lambda|scale|scaler|config|cfg|args|kwargs|every|freq\w*|"
    r"interval|start|cls|class|module)$",
    re.I,
)
LOADER_NAMES = lazy(
    r"((data_?)?loader(_\w+)?|_dl|^dl|train_iter|data_iter|train_batches|train_data_iterator|epoch_iterator)$", re.I
)
SHARING_SAMPLERS = lazy(r"Distributed\w*Sampler|\w*Dist\w*Sampler|RASampler|ElasticDistributedSampler|DistSampler")
RANDOM_SAMPLERS = frozenset({"RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler"})
SCHEDULER_BY_NUMBER = frozenset({"ReduceLROnPlateau"})
PREPARES = frozenset(
    {"prepare", "prepare_data_loader", "setup_dataloaders", "setup", "setup_module", "prepare_model", "initialize"}
)  # fmt: skip
WRAPPERS = frozenset(
    {"DistributedDataParallel", "FullyShardedDataParallel", "FSDP", "DDP", "fully_shard", "ShardedDataParallel",
     "NativeDDP", "ApexDDP"}
)  # fmt: skip
SHARDED_WRAPPERS = frozenset({"FullyShardedDataParallel", "FSDP", "fully_shard"})
BACKWARDS = frozenset({"backward", "manual_backward"})
# Flags by which a callback tells its framework to stop; neither passes them on to the other ranks (measured).
STOP_FLAGS = frozenset({"should_stop", "should_training_stop"})
# Bytes of which a file holds one where it may come to a collective.
COLLECTIVE_WORDS = (
    b"backward(", b"barrier(", b"all_reduce", b"all_gather", b"wait_for_everyone", b"broadcast", b"gather(", b"reduce(",
    b"synchronize", b"save_state", b"save_checkpoint", b".fit(", b"training_step", b"train_dataloader", b"even_batches",
    b"evaluate(", b"compute(", b"sync_dist", b"reduce_tensor", b"distribute_bn", b"distributed_concat",
    b"distributed_broadcast", b"collect_results", b"multi_gpu_test",
)  # fmt: skip
# Calls by which numbers are shown, where it is rank 0 that makes them; of these objects only rank 0 acts by itself.
SHOWN_NUMBERS = frozenset(
    {"print", "info", "add_scalar", "add_scalars", "log", "log_metrics", "log_metric", "write", "dump", "debug", "warning",
     "log_scalar", "add_scalar_dict", "scalar", "track", "log_dict", "write_row", "writerow", "tqdm.write", "success",
     "report", "add_loss", "add_metric", "set_postfix", "set_description", "set_postfix_str"}
)  # fmt: skip
# Of them those that draw a curve, and those that show a text for a moment.
DRAWS = frozenset(
    {"add_scalar", "add_scalars", "log", "log_metrics", "log_metric", "log_scalar", "log_dict", "add_scalar_dict", "scalar",
     "add_loss", "add_metric", "track", "report"}
)  # fmt: skip
BARS = frozenset({"set_postfix", "set_description", "set_postfix_str"})
LOGGER_NAME = lazy(r"(^|_)(log|logger|logging)$", re.I)
TAKES_WHAT_IS_SHOWN = lazy(r"log|writer|^tb|_tb$|tensorboard|wandb|mlflow|visuali|summary|tracker|bar$", re.I)
SHOWN_BY_MAIN = frozenset(
    {"accelerator.print", "accelerator.log", "fabric.print", "self.accelerator.print", "self.accelerator.log",
     "self.fabric.print", "fabric.log", "fabric.log_dict", "self.fabric.log", "self.fabric.log_dict"}
)  # fmt: skip
SAYS_SHOWN = lazy(
    r"^logger_(info|print)$"
    r"|(^|_)(log|logs|summarize|record|report|history|append_loss|plot|scalars?|metrics?|summary|stats|print\d?)(_|$)", re.I
)
METRIC_NAME = lazy(
    r"(^|_)(loss(es)?|acc(uracy)?\d?|err(or)?|mae|mse|rmse|psnr|ssim|miou|m?iou|dice|f1|auc|auroc|ap\d*|map|recall|precision|ppl|perplexity"
    r"|bleu|rouge|wer|cer|score|metrics?|elbo|kl|nll|bpd|reward|r2|corr|top\d|fid|cider|epe|hits?|stats|logs|log_dict|scalar_dict|scalars|meters?|val_stats)(_|$|\d)",
    re.I,
)
NOT_A_NUMBER = frozenset({"isnan", "isinf", "isfinite", "is_nan"})
PROCESS_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
