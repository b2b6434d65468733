import doctest
import importlib

import pytest

from pipeline.lingbot import config
from pipeline.lingbot.config import DiTConfig, UMT5Config, VAEConfig
from pipeline.lingbot.errors import LingBotError

REAL = {
    "patch_embedding.weight": (5120, 36, 1, 2, 2),
    "patch_embedding_wancamctrl.weight": (5120, 1536),
    "text_embedding.0.weight": (5120, 4096),
    "time_embedding.0.weight": (5120, 256),
    "head.head.weight": (64, 5120),
    "blocks.0.ffn.0.weight": (13824, 5120),
    "blocks.39.ffn.0.weight": (13824, 5120),
}


def test_the_real_config_is_inferred_from_shapes_alone() -> None:
    assert config.infer_dit(REAL) == DiTConfig()
    act = REAL | {"patch_embedding_wancamctrl.weight": (5120, 1792)}
    assert config.infer_dit(act).control_channels == 448
    assert config.infer_vae({"encoder.conv1.weight": (96, 3, 3, 3, 3)}) == VAEConfig()
    t5 = {
        "token_embedding.weight": (256384, 4096),
        "blocks.0.pos_embedding.embedding.weight": (32, 64),
        "blocks.23.attn.q.weight": (4096, 4096),
        "blocks.0.attn.q.weight": (4096, 4096),
        "blocks.0.ffn.fc1.weight": (10240, 4096),
    }
    assert config.infer_umt5(t5) == UMT5Config()


@pytest.mark.parametrize(
    "change",
    [
        {"patch_embedding.weight": (5120, 16, 1, 2, 2)},
        {"patch_embedding.weight": (5120, 36)},
        {"patch_embedding_wancamctrl.weight": (5120, 999)},
        {"patch_embedding.weight": (100, 36, 1, 2, 2)},
    ],
)
def test_shapes_of_another_model_are_refused(change: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(LingBotError):
        config.infer_dit(REAL | change)
    for key in REAL.keys() - {"blocks.39.ffn.0.weight"}:
        with pytest.raises(LingBotError, match=key):
            config.infer_dit({k: v for k, v in REAL.items() if k != key})


@pytest.mark.parametrize(
    ("image", "area", "latent"),
    [
        ((480, 832), 480 * 832, (58, 104)),  # not 60: the float formula decides
        ((1080, 1920), 480 * 832, (58, 104)),
        ((512, 512), 480 * 832, (78, 78)),
        ((1080, 1920), 720 * 1280, (90, 160)),
        ((480, 832), 720 * 1280, (90, 156)),
    ],
)
def test_the_latent_size_follows_the_reference_formula(
    image: tuple[int, int], area: int, latent: tuple[int, int]
) -> None:
    assert config.latent_size(*image, area) == latent


def test_the_first_latent_of_a_stream_is_one_frame() -> None:
    assert [config.video_frames(3), config.video_frames(3, first=False)] == [9, 12]
    assert config.video_frames(21) == 81
    assert config.video_frames(0) == 0
    assert config.latent_frames(81) == 21


@pytest.mark.parametrize(
    "module", ["config", "control", "prompt", "rope", "text_encoder", "vae_keys", "weights"]
)
def test_the_examples_in_the_docstrings_are_true(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"pipeline.lingbot.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
