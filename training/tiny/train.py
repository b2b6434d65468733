"""Train the neural veldt on pictures of the true renderer, drawn on the fly.

    python -m training.tiny.train --minutes 60                      from scratch
    python -m training.tiny.train --minutes 30 --resume veldt.pt    go on (weights, optimiser)

Every step draws a few random poses (place, heading, pitch, clock), renders them truly and by the
model, and lowers the squared error of pixels and of their differences to the next pixel. One
picture a step trains the encoder too: decode(encode(picture)) gives the picture back, and a mixture
of its latent with the world's decodes to the mixture of both, so that a start picture can dissolve.

The step size is constant, then falls to zero over the last `--decay` of the run. Every two minutes
the checkpoint (float32 weights, optimiser state with bfloat16 moments, log) and the float16 weights
for playing (same name, `.safetensors`) are written. A run is always bounded by `--minutes`.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pipeline.tiny.networks import Veldt
from pipeline.tiny.weights import save_weights
from training.tiny import truth as true_picture
from training.tiny.poses import random_poses

VALIDATION_SEED = 999
ENCODER_SHARE = 0.1  # weight of the encoder's picture in the loss
WARM_UP = 100  # steps


def truth(poses: NDArray[np.float64]) -> Tensor:
    """Return true pictures [n, 3, H, W] in 0..1."""
    return torch.from_numpy(true_picture.render(poses)).float() / 255


def loss_of(picture: Tensor, target: Tensor) -> Tensor:
    """Return squared error plus half the squared error of horizontal and vertical differences."""
    error = picture - target
    across, down = error[..., 1:] - error[..., :-1], error[..., 1:, :] - error[..., :-1, :]
    return error.pow(2).mean() + 0.5 * (across.pow(2).mean() + down.pow(2).mean())


def psnr(picture: Tensor, target: Tensor) -> Tensor:
    """Return the signal-to-noise ratio [n] in dB of pictures [n, 3, H, W]."""
    return -10 * torch.log10((picture.clamp(0, 1) - target).pow(2).mean((1, 2, 3)) + 1e-10)


def as_brought(picture: Tensor, random: np.random.RandomState) -> Tensor:
    """Return a picture [1, 3, H, W] as players may bring it: half are mirrored, tinted, noisy."""
    if random.rand() < 0.5:
        picture = picture[:, torch.from_numpy(random.permutation(3))]
        picture = picture.flip(-1 - random.randint(2)) * (0.3 + 0.7 * random.rand())
        picture = (picture + 0.05 * random.rand() * torch.randn_like(picture)).clamp(0, 1)
    return picture


def make_optimiser(veldt: Veldt) -> torch.optim.Adam:
    """Return Adam with larger steps (`scale`) for the feature maps than for the networks."""
    outlines = veldt.scene.textures
    maps = [p for p in veldt.scene.maps() if p is not outlines]
    taken = {id(p) for p in maps}
    groups = [
        {"params": maps, "scale": 5.0},
        {"params": [p for p in veldt.parameters() if id(p) not in taken], "scale": 1.0},
    ]
    return torch.optim.Adam(groups, lr=1e-3, betas=(0.9, 0.99), eps=1e-10, fused=True)


def compact(state: dict[str, Any]) -> dict[str, Any]:
    """Return an optimiser state whose moments take half the space."""

    def shrink(value: Any) -> Any:
        return value.bfloat16() if isinstance(value, Tensor) and value.ndim else value

    moments = {
        key: {name: shrink(value) for name, value in entry.items()}
        for key, entry in state["state"].items()
    }
    return {**state, "state": moments}


class Trainer:
    """One run: weights, optimiser, random numbers, log."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Start afresh or from `options.resume`."""
        self.options = options
        torch.manual_seed(options.seed)
        self.veldt = Veldt()
        self.optimiser = make_optimiser(self.veldt)
        self.steps, self.log = 0, list[dict[str, float]]()
        if options.resume:
            checkpoint = torch.load(options.resume)
            self.veldt.load_state_dict(checkpoint["weights"])
            self.optimiser.load_state_dict(checkpoint["optimiser"])
            self.steps, self.log = checkpoint["steps"], checkpoint["log"]
        self.first_step, self.average = self.steps, 0.0
        self.random = np.random.RandomState(options.seed + 1 + self.steps)
        self.held_out = random_poses(np.random.RandomState(VALIDATION_SEED), options.held_out)
        self.held_out_pictures = truth(self.held_out)

    def set_rate(self, done: float) -> None:
        """Set step sizes for a run of which the share `done` is over."""
        warm = min(1.0, (self.steps - self.first_step + 1) / WARM_UP)
        fall = min(1.0, (1 - done) / self.options.decay + 1e-3)
        for group in self.optimiser.param_groups:
            group["lr"] = self.options.rate * warm * fall * group["scale"]

    def step(self) -> None:
        """Draw a batch and take one step."""
        poses = random_poses(self.random, self.options.batch)
        target = truth(poses)
        latents = self.veldt.latents(poses)
        brought = as_brought(target[:1], self.random)
        share = max(0.0, self.random.rand() * 2 - 1)  # half the time the picture alone
        mixed = (1 - share) * self.veldt.encoder(brought) + share * latents[1:2]
        mixture = (1 - share) * brought + share * target[1:2]

        pictures = self.veldt.decoder(torch.cat([latents, mixed]))
        loss = loss_of(pictures[:-1], target) + ENCODER_SHARE * loss_of(pictures[-1:], mixture)
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.veldt.parameters(), 1.0)
        self.optimiser.step()
        self.steps += 1
        weight = max(0.01, 1 / (self.steps - self.first_step))
        self.average += weight * (loss.item() - self.average)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return mean dB on held-out poses: decoded, worst picture, draft alone, encoder's trip."""
        decoded, draft, again = [], [], []
        for start in range(0, len(self.held_out), 4):
            target = self.held_out_pictures[start : start + 4]
            features = self.veldt.scene(self.held_out[start : start + 4])
            latents = functional.pixel_unshuffle(features, 2)
            decoded.append(psnr(self.veldt.decoder(latents), target))
            draft.append(psnr(features[:, :3], target))
            again.append(psnr(self.veldt.decoder(self.veldt.encoder(target)), target))
        result = {"psnr": torch.cat(decoded).mean(), "worst": torch.cat(decoded).min()}
        result |= {"draft": torch.cat(draft).mean(), "encoder": torch.cat(again).mean()}
        return {name: round(value.item(), 2) for name, value in result.items()}

    def report(self, minutes: float) -> None:
        """Validate, log and save."""
        entry = {"minutes": round(minutes, 1), "steps": self.steps, "loss": round(self.average, 6)}
        self.log.append(entry | self.validate())
        print(self.log[-1], flush=True)
        self.save()

    def save(self) -> None:
        """Write the checkpoint and the weights for playing."""
        state = {
            "weights": self.veldt.state_dict(),
            "optimiser": compact(self.optimiser.state_dict()),
            "steps": self.steps,
            "log": self.log,
        }
        out: Path = self.options.out
        torch.save(state, f"{out}.tmp")
        os.replace(f"{out}.tmp", out)
        recipe = {
            "script": "training/tiny/train.py",
            "data": "truth.py at random poses",
            "optimiser": "Adam",
        }
        recipe |= {name: getattr(self.options, name) for name in ("batch", "rate", "decay")}
        metadata = {"world": "veldt", "recipe": recipe, "steps": self.steps}
        metadata |= {"seed": self.options.seed, "date": time.strftime("%Y-%m-%d")}
        metadata |= {"training": self.log[-1]}
        save_weights(self.veldt, out.with_suffix(".safetensors"), metadata)

    def run(self) -> None:
        """Train for `options.minutes`, or `options.steps` if those are over sooner."""
        before = self.log[-1]["minutes"] if self.log else 0.0
        begin, next_report = time.time(), 0.5
        most = self.options.steps
        while (minutes := (time.time() - begin) / 60) < self.options.minutes:
            if most is not None and self.steps - self.first_step >= most:
                break
            self.set_rate(minutes / self.options.minutes)
            self.step()
            if minutes > next_report:
                next_report += 1 if next_report < 4 else 2
                self.report(before + minutes)
        self.report(before + (time.time() - begin) / 60)


def parser_of_options() -> argparse.ArgumentParser:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description="Train the neural veldt.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--steps", type=int, help="stop after so many steps, if sooner")
    parser.add_argument("--out", type=Path, default=Path("veldt.pt"))
    parser.add_argument("--resume", type=Path, help="checkpoint to go on from")
    parser.add_argument("--batch", type=int, default=4, help="pictures per step")
    parser.add_argument("--rate", type=float, default=2e-3, help="Adam step size of the networks")
    parser.add_argument(
        "--decay", type=float, default=0.6, help="share of the run with falling rate"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", type=int, default=48, help="poses to validate on")
    return parser


def main() -> None:
    """Parse arguments and train."""
    options = parser_of_options().parse_args()
    torch.set_num_threads(options.threads)
    Trainer(options).run()


if __name__ == "__main__":
    main()
