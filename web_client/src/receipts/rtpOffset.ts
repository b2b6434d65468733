/**
 * Which published frame a displayed one is, where only RTP timestamps travel with the picture.
 *
 * The server says (pts, frame id, receipt) of each frame on the status channel; a displayed frame
 * says its RTP timestamp. Both run at 90 kHz and differ by an offset that the sender chose at
 * random: constant modulo 2³² for one connection. It is taken as known once at least three frames
 * agree on it and no other offset comes near. From then on it may move a little: through LiveKit a
 * timestamp is a whole number of milliseconds of a clock that libwebrtc keeps adjusting. An offset
 * that most frames fit only nearly, or not at all, is one of some frames' distance: it is given up.
 */

import type { FrameReceipt } from "../protocol/messages";

const MODULUS = 2 ** 32;
const AGREEING = 3;
const AGREEING_COARSE = 6; // of whole milliseconds, three agree by chance on many an offset
const TICKS_PER_MS = 90;
const DOUBT = 12; // frames that do not fit exactly add two, others take one back
const MAX_PUBLISHED = 256;
const MAX_WAITING = 32;
const COMPARED = 64; // published frames that a displayed one is compared with
const TOLERANCE = 180; // 2 ms; frames are further apart than twice that
const MISSES = 20; // displayed frames in a row without a partner: the offset was wrong

export interface Match {
  readonly frame: FrameReceipt;
  readonly displayedAtMs: number;
  /** Every frame that was displayed since then is known, or will be. */
  readonly knownSinceMs: number;
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
  #doubt = 0;
  #knownSinceMs = Infinity;

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
    if (this.#waiting.length > MAX_WAITING) this.#missed(1);
    if (this.#misses >= MISSES) this.#giveUp();
    return this.#settle();
  }

  #giveUp(): void {
    this.#offset = null;
    this.#misses = this.#doubt = 0;
  }

  /** The oldest frames that wait will never be known. */
  #missed(count: number): void {
    const last = this.#waiting.splice(0, count).at(-1);
    if (this.#offset === null || last === undefined) return;
    this.#misses += count;
    this.#knownSinceMs = last.atMs;
  }

  #settle(): Match[] {
    if (this.#offset === null) {
      this.#offset = solve(this.#waiting, [...this.#published.keys()].slice(-COMPARED));
      if (this.#offset === null) return [];
      // No sample is taken of frames that were displayed before the offset was known.
      this.#knownSinceMs = this.#waiting.at(-1)?.atMs ?? Infinity;
      this.#waiting = [];
      return [];
    }
    const matches: Match[] = [];
    for (let at = 0; at < this.#waiting.length; at += 1) {
      const shown = this.#waiting[at];
      const before = this.#offset;
      const frame = shown && this.#find(shown.rtp);
      if (shown === undefined || frame === undefined) continue;
      this.#missed(at); // the server speaks in order: those before it are not coming any more
      this.#waiting.shift();
      this.#misses = 0;
      this.#doubt = Math.max(0, this.#doubt + 2 * at + (this.#offset === before ? -1 : 2));
      if (this.#doubt >= DOUBT) {
        this.#giveUp();
        return matches;
      }
      at = -1;
      matches.push({ frame, displayedAtMs: shown.atMs, knownSinceMs: this.#knownSinceMs });
    }
    return matches;
  }

  /** The published frame that has this RTP timestamp; the offset follows it. */
  #find(rtp: number): FrameReceipt | undefined {
    if (this.#offset === null) return undefined;
    const pts = (rtp - this.#offset + MODULUS) % MODULUS;
    const exact = this.#published.get(pts);
    if (exact !== undefined) return exact;
    for (const [near, frame] of this.#published) {
      if (distance(near, pts) > TOLERANCE) continue;
      this.#offset = (rtp - near + MODULUS) % MODULUS;
      return frame;
    }
    return undefined;
  }
}

function distance(one: number, other: number): number {
  const ahead = (one - other + MODULUS) % MODULUS;
  return Math.min(ahead, MODULUS - ahead);
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
  let best = 0;
  let bestVotes = 0;
  for (const [offset, count] of votes) {
    if (count > bestVotes) [best, bestVotes] = [offset, count];
  }
  const others = [...votes].filter(([offset]) => distance(offset, best) > TOLERANCE);
  const second = Math.max(0, ...others.map(([, count]) => count));
  // Evenly spaced frames agree on several offsets, a frame apart: then wait for a clear one.
  const coarse = published.every((pts) => pts % TICKS_PER_MS === 0);
  const least = coarse ? AGREEING_COARSE : AGREEING;
  return bestVotes >= least && bestVotes >= 2 * second ? best : null;
}
