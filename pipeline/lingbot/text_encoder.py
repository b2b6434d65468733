"""The UMT5 encoder and its tokenizer, both from `transformers`; names and use are ours. SPEC §5.

UMT5 is unusual: no scaling of q·k, a position bias in every layer, no biases elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerBase, UMT5EncoderModel
from transformers import UMT5Config as PublishedUMT5Config

from pipeline.lingbot.config import UMT5Config
from pipeline.lingbot.errors import BadPrompt, BadWeights
from pipeline.lingbot.prompt import clean_prompt

MAX_DISTANCE = 128  # where the position buckets end

_NAMES = {  # transformers' name → Wan's
    "layer.0.layer_norm": "norm1",
    "layer.0.SelfAttention.relative_attention_bias": "pos_embedding.embedding",
    "layer.0.SelfAttention": "attn",
    "layer.1.layer_norm": "norm2",
    "layer.1.DenseReluDense.wi_0": "ffn.gate.0",
    "layer.1.DenseReluDense.wi_1": "ffn.fc1",
    "layer.1.DenseReluDense.wo": "ffn.fc2",
}


def build_umt5(config: UMT5Config) -> UMT5EncoderModel:
    """The encoder without weights, on the current default device."""
    published = PublishedUMT5Config(
        vocab_size=config.vocab,
        d_model=config.dim,
        d_kv=config.attn_dim // config.heads,
        d_ff=config.ffn_dim,
        num_layers=config.layers,
        num_heads=config.heads,
        relative_attention_num_buckets=config.buckets,
        relative_attention_max_distance=MAX_DISTANCE,
        feed_forward_proj="gated-gelu",  # the tanh form
        layer_norm_epsilon=1e-6,
        dropout_rate=0.0,
        pad_token_id=0,
        eos_token_id=1,
        # eager: scores are rounded to the compute dtype before the softmax, as in the reference
        attn_implementation="eager",  # type: ignore[call-arg]  # taken by the base class
    )
    model: UMT5EncoderModel = UMT5EncoderModel(published)
    model.requires_grad_(False)
    model.train(False)
    return model


def published_key(name: str) -> str:
    """The name in the published `.pth` of a tensor that transformers calls `name`.

    >>> published_key("encoder.block.3.layer.1.DenseReluDense.wi_0.weight")
    'blocks.3.ffn.gate.0.weight'
    """
    if name in ("shared.weight", "encoder.embed_tokens.weight"):
        return "token_embedding.weight"
    if name == "encoder.final_layer_norm.weight":
        return "norm.weight"
    match = re.fullmatch(r"encoder\.block\.(\d+)\.(.+)", name)
    assert match is not None, name
    rest = match[2]
    for theirs, ours in _NAMES.items():
        rest = rest.replace(theirs, ours)
    return f"blocks.{match[1]}.{rest}"


def load_tokenizer(directory: Path) -> PreTrainedTokenizerBase:
    """The tokenizer in `directory`; nothing is downloaded.

    Raises:
        BadWeights: there is none, or its padding and end tokens are not those of UMT5.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise BadWeights(
            directory, f"no usable tokenizer in it ({type(fault).__name__})"
        ) from fault
    if (tokenizer.pad_token_id, tokenizer.eos_token_id) != (0, 1):
        raise BadWeights(
            directory, "this is not UMT5's tokenizer: padding is not 0 or the end not 1"
        )
    return tokenizer


def tokenize(tokenizer: PreTrainedTokenizerBase, prompt: str, text_len: int = 512) -> Tensor:
    """A prompt, cleaned → its ids, the end token last: int64 [n], n ≤ text_len (cut beyond).

    Raises:
        BadPrompt: it is too long to be meant, or cannot be tokenised.
    """
    try:
        ids = tokenizer(
            clean_prompt(prompt), truncation=True, max_length=text_len, add_special_tokens=True
        ).input_ids
    except (TypeError, UnicodeError) as fault:
        raise BadPrompt("The prompt is not text that can be tokenised") from fault
    return torch.tensor(ids, dtype=torch.int64)


def encode_prompt(encoder: UMT5EncoderModel, ids: Tensor) -> Tensor:
    """Ids [n] → context [n, D].

    The reference pads to 512, masks the padding and cuts it off again; encoding the n true tokens
    alone gives the same rows.
    """
    context: Tensor = encoder(input_ids=ids[None].to(encoder.device)).last_hidden_state[0]
    return context
