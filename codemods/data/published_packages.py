"""Distributions that programs of this field are built on, and that repositories keep copies of. Data only, no code.

Names as an index spells them (PEP 503). A project that is itself copied and then worked on in the copy is none of these, nor is
a name that a repository's own package may well have (`datasets`, `clip`).
"""

from __future__ import annotations

PUBLISHED = frozenset(
    {
        "accelerate", "adapter-transformers", "allennlp", "apex", "bitsandbytes", "causal-conv1d", "colossalai",
        "deepspeed", "detectron2", "dgl", "diff-gaussian-rasterization", "diffusers", "einops", "espnet", "fairscale",
        "fairseq", "flash-attn", "fvcore", "gradio", "gym", "gymnasium", "horovod", "hydra-core", "iopath", "kornia",
        "lightning", "lm-eval", "lpips", "mamba-ssm", "megatron-core", "minkowskiengine", "mmcls", "mmcv",
        "mmcv-full", "mmcv-lite", "mmdet", "mmdet3d", "mmengine", "mmpose", "mmpretrain", "mmsegmentation",
        "nemo-toolkit", "ogb", "omegaconf", "open-clip-torch", "opennmt-py", "optimum", "peft", "pytorch-fid",
        "pytorch-lightning", "pytorch-pretrained-bert", "pytorch-transformers", "pytorch3d", "ray", "sacrebleu",
        "segment-anything", "sentence-transformers", "sentencepiece", "simple-knn", "spacy", "spconv", "speechbrain",
        "stable-baselines3", "tensorboardx", "timm", "tinycudann", "tokenizers", "torch", "torch-cluster",
        "torch-geometric", "torch-scatter", "torch-sparse", "torchaudio", "torchmetrics", "torchtext", "torchvision",
        "transformers", "trl", "vllm", "wandb", "xformers",
    }
)  # fmt: skip
