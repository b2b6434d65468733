"""The reference's numbers: one directory of `NAME.safetensors` with `NAME.json` beside each.

`LINGBOT_FIXTURES=DIR` points the whole suite at another directory of the same format.
"""

import json
import os
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from pipeline.lingbot.config import ACT_CHANNELS, CAM_CHANNELS, DiTConfig, UMT5Config, VAEConfig
from pipeline.lingbot.dit import DiT
from pipeline.lingbot.vae import VAE

OURS = Path(__file__).parent / "fixtures"
DIRECTORY = Path(os.environ.get("LINGBOT_FIXTURES", "") or OURS)
ATOL, RTOL = 2e-5, 1e-4


@dataclass(frozen=True)
class Fixture:
    about: dict[str, Any]
    tensors: dict[str, Tensor]

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tensors


def names(prefix: str) -> list[str]:
    found = [p.stem for p in sorted(DIRECTORY.glob(f"{prefix}*.safetensors"))]
    assert found, f"no fixture {prefix}* in {DIRECTORY}"
    return found


@cache
def fixture(name: str, directory: Path = DIRECTORY) -> Fixture:
    about = json.loads((directory / f"{name}.json").read_text())
    return Fixture(about, load_file(directory / f"{name}.safetensors"))


def close(actual: Tensor, expected: Tensor, atol: float = ATOL, rtol: float = RTOL) -> None:
    torch.testing.assert_close(
        actual.to(expected.dtype), expected, atol=atol, rtol=rtol, check_stride=False
    )


def dit_config(about: dict[str, Any]) -> DiTConfig:
    c = about["config"]
    assert c["patch_size"] == [1, 2, 2]
    assert c["qk_norm"]
    assert c["cross_attn_norm"]
    same = {f.name for f in fields(DiTConfig)} & c.keys()
    return DiTConfig(
        **{k: c[k] for k in same},
        layers=c["num_layers"],
        heads=c["num_heads"],
        control_channels={"cam": CAM_CHANNELS, "act": ACT_CHANNELS}[c["control_type"]],
    )


def dit(names: str) -> DiT:
    """A DiT with the weights that a fixture names: "a" or "a + delta of it"."""
    return _dit(tuple(part.strip() for part in names.split("+")))


@cache
def _dit(names: tuple[str, ...]) -> DiT:
    parts = [fixture(name) for name in names]
    model = DiT(dit_config(parts[-1].about)).eval()
    model.load_state_dict({k: v for part in parts for k, v in part.tensors.items()})
    return model


def vae_config(about: dict[str, Any]) -> VAEConfig:
    c = about["config"]
    return VAEConfig(
        dim=c["dim"],
        z_dim=c["z_dim"],
        mult=tuple(c["dim_mult"]),
        res_blocks=c["num_res_blocks"],
        temporal=tuple(c["temperal_downsample"]),
        mean=tuple(about["latent_mean"]),
        std=tuple(about["latent_std"]),
    )


@cache
def vae(name: str) -> VAE:
    weights = fixture(name)
    model = VAE(vae_config(weights.about)).eval()
    model.load_state_dict(weights.tensors)
    return model


def umt5_config(about: dict[str, Any]) -> UMT5Config:
    c = about["config"]
    assert not c["shared_pos"]
    return UMT5Config(
        vocab=c["vocab"],
        dim=c["dim"],
        attn_dim=c["dim_attn"],
        ffn_dim=c["dim_ffn"],
        heads=c["num_heads"],
        layers=c["num_layers"],
        buckets=c["num_buckets"],
    )
