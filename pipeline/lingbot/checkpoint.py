"""Where the parts of a downloaded model are. Knows files only, so that it imports in no time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.lingbot.errors import BadWeights


@dataclass(frozen=True)
class Checkpoint:
    """Where the four parts of a downloaded model are."""

    dit: Path
    vae: Path
    text_encoder: Path
    tokenizer: Path


_BASES = (
    "",
    "lingbot_world_fast",
    "lingbot-world-base-cam",
)  # where the base repository's files are
_PLACES = {  # as published together, each repository beside the other, or the diffusers conversions
    "dit": (
        "lingbot_world_fast",
        "lingbot-world-fast",
        "diffusion_pytorch_model.safetensors.index.json",
        "diffusion_pytorch_model.safetensors",
        "transformer",
    ),
    "vae": (*(f"{base}/Wan2.1_VAE.pth".lstrip("/") for base in _BASES), "vae"),
    "text_encoder": (
        *(f"{base}/models_t5_umt5-xxl-enc-bf16.pth".lstrip("/") for base in _BASES),
        "text_encoder",
    ),
    "tokenizer": (*(f"{base}/google/umt5-xxl".lstrip("/") for base in _BASES), "tokenizer"),
}


def find_checkpoint(root: Path) -> Checkpoint:
    """The parts below `root`, in any of the layouts in which they were published.

    Raises:
        BadWeights: a part is in none of its places.
    """
    if not root.is_dir():
        raise BadWeights(root, "no such directory")
    found = {
        part: next((root / place for place in places if (root / place).exists()), None)
        for part, places in _PLACES.items()
    }
    if lacking := [part for part, path in found.items() if path is None]:
        places = "; ".join(f"{part}: {' or '.join(_PLACES[part])}" for part in lacking)
        raise BadWeights(root, f"incomplete, looked for {places}")
    return Checkpoint(**{part: path for part, path in found.items() if path is not None})
