"""The three stages as executors: weights and arithmetic; sessions are the states handed in.

encode and decode run networks, denoise moves the player and renders what is seen. Each stage's
actor has a fixed number of torch threads. torch keeps that number per thread, but a thread's first
use of torch takes the last number set *anywhere*; so it is asked for once before it is set, and no
actor changes it for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import torch

from pipeline.service import Emit
from pipeline.tiny import motion
from pipeline.tiny.cells import cells_of
from pipeline.tiny.controls import Steering
from pipeline.tiny.decoder import FastDecoder
from pipeline.tiny.networks import FRAMES_PER_LATENT, Encoder
from pipeline.tiny.renderer import Renderer
from pipeline.tiny.states import Condition, ConditionRequest, DecodeState, DenoiseState, Latent

Outputs = Mapping[str, object]


@contextmanager
def torch_thread(threads: int) -> Iterator[None]:
    """Enter inference mode on this thread, with that many threads for each of its operations."""
    torch.get_num_threads()  # from here on this thread's number is its own
    torch.set_num_threads(threads)
    with torch.inference_mode():
        yield


class EncodeStage:
    """condition_request → condition."""

    def __init__(self, encoder: Encoder, threads: int) -> None:
        """Share the encoder's weights."""
        self._encoder, self._threads = encoder, threads

    def entered(self) -> AbstractContextManager[object]:
        """Prepare the actor's thread."""
        return torch_thread(self._threads)

    def open(self, start: object) -> object:
        """Need no state."""
        return None

    def run(self, state: object, inputs: Outputs, emit: Emit) -> tuple[Outputs, object]:
        """Encode the start picture, if there is one in the request."""
        request = inputs["condition_request"]
        assert isinstance(request, ConditionRequest)
        if request.picture is None:
            return {"condition": Condition()}, state
        pixels = torch.from_numpy(request.picture.copy()).permute(2, 0, 1)[None].float() / 255
        return {"condition": Condition(cells_of(self._encoder(pixels))[0])}, state

    def release(self, state: object) -> None:
        """Hold nothing."""


class DenoiseStage:
    """condition, control → latent; one deterministic pass, named as in diffusion models."""

    def __init__(self, renderer: Renderer, threads: int) -> None:
        """Share the renderer's weights."""
        self._renderer, self._threads = renderer, threads

    def entered(self) -> AbstractContextManager[object]:
        """Prepare the actor's thread."""
        return torch_thread(self._threads)

    def open(self, start: object) -> object:
        """Begin at the state that the policy gave."""
        assert isinstance(start, DenoiseState)
        return start

    def run(self, state: object, inputs: Outputs, emit: Emit) -> tuple[Outputs, object]:
        """Move the player through one chunk and render what is seen."""
        condition, steering = inputs["condition"], inputs["control"]
        assert isinstance(state, DenoiseState)
        assert isinstance(condition, Condition)
        assert isinstance(steering, Steering)
        players, after = walk(state, steering)
        frames = self._renderer.cells(motion.poses_of(players))
        return {"latent": Latent(frames, condition.start)}, after

    def release(self, state: object) -> None:
        """Hold nothing but numbers."""


class DecodeStage:
    """latent → frames, each as soon as it is ready."""

    def __init__(self, decoder: FastDecoder, threads: int) -> None:
        """Share the decoder's weights."""
        self._decoder, self._threads = decoder, threads

    def entered(self) -> AbstractContextManager[object]:
        """Prepare the actor's thread."""
        return torch_thread(self._threads)

    def open(self, start: object) -> object:
        """Begin at the state that the policy gave."""
        assert isinstance(start, DecodeState)
        return start

    def run(self, state: object, inputs: Outputs, emit: Emit) -> tuple[Outputs, object]:
        """Decode one latent; frames [1, H, W, 3] leave one by one."""
        latent = inputs["latent"]
        assert isinstance(state, DecodeState)
        assert isinstance(latent, Latent)
        start = state.start if latent.start is None else latent.start
        for number in range(FRAMES_PER_LATENT):
            frame = latent.frames[number : number + 1]
            share = state.share_of_start(state.frame + number)
            if start is not None and share > 0:
                frame = torch.lerp(frame, start[None], share)
            emit("frames", self._decoder.pictures(frame))
        return {}, state.after(latent)

    def release(self, state: object) -> None:
        """Hold nothing but a tensor, which goes with the state."""


def walk(state: DenoiseState, steering: Steering) -> tuple[list[motion.Player], DenoiseState]:
    """Return the player at each frame of one chunk, and the state after it."""
    seconds = 1 / state.fps
    wanted, unspent = steering.frames(state.unspent, FRAMES_PER_LATENT, seconds)
    players, player = [], state.player
    for frame in wanted:
        player = motion.step(player, frame, seconds)
        players.append(player)
    return players, DenoiseState(player, state.fps, unspent, state.chunk + 1)
