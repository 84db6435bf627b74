"""What the docstring of a codemod does not hold: the subject of its commit, what to look at in a test, and the exact message of
a failure. The messages are those of torch, Lightning and transformers as seen in two-process runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """subject: what the commit does. look: what a test must show. errors: what is printed if the fix is wrong here."""

    subject: str
    look: str
    errors: tuple[str, ...]


UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one.",
    "It looks like your LightningModule has parameters that were not used in producing the loss returned by training_step.",
)
# gloo, then NCCL
WAITING = ("Timed out waiting …ms for recv operation to complete", "Watchdog caught collective operation timeout")
HALF_WRITTEN = ("FileNotFoundError", "PytorchStreamReader failed")

RENAMED = "The program starts and its tests pass; a mention that was missed fails when its line is reached."

NO_FACTS = Facts("", "The changed lines run on two processes; the paragraphs on safety above say what must hold.", ())

FACTS: Mapping[str, Facts] = {
    "DDP001": Facts(
        "Turn needless unused-parameter detection off",
        "Training goes on for as many steps as it takes to meet every branch of the model, never fewer than two: the error "
        "comes in the forward pass after a step that left a parameter without a gradient.",
        UNUSED,
    ),
    "DDP002": Facts(
        "Let DDP look for unused parameters",
        "Training goes on past the step that failed, for enough steps to take the rare branch.",
        (*UNUSED, "Expected to mark a variable ready only once"),
    ),
    "DDP003": Facts(
        "Drop the flag that static_graph overrules",
        "Training goes on past the second step with the same losses, and torch prints no complaint about the flag.",
        ("Your training graph has changed in this iteration",),
    ),
    "DDP004": Facts(
        "Checkpoint without re-entrant backward passes",
        "Training goes on past the first backward pass, with the same losses on one process as before.",
        ("Expected to mark a variable ready only once", *UNUSED),
    ),
    "DDP101": Facts(
        "Reduce epoch metrics over the ranks",
        "Each logged value is the mean over both processes, and the epoch ends: a rank that does not reach the call leaves the "
        "others waiting there.",
        (*WAITING, "No backend type associated with device type cpu"),
    ),
    "DDP102": Facts(
        "Leave step values of the training unreduced",
        "A training step makes no collective for this key any more, and each step takes less time; the curve is that of rank 0.",
        (),
    ),
    "DDP103": Facts(
        "Drop sync_dist where a metric object reduces itself",
        "The logged value is the same before and after, on one process and on two.",
        (),
    ),
    "DDP104": Facts(
        "Log the metric instead of its value for a batch",
        "The value of the epoch is that of the whole set: the same on one process and on two, whatever the batches hold.",
        (),
    ),
    "DDP107": Facts(
        "Leave the averaging over the ranks to DDP",
        "The gradients on two processes are the mean of those of the shares; clipping acts at another norm than before.",
        (),
    ),
    "DDP112": Facts(
        "Take the result of a reduction",
        "The number that is shown is the same on both processes, and that of all data.",
        (),
    ),
    "DDP113": Facts(
        "Gather into a tensor for each rank",
        "What is worked out of the gathered list is that of all ranks; on one process nothing changes.",
        (),
    ),
    "DDP114": Facts(
        "Pad generated tokens before they are gathered",
        "The evaluation ends, and each text is that of the prompt it belongs to.",
        WAITING,
    ),
    "DDP116": Facts(
        "Work metrics out of the predictions of all ranks",
        "One process and two give the same score for the same checkpoint.",
        (),
    ),
    "DDP117": Facts(
        "Take ids of samples from the batch",
        "On two processes every prediction goes under the id of its own sample.",
        (),
    ),
    "DDP201": Facts(
        "Run host-side hooks on one process",
        "Files and lines of output come once, not once for each process, and the run goes on behind the hook.",
        WAITING,
    ),
    "DDP202": Facts(
        "Write files from one process",
        "The files are written once and are whole, and no other process looks for one before it is there.",
        (*HALF_WRITTEN, *WAITING),
    ),
    "DDP203": Facts("Print from one process", "Each line comes once, and the run goes on behind it.", WAITING),
    "DDP204": Facts(
        "Let several processes create the same folder",
        "With the folder deleted first, both processes start.",
        ("FileExistsError",),
    ),
    "DDP205": Facts(
        "Report to the tracker from one process",
        "There is one run for one training, and no process ends with an error about a run that it has not.",
        ("You must call wandb.init() before wandb.log()", *WAITING),
    ),
    "DDP206": Facts(
        "Run the hooks that every rank needs on every rank",
        "Both processes get through the first epoch, and the files that the hook writes come once.",
        ("AttributeError", "Skipping the `training_step` by returning None in distributed training", *WAITING),
    ),
    "DDP207": Facts(
        "Ask for the right rank",
        "On two nodes, or two processes of one, each takes a device of its own and what is wanted once comes once.",
        ("CUDA error: invalid device ordinal", "Duplicate GPU detected"),
    ),
    "DDP208": Facts("Draw one progress bar", "One bar is drawn, and the loop goes through the same items.", ()),
    "DDP209": Facts(
        "Change the experiment on the process that has it",
        "The run's page shows the settings, and both processes get past the line.",
        ("'function' object has no attribute", *WAITING),
    ),
    "DDP210": Facts(
        "Use what rank 0 alone has on rank 0 alone",
        "Both processes get past the line.",
        ("object has no attribute", "UnboundLocalError", *WAITING),
    ),
    "DDP211": Facts(
        "Give each rank a file of its own",
        "There is a file for each rank, and together they hold as many rows as the data.",
        (),
    ),
    "DDP213": Facts(
        "Count processes over all nodes",
        "On two nodes every process joins the group, and no two of them read the same rows.",
        ("Timed out after", "Address already in use", *WAITING),
    ),
    "DDP214": Facts(
        "Let the quiet print take keywords",
        "The other processes get past the line that prints with `flush=True`.",
        ("got an unexpected keyword argument", *WAITING),
    ),
    "DDP301": Facts(
        "Let every rank reach the collective calls",
        "Both processes get past the call.",
        (*WAITING, "Detected mismatch between collectives on ranks"),
    ),
    "DDP302": Facts(
        "Wait for the first process before its files are used",
        "With the output folder deleted first, the other process finds the file.",
        (*HALF_WRITTEN, *WAITING),
    ),
    "DDP303": Facts(
        "Let no rank leave before a collective call",
        "Both processes get to the end of the hook or the loop.",
        (*WAITING, "Detected mismatch between collectives on ranks"),
    ),
    "DDP304": Facts(
        "Destroy the process group at the end",
        "Both processes end with status 0, and NCCL prints no warning about resources that may leak.",
        ("Process group cannot be None", *WAITING),
    ),
    "DDP305": Facts(
        "Decide on all ranks together",
        "A process whose own number says stop, and one whose does not, go the same way.",
        WAITING,
    ),
    "DDP306": Facts(
        "Ask for the group before it is used",
        "The script runs to its end on one process without a launcher, and on two with it.",
        ("Default process group has not been initialized", "Process group cannot be None"),
    ),
    "DDP307": Facts(
        "Let a cache appear under its name when it is whole",
        "With the cache deleted first, both processes load the same rows, and no file with a number behind its name is left.",
        HALF_WRITTEN,
    ),
    "DDP308": Facts(
        "Restore the training state on every rank",
        "A training that is resumed on two processes has the same weights on both after some steps.",
        ("Timed out waiting …ms for recv operation to complete", "FileNotFoundError"),
    ),
    "DDP309": Facts(
        "Let an error of one rank end the run",
        "With an error on one process the run ends with its message and a status, and the launcher ends the other process.",
        WAITING,
    ),
    "DDP311": Facts(
        "Put together what the ranks saw of their batches",
        "After some steps on two processes the parameters and codebooks are the same on both, and those of all data.",
        (),
    ),
    "DDP312": Facts(
        "Name one root on all ranks",
        "Two processes get past the line, and rank 0 saves the state of the optimizer.",
        WAITING,
    ),
    "DDP313": Facts(
        "Average the gradients of the micro batch that steps",
        "After some steps on two processes the weights are the same on both.",
        (),
    ),
    "DDP401": Facts(
        "Share training data out over the ranks",
        "Each process goes through half of the samples, and no sample comes on both.",
        ("Default process group has not been initialized",),
    ),
    "DDP402": Facts(
        "Give samplers the epoch",
        "The second epoch has the samples in another order than the first, and each process still its own half.",
        ("object has no attribute 'set_epoch'",),
    ),
    "DDP403": Facts("Seed random splits", "Both processes train on the same samples, and validate on the others.", ()),
    "DDP404": Facts(
        "Sort what gives labels and shares",
        "Both processes number the classes alike, and have no file in common.",
        ("not supported between instances of",),
    ),
    "DDP405": Facts(
        "Draw other noise on each rank",
        "The first batch of noise differs between the processes, and the weights are the same on both.",
        (),
    ),
    "DDP407": Facts(
        "Make in setup what every rank needs",
        "A fit on two processes gets past setup on both, and both hold the same value.",
        ("object has no attribute", *WAITING),
    ),
    "DDP406": Facts(
        "Let the schedule last as long as the training",
        "At the last step on two processes the learning rate is where it is on one.",
        (),
    ),
    "DDP409": Facts(
        "Divide data alike on all ranks",
        "Both processes train on the same samples, and validate on the others.",
        (),
    ),
    "DDP412": Facts(
        "Prepare loaders, not iterators over them",
        "Each process trains on its own share of the data: the shares together are the whole set.",
        (),
    ),
    "DDP413": Facts(
        "Seed in the processes that spawn starts",
        "Two runs on two processes with one seed draw the same numbers.",
        (),
    ),
    "DDP414": Facts(
        "Give pictures in training a generator of their own",
        "Behind each validation rank 0 trains with new noise, as the other ranks do.",
        (),
    ),
    "DDP415": Facts(
        "Go through a shared loader on every rank",
        "An evaluation on two processes counts as many rows as on one.",
        (),
    ),
    "DDP416": Facts(
        "Give the optimizer the scaled learning rate",
        "On two processes the optimizer's rate is twice that of one where the setting asks for it.",
        (),
    ),
    "DDP417": Facts(
        "Share the data out once",
        "Two processes see all samples of an epoch between them, and each half of them.",
        (),
    ),
    "DDP501": Facts(
        "Leave checkpoints to the first process",
        "Two processes write each checkpoint once, and it loads; where it is loaded in the same run, the other process finds it.",
        (*HALF_WRITTEN, *WAITING),
    ),
    "DDP502": Facts(
        "Save the module inside the DDP wrapper",
        "A checkpoint that was written on two processes loads into a bare model, and its keys do not begin with `module.`.",
        ("Error(s) in loading state_dict",),
    ),
    "DDP503": Facts(
        "Load checkpoints to the CPU on every rank",
        "A resumed run goes on at its old loss, and nvidia-smi shows each process on its own GPU alone.",
        ("Expected all tensors to be on the same device",),
    ),
    "DDP504": Facts(
        "Train through the DDP wrapper",
        "After some steps on two processes the weights of both agree.",
        UNUSED,
    ),
    "DDP507": Facts(
        "Ask the model inside the DDP wrapper",
        "Two processes get past these lines, and one process prints and saves what it did.",
        ("object has no attribute",),
    ),
    "DDP508": Facts(
        "Let Lightning see each backward pass",
        "After some steps on two processes the weights of both agree.",
        UNUSED,
    ),
    "DDP601": Facts(
        "Remove compute_metrics that is never called",
        "One evaluation runs to its end, and whatever reads its metrics finds the keys it wants.",
        ("KeyError: 'eval_", "The `metric_for_best_model` training argument is set to"),
    ),
    "DDP602": Facts(
        "Call the training arguments by their names of today",
        "The job gets to its first step, and the arguments it prints hold the values that were asked for.",
        (
            "TrainingArguments.__init__() got an unexpected keyword argument",
            "Some specified arguments are not used by the HfArgumentParser",
            "Some keys are not used by the HfArgumentParser",
        ),
    ),
    "PRJ001": Facts("Rename functions as the project asks", RENAMED, ("ImportError: cannot import name", "NameError: name")),
    "PRJ002": Facts("Rename methods as the project asks", RENAMED, ("object has no attribute",)),
    "PRJ003": Facts("Rename modules as the project asks", RENAMED, ("ModuleNotFoundError: No module named",)),
    "PRJ004": Facts("Rename attributes as the project asks", RENAMED, ("object has no attribute",)),
    "PRJ005": Facts("Rename keyword arguments as the project asks", RENAMED, ("got an unexpected keyword argument",)),
    "DDP603": Facts(
        "Write the Accelerate configuration as the launcher takes it",
        "`accelerate launch` with the file starts as many processes as it says.",
        (
            "'bool' object has no attribute 'lower'",
            "had unknown keys",
            "is not a valid DistributedType",
        ),
    ),
    "DDP604": Facts(
        "Name the labels that the Trainer does not find",
        "One evaluation reports `eval_loss` and what compute_metrics gives: its batches hold the named input.",
        ("The `metric_for_best_model` training argument is set to",),
    ),
    "DDP605": Facts(
        "Count each sample of an evaluation once",
        "With a number of samples that two does not divide, the evaluation counts as many on two processes as on one.",
        (),
    ),
    "DDP606": Facts(
        "Divide the loss by the accumulation steps once",
        "A step over several micro batches moves the weights as far as one over a batch of all their samples.",
        (),
    ),
    "DDP607": Facts(
        "Wipe the gradients behind the step",
        "The gradient of a step is made of all its micro batches: leaving one of the first out changes it.",
        (),
    ),
    "DDP608": Facts(
        "Give all ranks one batch size",
        "A run whose memory is full on one GPU ends with that error, instead of hanging.",
        ("CUDA out of memory", "Watchdog caught collective operation timeout"),
    ),
    "DDP701": Facts(
        "Take the local rank from LOCAL_RANK as well",
        "Under torchrun each process takes another GPU; `--local_rank` and `--local-rank` are both accepted.",
        ("unrecognized arguments: --local-rank", "Duplicate GPU detected"),
    ),
    "DDP702": Facts(
        "Start ranks by torchrun",
        "The job starts as many ranks as before, without the warning; each takes another GPU.",
        ("torch.distributed.launch is deprecated", "unrecognized arguments: --use_env", "arguments are required: --local_rank"),
    ),
    "DDP703": Facts(
        "Give each spawned rank its GPU",
        "`nvidia-smi` shows a process on each GPU, and none of them twice on the first.",
        ("Duplicate GPU detected", "CUDA error: invalid device ordinal", "CUDA out of memory"),
    ),
    "DDP705": Facts(
        "Load the model on the process's own device",
        "`nvidia-smi` shows each process on one GPU, and the whole model has room there.",
        ("You can't train a model that has been loaded with `device_map='auto'` in any distributed mode",),
    ),
    "DDP709": Facts(
        "Give the setting its value instead of comparing it",
        "The setting has the new value behind the line: print it there once.",
        ("Address already in use",),
    ),
    "DDP710": Facts(
        "Give the launcher the script instead of python",
        "The job starts: the command of the file, with two processes.",
        ("can't open file 'python'", "unrecognized arguments", "arguments are required: training_script"),
    ),
    "DDP704": Facts(
        "Average gradients only before a step",
        "The weights are the same on both processes, and the same as before; fewer buckets of gradients are sent.",
        (),
    ),
    "DDP711": Facts(
        "Ask the launcher before Slurm for the rank",
        "torchrun within one Slurm task gives each process a rank of its own; srun alone gives the same ranks as before.",
        ("Duplicate GPU detected", *WAITING),
    ),
    "DDP712": Facts(
        "Set the number of processes for each launcher",
        "The tasks of srun, or the processes of torchrun, start their group; the other launcher's branch is as before.",
        ("object has no attribute 'world_size'", "object has no attribute 'rank'"),
    ),
    "DDP713": Facts(
        "Hand the spawned ranks their arguments as a tuple",
        "The ranks start; with one process nothing changes.",
        ("argument after * must be an iterable", "cannot unpack non-iterable"),
    ),
    "DDP801": Facts(
        "Call the Trainer's arguments as Lightning calls them now",
        "The program makes its Trainer with the version of Lightning that is installed.",
        ("Trainer.__init__() got an unexpected keyword argument",),
    ),
    "DDP802": Facts(
        "Hand strategies to the Trainer as strategies",
        "The program makes its Trainer with the version of Lightning that is installed.",
        ("cannot import name 'DDPPlugin'", "Found invalid type for plugin"),
    ),
    "DDP803": Facts(
        "Take names of Lightning from where they are now",
        "The program starts with the version of Lightning that is installed.",
        (
            "ModuleNotFoundError: No module named 'pytorch_lightning",
            "ImportError: cannot import name",
            "has no attribute 'training_type_plugin'",
        ),
    ),
    "DDP805": Facts(
        "Let the command line decide over the Trainer",
        "The run takes what its command gives: print the argument of the Trainer once.",
        (),
    ),
    "DDP804": Facts(
        "Keep the outputs of the steps in the module",
        "The training begins with the version of Lightning that is installed, and logs the same numbers.",
        ("has been removed in v2.0.0",),
    ),
    "DDP901": Facts(
        "Log less often, and take larger batches for fewer at a time",
        "Training with the same data comes to the same loss after as many steps, the first step fits into the device's memory, "
        "and a step takes less time: `ddpfix tune --measure` says how much.",
        ("CUDA out of memory",),
    ),
    "DDP902": Facts(
        "Tune the job where its values are decided",
        "The arguments that the job prints hold the new values, the first step fits into the device's memory, and the loss after "
        "as many steps is the same.",
        ("CUDA out of memory",),
    ),
    "DDP903": Facts(
        "Set the flags that cost time in every step",
        "An epoch comes to the same weights, and the second epoch sees the data that it is meant to see.",
        ("persistent_workers option needs num_workers > 0", "Can't detach views in-place"),
    ),
    "DDP904": Facts(
        "Log the learning rate",
        "The log has a value of the learning rate for each epoch, once and not once for each process.",
        ("Cannot use `LearningRateMonitor` callback with `Trainer` that has no logger",),
    ),
}


def facts(code: str) -> Facts:
    return FACTS.get(code, NO_FACTS)
