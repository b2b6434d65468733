import pytest
import torch
from torch import Tensor

from pipeline.lingbot.errors import LingBotError
from pipeline.lingbot.vae import VAE, State, state_tensors, to_uint8
from tests.pipeline.lingbot.reference import close, fixture, vae

ENCODE, DECODE = fixture("vae_encode"), fixture("vae_decode")
Z = DECODE["z"][None]


def model() -> VAE:
    return vae(DECODE.about["weights"])


# Encoding


def test_an_image_and_a_clip_encode_to_the_reference_latents() -> None:
    m = vae(ENCODE.about["weights"])
    for name in ("image", "clip9"):
        latent, _ = m.encode(ENCODE[name][None])
        close(latent[0], ENCODE[f"{name}_latent"])
    mean, logvar, _ = m.moments(ENCODE["clip9"][None], None)
    close(mean[0], ENCODE["clip9_mu_raw"])
    close(logvar[0], ENCODE["clip9_logvar_raw"])


def test_the_condition_video_of_image_and_zeros_encodes_to_the_reference_latents() -> None:
    expected = ENCODE["cond21_latent"]
    latent, _ = vae(ENCODE.about["weights"]).encode(condition_video(expected.shape[1]))
    close(latent[0], expected)


def condition_video(latents: int) -> Tensor:
    image = ENCODE["image"][None]
    return torch.cat([image, image.new_zeros(1, 3, 4 * (latents - 1), *image.shape[3:])], dim=2)


def test_trailing_frames_of_a_first_call_are_dropped_as_in_the_reference() -> None:
    clip = ENCODE["clip9"][None, :, :4]
    latent, _ = vae(ENCODE.about["weights"]).encode(clip)
    close(latent[0], ENCODE["clip_T4_latent_uses_only_first_frame"])


@pytest.mark.parametrize("cuts", [[9, 12], [1, 4, 16], [5, 8, 8], [1, 4, 4, 4, 4, 4]])
def test_streaming_encode_equals_one_shot_encode(cuts: list[int]) -> None:
    m, video = vae(ENCODE.about["weights"]), torch.rand(1, 3, 21, 32, 48) * 2 - 1
    whole, _ = m.encode(video)
    state: State = None
    parts = []
    for part in video.split(cuts, dim=2):
        latent, state = m.encode(part, state)
        parts.append(latent)
    assert torch.equal(torch.cat(parts, dim=2), whole)


def test_part_of_a_latent_in_a_running_stream_is_refused() -> None:
    m = vae(ENCODE.about["weights"])
    _, state = m.encode(ENCODE["image"][None])
    with pytest.raises(LingBotError, match="4 for each latent"):
        m.encode(ENCODE["clip9"][None, :, :3], state)
    with pytest.raises(LingBotError):
        m.encode(ENCODE["clip9"][None, :, :0])


def test_the_encoder_keeps_exactly_the_published_caches() -> None:
    m, expected = vae(ENCODE.about["weights"]), ENCODE.about["enc_cache_shapes_after_3_steps"]
    _, state = m.encode(ENCODE["clip9"][None])
    shapes = [list(t.shape) for t in state_tensors(state)]
    assert shapes == [s for s in expected if s is not None]


# Decoding


def test_the_whole_decode_equals_the_reference() -> None:
    frames, _ = model().decode(Z)
    close(frames[0], DECODE["whole_preclamp"])
    close(frames.clamp(-1, 1).sum()[None], DECODE["whole_clamped_sum"], atol=1e-2)
    first, _ = model().decode(Z[:, :, :1])
    close(first[0].clamp(-1, 1), DECODE["first_frame_only"])


@pytest.mark.parametrize("per_call", [1, 2, None])
@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_latent_by_latent_and_chunk_decode_equal_the_whole(chunk: int, per_call: int) -> None:
    state: State = None
    parts = []
    for start in range(0, Z.shape[2], chunk):
        z = Z[:, :, start : start + chunk]
        frames, state = model().decode(z, state, per_call)
        assert frames.shape[2] == 4 * z.shape[2] - (3 if start == 0 else 0)
        parts.append(frames)
    whole = DECODE["whole_preclamp"]
    close(torch.cat(parts, dim=2)[0], whole)
    if per_call == 1:
        assert torch.equal(torch.cat(parts, dim=2), model().decode(Z)[0])


def test_a_cold_start_in_the_middle_is_another_video() -> None:
    expected = DECODE["mid_chunk_without_cache_preclamp"]
    latents = (expected.shape[1] - 1) // 4 + 1
    cold, _ = model().decode(Z[:, :, latents : 2 * latents])
    close(cold[0], expected)
    warm = DECODE["whole_preclamp"][:, 4 * latents - 3 :][:, : expected.shape[1]]
    assert (warm - cold[0]).abs().max() > 0.01


def test_a_state_is_never_written_to_so_a_step_can_be_taken_again() -> None:
    _, state = model().decode(Z[:, :, :2])
    before = [t.clone() for t in state_tensors(state)]
    once, _ = model().decode(Z[:, :, 2:4], state)
    again, _ = model().decode(Z[:, :, 2:4], state)
    assert torch.equal(once, again)
    assert all(map(torch.equal, before, state_tensors(state)))


def test_the_decoder_keeps_exactly_the_published_caches() -> None:
    shapes = DECODE.about["decoder_cache_shapes"]
    last = max(shapes, key=lambda k: int(k.removeprefix("after_latent_")))
    latents = int(last.removeprefix("after_latent_")) + 1
    _, state = model().decode(Z[:, :, :latents])
    assert [list(t.shape) for t in state_tensors(state)] == [s for s in shapes[last] if s]


def test_the_state_of_a_stream_does_not_grow() -> None:
    state: State = None
    sizes = set()
    for _ in range(4):
        _, state = model().decode(Z[:, :, :3], state)
        sizes.add(sum(t.untyped_storage().nbytes() for t in state_tensors(state)))
    assert sizes == {sum(t.nbytes for t in state_tensors(state))}  # no view of something larger


def test_pictures_are_truncated_to_eight_bits_not_rounded() -> None:
    values = torch.tensor([-2.0, -1.0, 0.0, 0.999, 1.0, 3.0]).reshape(1, 1, 1, 1, 6)
    video = to_uint8(values.expand(1, 3, 1, 1, 6))
    assert video.shape == (1, 1, 1, 6, 3)
    assert video[0, 0, 0, :, 0].tolist() == [0, 0, 127, 254, 255, 255]
