/**
 * Which published frame a displayed one is, where only RTP timestamps travel with the picture.
 *
 * The server says (pts, frame id, receipt) of each frame on the status channel; a displayed frame
 * says its RTP timestamp. Both run at 90 kHz and differ by an offset that the sender chose at
 * random: constant modulo 2³² for one connection. It is taken as known once at least three frames
 * agree on it and no other offset comes near.
 */

import type { FrameReceipt } from "../protocol/messages";

const MODULUS = 2 ** 32;
const AGREEING = 3;
const MAX_PUBLISHED = 256;
const MAX_WAITING = 32;
const COMPARED = 64; // published frames that a displayed one is compared with
const MISSES = 20; // displayed frames in a row without a partner: the offset was wrong

export interface Match {
  readonly frame: FrameReceipt;
  readonly displayedAtMs: number;
}

interface Displayed {
  readonly rtp: number;
  readonly atMs: number;
}

export class RtpOffset {
  readonly #published = new Map<number, FrameReceipt>(); // by pts, oldest first
  #waiting: Displayed[] = []; // displayed, not yet matched; oldest first
  #offset: number | null = null;
  #misses = 0;

  /** RTP timestamp − pts, modulo 2³²; null until it is known. */
  get offset(): number | null {
    return this.#offset;
  }

  /** The server has published a frame. @returns what that settles (a message may come late). */
  published(frame: FrameReceipt): Match[] {
    this.#published.set(frame.pts, frame);
    while (this.#published.size > MAX_PUBLISHED) {
      const [oldest] = this.#published.keys();
      if (oldest !== undefined) this.#published.delete(oldest);
    }
    return this.#settle();
  }

  /** A frame with this RTP timestamp is on screen. @returns what that settles. */
  displayed(rtp: number, atMs: number): Match[] {
    this.#waiting.push({ rtp, atMs });
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      if (this.#offset !== null) this.#misses += 1;
    }
    if (this.#misses >= MISSES) {
      this.#offset = null;
      this.#misses = 0;
    }
    return this.#settle();
  }

  #settle(): Match[] {
    if (this.#offset === null) {
      this.#offset = solve(this.#waiting, [...this.#published.keys()].slice(-COMPARED));
      // No sample is taken of frames that were displayed before the offset was known.
      if (this.#offset !== null) this.#waiting = [];
      return [];
    }
    const matches: Match[] = [];
    const left: Displayed[] = [];
    for (const shown of this.#waiting) {
      const frame = this.#published.get((shown.rtp - this.#offset + MODULUS) % MODULUS);
      if (frame === undefined) left.push(shown);
      else matches.push({ frame, displayedAtMs: shown.atMs });
    }
    this.#waiting = left;
    if (matches.length > 0) this.#misses = 0;
    return matches;
  }
}

function solve(displayed: readonly Displayed[], published: readonly number[]): number | null {
  if (displayed.length < AGREEING || published.length < AGREEING) return null;
  const votes = new Map<number, number>();
  for (const { rtp } of new Map(displayed.map((shown) => [shown.rtp, shown])).values()) {
    for (const pts of published) {
      const offset = (rtp - pts + MODULUS) % MODULUS;
      votes.set(offset, (votes.get(offset) ?? 0) + 1);
    }
  }
  let best: number | null = null;
  let bestVotes = 0;
  let second = 0;
  for (const [offset, count] of votes) {
    if (count > bestVotes) {
      second = bestVotes;
      bestVotes = count;
      best = offset;
    } else if (count > second) {
      second = count;
    }
  }
  // Evenly spaced frames agree on several offsets, a frame apart: then wait for a clear one.
  return bestVotes >= AGREEING && bestVotes >= 2 * second ? best : null;
}
