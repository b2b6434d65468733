"""What a player sees: frames grabbed from the page's video, and how they move."""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Page

GRAB = """
count => new Promise((resolve, reject) => {
  const video = document.querySelector("video");
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const frames = [];
  let last = -1;
  const fail = () => reject(new Error(`only ${frames.length} of ${count} frames`));
  const limit = setTimeout(fail, 20000);
  const take = (_, meta) => {
    if (meta.rtpTimestamp !== last) {
      last = meta.rtpTimestamp;
      canvas.width = video.videoWidth; canvas.height = video.videoHeight;
      context.drawImage(video, 0, 0);
      frames.push({rtp: meta.rtpTimestamp, w: canvas.width, h: canvas.height,
                   data: context.getImageData(0, 0, canvas.width, canvas.height).data});
    }
    if (frames.length < count) { video.requestVideoFrameCallback(take); return; }
    clearTimeout(limit);
    const text = bytes => {
      let out = "";
      for (let i = 0; i < bytes.length; i += 32768)
        out += String.fromCharCode(...bytes.subarray(i, i + 32768));
      return btoa(out);
    };
    resolve(frames.map(f => ({...f, data: text(f.data)})));
  };
  video.requestVideoFrameCallback(take);
})
"""


# The same of new frames of the world, as the page knows them, once it has shown some without a
# break: whoever stood still for half a second has let go of what was held. A world that plays
# slowly moves as far from frame to frame; so time is told by their numbers.
GRAB_STEADY = """
count => new Promise((resolve, reject) => {
  const video = document.querySelector("video");
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const BREAK = 0.4 * 90000, AFTER = 12;
  const numbers = new Map();  // of displayed frames, by the moment; known then or later
  let frames = [], skip = 0, last = null, over = false;
  const end = () => {
    over = true;
    clearTimeout(limit);
    video.removeEventListener("veldt-frame", known);
  };
  const limit = setTimeout(() => {
    end();
    reject(new Error(`only ${whole().length} of ${frames.length} frames are known`));
  }, 45000);
  const whole = () => {
    const one = new Map();
    for (const frame of frames) {
      const number = numbers.get(frame.at);
      if (number !== undefined && !one.has(number)) one.set(number, frame);
    }
    return [...one];
  };
  const look = () => {
    const all = whole();
    if (over || all.length < count) return;
    end();
    const {target_fps: fps} = JSON.parse(document.querySelector("[data-hud]").dataset.hud);
    const text = bytes => {
      let out = "";
      for (let i = 0; i < bytes.length; i += 32768)
        out += String.fromCharCode(...bytes.subarray(i, i + 32768));
      return btoa(out);
    };
    resolve(all.map(([number, f]) => ({...f, world: number / fps, data: text(f.data)})));
  };
  const known = ({detail: {frameId, atMs}}) => {
    numbers.set(atMs, Number(frameId));
    look();
  };
  const take = (now, meta) => {
    if (over) return;
    video.requestVideoFrameCallback(take);
    const gap = last === null ? 0 : (meta.rtpTimestamp - last + 2 ** 32) % 2 ** 32;
    last = meta.rtpTimestamp;
    if (gap > BREAK) { frames = []; skip = AFTER; }
    if (skip > 0) { skip -= 1; return; }
    canvas.width = video.videoWidth; canvas.height = video.videoHeight;
    context.drawImage(video, 0, 0);
    frames.push({at: Math.max(now, meta.expectedDisplayTime),
                 rtp: meta.rtpTimestamp, w: canvas.width, h: canvas.height,
                 data: context.getImageData(0, 0, canvas.width, canvas.height).data});
    look();
  };
  video.addEventListener("veldt-frame", known);
  video.requestVideoFrameCallback(take);
})
"""


@dataclass(frozen=True)
class Seen:
    """One displayed frame."""

    rgb: NDArray[np.uint8]  # [h, w, 3]
    rtp: int  # 90 kHz
    world: float | None = None  # seconds of the world, where the page knows which frame it is


def grab_frames(page: Page, count: int) -> list[Seen]:
    """The next `count` different frames that the page displays."""
    return [_seen(frame) for frame in page.evaluate(GRAB, count)]


def grab_steady(page: Page, count: int) -> list[Seen]:
    """The next `count` new frames of the world, shown without a break; they know its time."""
    return [_seen(frame) for frame in page.evaluate(GRAB_STEADY, count)]


def _seen(frame: dict[str, Any]) -> Seen:
    data = np.frombuffer(base64.b64decode(frame["data"]), np.uint8)
    rgb = data.reshape(frame["h"], frame["w"], 4)[..., :3]
    return Seen(rgb, frame["rtp"], frame.get("world"))


def seconds_between(first: Seen, second: Seen) -> float:
    """Time of the world from one frame to another where it is known, else of the media."""
    if first.world is not None and second.world is not None:
        return second.world - first.world
    return ((second.rtp - first.rtp) % 2**32) / 90_000


def _grey(frame: Seen) -> NDArray[np.float64]:
    return frame.rgb[20:140].mean(2)


def shift(first: Seen, second: Seen, reach: int = 24) -> float:
    """How many pixels to the right the picture has moved (half-pixel steps, best match)."""
    one, two = _grey(first), _grey(second)
    edge = reach + 2
    best, best_cost = 0.0, np.inf
    for candidate in np.arange(-reach, reach + 0.1, 0.5):
        whole = int(np.floor(candidate))
        part = candidate - whole
        moved = (1 - part) * np.roll(one, whole, 1) + part * np.roll(one, whole + 1, 1)
        cost = float(np.square(moved - two)[:, edge:-edge].mean())
        if cost < best_cost:
            best, best_cost = float(candidate), cost
    return best


def zoom(first: Seen, second: Seen) -> float:
    """By what factor the picture has grown about its centre (best match)."""
    one, two = first.rgb.mean(2), second.rgb.mean(2)
    height, width = one.shape
    y, x = np.mgrid[0.15:0.85:80j, 0.15:0.85:128j]
    target = two[(y * height).astype(int), (x * width).astype(int)]
    best, best_cost = 1.0, np.inf
    for factor in np.linspace(0.85, 1.2, 71):
        source_y = ((y - 0.5) / factor + 0.5) * height
        source_x = ((x - 0.5) / factor + 0.5) * width
        cost = float(np.square(one[source_y.astype(int), source_x.astype(int)] - target).mean())
        if cost < best_cost:
            best, best_cost = float(factor), cost
    return best


def shift_per_second(frames: list[Seen]) -> float:
    """Median sideways motion of the picture in pixels a second; positive = to the right."""
    pairs = list(itertools.pairwise(frames))
    return float(np.median([shift(a, b) / seconds_between(a, b) for a, b in pairs]))


def zoom_per_second(frames: list[Seen], apart: int = 4) -> float:
    """Median growth of the picture per second (1 = none), over pairs a few frames apart."""
    pairs = list(zip(frames, frames[apart:], strict=False))
    rates = [np.log(zoom(a, b)) / seconds_between(a, b) for a, b in pairs]
    return float(np.exp(np.median(rates)))
