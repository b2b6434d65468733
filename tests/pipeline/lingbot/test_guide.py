"""The program in the guide runs as it stands there, on tiny models: keys in, pictures out."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.lingbot import control, denoise, image, prompt, text_encoder, vae
from pipeline.lingbot.condition import encode_prefix
from pipeline.lingbot.config import DiTConfig, UMT5Config, VAEConfig
from pipeline.lingbot.control import LiveCamera
from pipeline.lingbot.dit import DiT
from pipeline.lingbot.kv_cache import KVPool, Window
from pipeline.lingbot.sampler import NoiseCursor
from tests.pipeline.lingbot.test_weights import write_tokenizer

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "lingbot.md"


def test_the_guides_program_plays_a_session(tmp_path: Path) -> None:
    source = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]
    once, each_chunk = source.split("relative, camera", 1)
    each_chunk = "relative, camera" + each_chunk
    torch.manual_seed(3)
    config = DiTConfig(dim=32, ffn_dim=64, layers=2, heads=2, text_dim=16, text_len=8, freq_dim=16)
    write_tokenizer(tmp_path)
    photo = io.BytesIO()
    Image.linear_gradient("L").resize((96, 64)).save(photo, "JPEG")
    names: dict[str, Any] = {
        **vars(text_encoder),
        **vars(control),
        **vars(image),
        **vars(denoise),
        **vars(vae),
        "encode_prefix": encode_prefix,
        "dit": DiT(config).eval(),
        "vae": vae.VAE(VAEConfig(dim=4)).eval(),
        "umt5": text_encoder.build_umt5(
            UMT5Config(vocab=8, dim=16, attn_dim=16, ffn_dim=32, heads=2, layers=1)
        ),
        "tokenizer": text_encoder.load_tokenizer(tmp_path),
        "prompt": prompt.clean_prompt("a gate"),
        "data": photo.getvalue(),
        "pool": KVPool(config, Window(6, 7, 2), sessions=1, dtype=torch.float32),
        "NoiseCursor": NoiseCursor,
        "seed": 1,
        "camera": LiveCamera(),
        "decoder": None,
        "held": {"KeyW", "KeyL"},
        "height": 32,
        "width": 48,
        "intrinsics": control.scale_intrinsics(torch.tensor(control.DEFAULT_INTRINSICS), 32, 48),
    }
    exec(once, names)
    shapes = []
    for chunk in range(4):
        names["chunk"] = chunk
        exec(each_chunk, names)
        shapes.append(tuple(names["pictures"].shape))
    assert shapes == [(9, 32, 48, 3), *[(12, 32, 48, 3)] * 3]
    pictures = names["pictures"].numpy()
    assert pictures.dtype == np.uint8
    assert pictures.std() > 0
