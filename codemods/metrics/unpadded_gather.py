"""DDP114: tensors that the ranks gather, though each rank's are as long as its own data came out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.bindings import bindings_in
from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.gathers import as_it_is
from codemods.analysis.loading.padded_texts import GatheredTexts, gathered_texts
from codemods.analysis.names import dotted
from codemods.analysis.variance.own_gathers import OwnGather, own_gathers
from codemods.analysis.variance.own_shapes import Why
from codemods.analysis.variance.parallel_files import may_be_parallel
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression
from codemods.data.printed_errors import WAITING
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

# What only the generation of tokens is told.
_OF_TOKENS = frozenset(
    {"input_ids", "attention_mask", "max_new_tokens", "max_length", "max_seq_len", "num_beams", "do_sample", "eos_token_id",
     "generation_config", "gen_kwargs", "logits_processor", "stopping_criteria"}
)  # fmt: skip
_DECODES = ("batch_decode", "decode")
_MESSAGE = (
    "each rank gathers `{}` as long as its own texts came out: with tensors of different lengths NCCL waits for ever or mixes up "
    "the values, and gloo ends the run"
)
_ASSUMED = "assumes that the tokens stand in the second dimension, and that what reads them leaves out the padding"
_REASON = (
    "bring all ranks to one length first: `{}.pad_across_processes(tokens, dim=1, pad_index=tokenizer.pad_token_id)`; no "
    "tokenizer is at hand here"
)
_TEXTS = (
    "the tokenizer pads to the longest text of each rank's own batch (line {}), and here all ranks gather `{}`{}: with tensors "
    "of different lengths NCCL waits for ever or mixes up the values, and gloo ends the run"
)
_OUTCOME = "with tensors of different shapes NCCL waits for ever or mixes up the values, and gloo ends the run"
_OWN = {
    Why.PICKED: "`{source}` ({line}) keeps as many elements as this rank's own data let through, and here all ranks {do} "
    "`{part}`",
    Why.SHARE: "`{source}` ({line}) is as long as this rank's own share, which need not be as long as the others', and here "
    "all ranks {do} `{part}`",
    Why.BINS: "`{source}` ({line}) has as many bins as the largest value of this rank's own data, and here all ranks {do} "
    "`{part}`",
}
_ADVICE = {
    Why.PICKED: "pad it to the length of the longest first, and drop the padding behind the gather{pad}, gather the whole rows "
    "and their mask and pick behind it, or gather objects (`all_gather_object`)",
    Why.SHARE: "pad it to the length of the longest first, and drop the padding behind the gather{pad}, or gather objects "
    "(`all_gather_object`); a share that is padded before the loop (DistributedSampler) is as long on every rank",
    Why.BINS: "give it a number of bins that is the same on all ranks: `minlength=classes`",
}
_PADS = " (`pad_across_processes(x, dim=0, pad_index=...)`)"
_AS_LONG = "assumes that every batch may be as long as max_length, and that the model is handed the attention mask"
_ONE_LENGTH = 'bring all ranks to one length first: `padding="max_length"` with `max_length` and `truncation=True`'


class UnpaddedGather(DdpCodemod):
    """Tensors that the ranks gather, though each rank's are as long as its own data came out.

    ## What it does
    Finds what `generate` gives where `accelerator.gather` or `gather_for_metrics` takes it as it is, and pads it over the
    processes first. Finds the `input_ids` and `attention_mask` of a tokenizer that pads to the longest text of the batch
    (`padding=True`, `padding="longest"`) where `all_gather` of `torch.distributed`, Accelerate or Lightning takes them, also in a
    function of the project (`concat_all_gather(tokens.input_ids)`), and pads them to `max_length`, which the tokenizer is given.
    Reports tensors whose shape is the rank's own where all ranks gather or add them up as they are: what a mask of the own data
    lets through (`scores[labels > 0]`, `nonzero`, `unique`, `masked_select`), what is joined from a list that is as long as the
    rank's own share (`torch.cat(features)` behind a loop over `rows[rank::world_size]`), and `torch.bincount` without
    `minlength`; followed through names, lists and functions of the project.

    ## Why it matters
    `generate` stops when the last text of the batch has ended, and a tokenizer pads to the longest text of its batch: the ranks
    have tensors of different lengths. A mask lets through as many as there happen to be, and 41 rows on two ranks are 21 and 20.
    `gather` needs the same shape on all ranks. With NCCL the job hangs or reads values of
    another rank's memory; with gloo it ends with an error. It works for as long as the lengths happen to agree, for instance on
    one GPU.

    ## Example
    ```python
    from accelerate import Accelerator


    def evaluate(accelerator: Accelerator, model, loader, tokenizer):
        texts = []
        for batch in loader:
            tokens = accelerator.unwrap_model(model).generate(batch["input_ids"], max_new_tokens=64)
            tokens = accelerator.gather(tokens)
            texts += tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return texts
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator


    def evaluate(accelerator: Accelerator, model, loader, tokenizer):
        texts = []
        for batch in loader:
            tokens = accelerator.unwrap_model(model).generate(batch["input_ids"], max_new_tokens=64)
            tokens = accelerator.gather(accelerator.pad_across_processes(tokens, dim=1, pad_index=tokenizer.pad_token_id))
            texts += tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return texts
    ```

    ## Safety
    Unsafe: the padding comes into what is decoded and compared, which is right where special tokens are skipped. Unsafe:
    `padding="max_length"` makes every batch as long as the longest text may be, which costs time and memory.

    ## Refuses
    - Says nothing where something that pads has taken the tokens before, and where least and most new tokens are the same.
    - Says nothing of a `generate` that is given nothing of tokens, as that of an image model, where nothing is decoded either.
    - Says nothing of a `generate` that gives several things (`images, texts = model.generate(x)`): it is the project's own.
    - Says nothing of values that do not come from `generate`, or from the tokenizer, in the same function.
    - Says nothing of texts that are written out or that the object holds: they are as long on every rank.
    - Says nothing of a function that pads, that gathers the sizes first, or that gathers objects.
    - Says nothing of a mask whose count something fixes (`one_hot`, `arange`, `eye`, `topk`), that is drawn at random, or that is
      the same on all ranks, and of a share that was cut or padded to a multiple of the ranks.
    - Says nothing where a branch may give the tensor another value, where its size goes into a tensor of its own, where the room
      for the others' is made by their sizes, and of arrays of numpy, which Accelerate gathers as objects.
    - Reports a mask, a share and bins: what the padding may be, and who drops it again, is for the program to say.
    - Reports it where no tokenizer is at hand, and where the tokenizer is given no `max_length` or no `truncation=True`.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `Accelerator.pad_across_processes` ("so they can safely be gathered"). Two processes over gloo with three and
    five tokens: gloo aborts one rank ("Received data size doesn't match expected size"), and the other waits. Two processes that
    `all_gather` token ids of three and five columns, over gloo. Three rows on one rank and five on the other, over gloo, torch
    2.13: `all_gather`, `all_gather_into_tensor`, `all_reduce`, Accelerate's `gather` and `gather_for_metrics` and Fabric's
    `all_gather` abort one rank with that error, and the other has rows that nobody sent, or a lost connection. torch's
    documentation of `all_gather_into_tensor` for NCCL: "must have the same size across all ranks"; NCCL was not run.
    """

    code = "DDP114"
    severity = "hang"
    subject = "Pad tokens before they are gathered"
    must_show = "The run ends, and each text is that of the prompt it belongs to."
    printed = WAITING
    TRIGGERS = (
        (b"gather", b"Gather", b"all_reduce"),
        (b"generate(", b"return_tensors", b"cat(", b"stack(", b"concat", b"ensor(", b"bincount", b"nonzero", b"unique",
         b"where(", b"masked_select", b" == ", b" != ", b" > ", b" < ", b" >= ", b" <= ", b".eq(", b".ne(", b".gt(", b".ge(",
         b".lt(", b".le(", b".bool()"),
    )  # fmt: skip
    SITES = (
        # not `torch.gather(x, 1, i)` and `x.gather(-1, i)`, which pick elements of a tensor
        Site(rb"(?<!torch\.)\b\w*[gG]ather\w*(?!\w)(?!\(\s*(?:-?\d+\s*,|dim\s*=))", b"ather"),
        Site(
            rb"(?i:\w*(?:reduce|collect|all_|sync)\w*)\(",
            b"educe", b"EDUCE", b"ollect", b"OLLECT", b"all_", b"ALL_", b"ync", b"YNC",
        ),
        Site(rb"return_tensors", b"return_tensors"),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        data = project.read(path) or b""
        if b"return_tensors" in data or b"ccelerat" in data or b"CCELERAT" in data:
            return True
        return may_be_parallel(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("gather", "gather_for_metrics"):
            function = module.function_of(call)
            if not isinstance(call.func, ast.Attribute) or len(call.args) != 1 or function is None:
                continue
            given = call.args[0].elts if isinstance(call.args[0], (ast.Tuple, ast.List)) else [call.args[0]]
            made = [(part, source) for part in given if (source := _generated(module, function, part, call)) is not None]
            if made and is_accelerator(project, module, call.func.value):
                yield self._found(module, function, call, *made[0])
        told: set[int] = set()
        for texts in gathered_texts(project, module) if module.holds(b"return_tensors") else ():
            if id(texts.source) not in told:  # its ids and its mask are one mistake
                told.add(id(texts.source))
                yield self._padded(module, texts)
        known = {id(c.call) for c in gathered_texts(project, module)} if told else set()
        for own in own_gathers(project, module):
            if id(own.call) not in known:
                yield self._of_own_shape(module, own)

    def _of_own_shape(self, module: SourceModule, found: OwnGather) -> Finding:
        source = found.shape
        words = " ".join(source.module.text_of(source.node).split())
        part = " ".join(module.text_of(found.part).split())
        line = f"line {source.node.lineno}" if source.module is module else f"{source.module.path}:{source.node.lineno}"
        do = "add up" if found.reduces else "gather"
        told = _OWN[source.why].format(source=_short(words), line=line, part=_short(part), do=do)
        into = f" ({found.inside[0]}:{found.inside[1]})" if found.inside is not None else ""
        shown = [Evidence("way", x.text, x.path, x.line) for x in source.value.chain]
        if found.inside is not None:
            shown.append(Evidence("static", "the tensor is gathered from all ranks here", *found.inside))
        advice = _ADVICE[source.why].format(pad=_PADS if module.holds(b"accelerat") else "")
        return self.finding(module, found.call, f"{told}{into}: {_OUTCOME}", evidence=shown, reason=advice)

    def _padded(self, module: SourceModule, found: GatheredTexts) -> Finding:
        written = " ".join(module.text_of(found.part).split())
        into = f" ({found.inside[0]}:{found.inside[1]})" if found.inside is not None else ""
        message = _TEXTS.format(found.source.lineno, written, into)
        shown = [Evidence("static", "each rank pads to its own longest text", module.path, found.source.lineno)]
        if found.inside is not None:
            shown.append(Evidence("static", "the tensor is gathered from all ranks here", *found.inside))
        given = {k.arg: k.value for k in found.source.keywords if k.arg}
        cuts = given.get("truncation")
        if "max_length" not in given or not isinstance(cuts, ast.Constant) or cuts.value not in (True, "longest_first"):
            return self.finding(module, found.call, message, evidence=shown, reason=_ONE_LENGTH)
        quote = "'" if module.text_of(given["padding"]).startswith("'") else '"'
        edits = [ReplaceExpression(module.path, module.span(given["padding"]), f"{quote}max_length{quote}")]
        return self.finding(
            module, found.call, message, level=Applicability.UNSAFE, edits=edits, evidence=shown, reason=_AS_LONG
        )

    def _found(self, module: SourceModule, function: FunctionNode, call: ast.Call, part: ast.expr, source: ast.Call) -> Finding:
        assert isinstance(call.func, ast.Attribute)
        accelerator, written = module.text_of(call.func.value), " ".join(module.text_of(part).split())
        message = _MESSAGE.format(written if len(written) < 60 else "the tokens")
        shown = [Evidence("static", "the tokens come from here", module.path, source.lineno)]
        if not (tokenizer := _tokenizer(function)):
            return self.finding(module, call, message, evidence=shown, reason=_REASON.format(accelerator))
        padded = f"{accelerator}.pad_across_processes({module.text_of(part)}, dim=1, pad_index={tokenizer}.pad_token_id)"
        edits = [ReplaceExpression(module.path, module.span(part), padded)]
        return self.finding(module, call, message, level=Applicability.UNSAFE, edits=edits, evidence=shown, reason=_ASSUMED)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _generated(module: SourceModule, function: FunctionNode, part: ast.expr, gather: ast.Call) -> ast.Call | None:
    """The call of `generate` that `part` comes from as it is; None where something else has had a hand in it."""
    source = _unwrapped(part)
    if isinstance(source, ast.Name):
        bound = [b for b in bindings_in(module, function, source.id) if _is_above(b.node, module.statement_of(gather))]
        values = [_unwrapped(b.value) for b in bound if b.value is not None]
        if len(values) != len(bound) or not values or any(b.part for b in bound):
            return None  # what is taken apart is no tensor of tokens: a model of the project gives several things
        source = values[-1]
        if any(not isinstance(v, ast.Call) or not _is_generate(v) for v in values):
            return None
        if isinstance(part, ast.Name) and _is_padded(module, function, part.id):
            return None
    if not isinstance(source, ast.Call) or not _is_generate(source) or not _is_of_tokens(function, source):
        return None
    return source


def _is_above(bound: ast.AST, statement: ast.stmt) -> bool:
    return (getattr(bound, "lineno", 0), getattr(bound, "col_offset", 0)) < (statement.lineno, statement.col_offset)


def _unwrapped(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().cpu()` and of `x[:, start:]`."""
    node = as_it_is(node)
    return _unwrapped(node.value) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else node


def _is_generate(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr.endswith("generate")


def _is_of_tokens(function: FunctionNode, call: ast.Call) -> bool:
    """True where tokens are generated, in a number that is left to the model."""
    told = {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg}
    names = {dotted(k.value).rpartition(".")[2] for k in call.keywords if k.arg is None}
    if "min_new_tokens" in told and told["min_new_tokens"] == told.get("max_new_tokens"):
        return False
    decodes = any(isinstance(n, ast.Call) and dotted(n.func).rpartition(".")[2] in _DECODES for n in walk(function))
    return decodes or bool(_OF_TOKENS & (told.keys() | names))


def _is_padded(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True where a call that pads is given the tokens: the framework's own, `F.pad`, or one of the project."""
    for use in module.reads_of(name):
        if module.function_of(use) is not function:
            continue
        for up in module.ancestors(use):
            if isinstance(up, ast.Call) and "pad" in dotted(up.func).rpartition(".")[2].lower():
                return True
            if isinstance(up, ast.stmt):
                break
    return False


def _tokenizer(function: FunctionNode) -> str:
    """The tokenizer of the function: what it decodes with, or asks for a token's number; "" without one."""
    for node in walk(function):
        if isinstance(node, ast.Attribute) and node.attr in (*_DECODES, "pad_token_id", "eos_token_id"):
            if "tokenizer" in (name := dotted(node.value)):
                return name
    return ""
