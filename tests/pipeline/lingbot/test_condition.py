import torch

from pipeline.lingbot.condition import PREFIX_LATENTS, encode_prefix
from pipeline.lingbot.config import VAEConfig
from pipeline.lingbot.vae import VAE
from tests.pipeline.lingbot.reference import fixture, vae


def tiny() -> VAE:
    return vae(fixture("vae_encode").about["weights"])


def image(seed: int) -> torch.Tensor:
    return torch.rand(3, 32, 48, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def test_condition_latents_from_29_on_are_constant_and_know_no_image() -> None:
    whole = [encode_prefix(tiny(), image(seed), latents=34).latents for seed in (1, 2)]
    for latents in whole:
        for later in range(PREFIX_LATENTS, 34):
            assert torch.equal(latents[:, later], latents[:, PREFIX_LATENTS - 1])
    assert torch.equal(whole[0][:, 29], whole[1][:, 29])
    assert not torch.equal(whole[0][:, 28], whole[1][:, 28])  # the image is still in sight


def test_the_prefix_serves_every_chunk_as_one_long_encoding_would() -> None:
    short, long = encode_prefix(tiny(), image(1)), encode_prefix(tiny(), image(1), latents=36)
    for start in range(0, 36, 3):
        assert torch.equal(short.condition(start, 3), long.condition(start, 3))
    assert torch.equal(short.condition(3_000_000, 3)[:, 0], short.condition(29, 1)[:, 0])


def test_an_image_prefix_equals_encoding_its_video_at_once() -> None:
    video = torch.cat([image(1)[:, None], torch.zeros(3, 20, 32, 48)], dim=1)
    once, _ = tiny().encode(video[None])
    assert torch.equal(encode_prefix(tiny(), image(1), latents=6).latents, once[0])


def test_the_mask_marks_the_very_first_latent_only() -> None:
    prefix = encode_prefix(tiny(), image(1), latents=4)
    first, second = prefix.condition(0, 3), prefix.condition(3, 3)
    assert first[:4, 0].min() == 1
    assert first[:4, 1:].abs().max() == 0
    assert second[:4].abs().max() == 0


def test_the_receptive_field_of_30_latents_follows_from_the_published_layers() -> None:
    """Counted over the layers, from the last to the first: video frames behind a latent's own."""
    config = VAEConfig()
    head, middle = 2, 2 * 2 * 2
    frames = head + middle + config.res_blocks * 2 * 2
    for temporal in reversed(config.temporal):
        if temporal:
            frames = 2 * frames + 2  # a stride of 2, over the frame before
        frames += config.res_blocks * 2 * 2
    frames += 2  # conv1
    assert frames == 4 * (PREFIX_LATENTS - 1) - 4  # latent 28 sees the image, latent 29 does not
