"""Names of the Wan2.1 VAE's tensors in the diffusers conversions (AutoencoderKLWan)."""

from __future__ import annotations

import re

from pipeline.lingbot.config import Shapes, VAEConfig

_RESIDUAL = {"0": "norm1", "2": "conv1", "3": "norm2", "6": "conv2"}
_TOP = {"conv1": "quant_conv", "conv2": "post_quant_conv"}
_UP = VAEConfig().res_blocks + 1  # residual blocks of an up level; its upsampler follows them


def is_diffusers(shapes: Shapes) -> bool:
    """Whether the keys are those of the conversions."""
    return "post_quant_conv.weight" in shapes


def diffusers_key(name: str) -> str:
    """The name in a diffusers conversion of what we, like Wan, call `name`.

    >>> diffusers_key("decoder.upsamples.5.residual.3.gamma")
    'decoder.up_blocks.1.resnets.1.norm2.gamma'
    >>> diffusers_key("encoder.downsamples.5.time_conv.bias")
    'encoder.down_blocks.5.time_conv.bias'
    """
    side, _, rest = name.partition(".")
    if side in _TOP:
        return f"{_TOP[side]}.{rest}"
    part, _, rest = rest.partition(".")
    if part == "conv1":
        return f"{side}.conv_in.{rest}"
    if part == "head":
        index, _, leaf = rest.partition(".")
        return f"{side}.{'norm_out' if index == '0' else 'conv_out'}.{leaf}"
    index, _, rest = rest.partition(".")
    if part == "middle":
        if index == "1":
            return f"{side}.mid_block.attentions.0.{rest}"
        return f"{side}.mid_block.resnets.{int(index) // 2}.{_inner(rest)}"
    if part == "downsamples":
        return f"{side}.down_blocks.{index}.{_inner(rest)}"
    level, place = divmod(int(index), _UP + 1)
    block = "upsamplers.0" if place == _UP else f"resnets.{place}"
    return f"{side}.up_blocks.{level}.{block}.{_inner(rest)}"


def _inner(rest: str) -> str:
    rest = re.sub(r"^residual\.(\d)", lambda m: _RESIDUAL[m[1]], rest)
    return rest.replace("shortcut.", "conv_shortcut.")
