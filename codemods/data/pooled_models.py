"""Models of transformers that end in a pooler: a layer with parameters that makes `pooler_output`, and nothing else.

From the constructors of transformers 5.23: `add_pooling_layer` is on unless it is given, and the pooler holds a Linear. Versions
before `add_pooling_layer` (3.5) always make it. In a step that reads the hidden states, all but the pooler has a gradient; not so
in a Longformer, whose global attention may rest as well.
"""

from __future__ import annotations

from codemods.runtime.lazy_pattern import lazy

POOLED = frozenset(
    {
        "AlbertModel", "BertModel", "BigBirdModel", "CamembertModel", "DeiTModel", "ErnieModel", "LayoutLMModel", "MPNetModel",
        "MegatronBertModel", "RemBertModel", "RobertaModel", "ViTModel", "XLMRobertaModel", "XLMRobertaXLModel",
    }
)  # fmt: skip
# Checkpoints of which AutoModel makes one of them.
POOLED_CHECKPOINT = lazy(
    r"(?:google-bert/)?bert-(?:base|large)-[\w-]+|(?:FacebookAI/)?(?:xlm-)?roberta-(?:base|large)|camembert-base"
    r"|(?:albert/)?albert-(?:base|large|xlarge|xxlarge)-v[12]|microsoft/(?:mpnet-base|codebert-base)"
    r"|sentence-transformers/(?:all-mpnet-base-v2|all-MiniLM-L(?:6|12)-v[12])|allenai/scibert_scivocab_(?:un)?cased"
    r"|microsoft/BiomedNLP-(?:Biomed|PubMed)BERT-(?:base|large)-[\w-]+"
    r"|google/vit-(?:base|large)-patch(?:16|32)-(?:224|384)(?:-in21k)?|emilyalsentzer/Bio_ClinicalBERT|dmis-lab/biobert[\w.-]*"
)
# What is read of such a model's answer without the pooler.
UNPOOLED = frozenset({"last_hidden_state", "hidden_states", "attentions"})
