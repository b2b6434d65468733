import { ChunkPace } from "../hud/chunkPace";
import { DisplayedFrames } from "../hud/frames";
import { percentile, Recent } from "../hud/percentile";
import type { RtcFigures } from "../hud/rtcStats";
import { type Sample, Trace } from "../hud/sparkline";
import { type Slow, Slowness } from "../hud/slowness";
import type { HudSnapshot } from "../hud/snapshot";
import { type Receipt, receiptOf } from "../protocol/codec";
import type { Chunk, FrameReceipt, HelloStatus, Lease } from "../protocol/messages";
import { type Match, RtpOffset } from "../receipts/rtpOffset";

const SAMPLES = 512; // key-to-photon figures are over this many presses at most

const LATE_FRAMES = 8; // displayed, and not known yet what they show

/** Everything that is measured in this page about one session, and what the server says of it. */
export class Meters {
  readonly frames = new DisplayedFrames();
  readonly #slowness = new Slowness();
  readonly #latencies = new Recent(SAMPLES);
  readonly #trace = new Trace();
  readonly #framesCanBeSeen: boolean;
  #offset = new RtpOffset();
  #hello: HelloStatus | null = null;
  #chunk: Chunk | null = null;
  #lease: Lease | null = null;
  #rtc: RtcFigures | null = null;
  #epoch: number | null = null;
  readonly #pace = new ChunkPace();
  #shown: FrameReceipt | null = null;
  #slow: Slow = null;
  #presented: Presented | null = null;
  #unknown: { readonly rtp: number; readonly atMs: number }[] = [];

  /** @param framesCanBeSeen whether this browser tells when a frame is displayed. */
  constructor(framesCanBeSeen: boolean) {
    this.#framesCanBeSeen = framesCanBeSeen;
  }

  get slow(): Slow {
    return this.#slow;
  }

  get epoch(): number | null {
    return this.#epoch;
  }

  get players(): number {
    return this.#lease?.players ?? 1;
  }

  /** A new connection: its RTP offset is another one, and frames before it are no neighbours. */
  reconnected(epoch: number): void {
    this.#offset = new RtpOffset();
    this.#epoch = epoch;
    this.interrupted();
  }

  /** The picture stands for a reason that is nobody's slowness. */
  interrupted(): void {
    this.frames.interrupt();
    this.#rtc = null;
    this.#presented = null;
    this.#pace.reset();
    this.#slow = null;
    this.#slowness.reset();
  }

  hello(message: HelloStatus): void {
    this.#hello = message;
    this.#epoch = message.epoch;
  }

  chunk(message: Chunk, nowMs: number): void {
    this.#chunk = message;
    if (this.#hello !== null) {
      this.#pace.arrived(nowMs, (message.frame_count / this.#hello.fps) * 1000);
    }
  }

  lease(message: Lease): void {
    this.#lease = message;
  }

  newEpoch(epoch: number): void {
    this.#epoch = epoch;
  }

  /** A press is on screen since `atMs`. */
  latency(ms: number, atMs: number): void {
    this.#latencies.add(ms);
    this.#trace.add(atMs, ms);
  }

  /** Key-to-photon of the last half minute. */
  latencies(nowMs: number): readonly Sample[] {
    return this.#trace.since(nowMs);
  }

  /** The server has published frames. @returns which displayed ones that identifies. */
  published(frames: readonly FrameReceipt[]): Shown[] {
    return frames.flatMap((frame) => this.#offset.published(frame).map((match) => this.#saw(match)));
  }

  /**
   * A frame is on screen. @returns which frames that identifies.
   *
   * @param frameAt what the frame with an RTP timestamp says itself that it shows, where frames
   * can; it may become known a moment after the frame was displayed.
   */
  displayed(
    rtp: number | null,
    atMs: number,
    presentedFrames: number,
    frameAt: (rtp: number) => FrameReceipt | null = () => null,
  ): Shown[] {
    this.frames.displayed(atMs, presentedFrames);
    if (rtp !== null) this.#unknown.push({ rtp, atMs });
    const shown: Shown[] = [];
    const unknown = this.#unknown.filter(({ rtp: of, atMs: displayedAtMs }) => {
      const frame = frameAt(of);
      if (frame !== null) shown.push(this.#saw({ frame, displayedAtMs, knownSinceMs: -Infinity }));
      return frame === null;
    });
    this.#unknown = unknown.slice(-LATE_FRAMES);
    if (shown.length > 0) return shown;
    if (rtp === null) return [];
    return this.#offset.displayed(rtp, atMs).map((match) => this.#saw(match));
  }

  /**
   * One reading, about once a second while playing.
   *
   * @param rtc of `getStats`.
   * @param presented what the video element says of its frames: a decoder keeps up where showing
   * them does not. Null where it says nothing.
   */
  read(rtc: RtcFigures, presented: Presented | null): void {
    const before = this.#presented;
    this.#rtc = rtc;
    this.#presented = presented ?? decodedOf(rtc);
    this.#slowness.read(this.#serverFactor(), droppedShare(before, this.#presented));
    this.#slow = this.#slowness.state(this.players);
  }

  get rtc(): RtcFigures | null {
    return this.#rtc;
  }

  snapshot(nowMs: number, rest: SnapshotRest): HudSnapshot {
    const { values, last } = this.#latencies;
    const rtc = this.#rtc;
    const mediaMs =
      this.#chunk === null || this.#hello === null
        ? null
        : (this.#chunk.frame_count / this.#hello.fps) * 1000;
    return {
      ...rest,
      world: this.#hello?.world ?? rest.world,
      epoch: this.#epoch,
      delivered_fps: this.#framesCanBeSeen ? this.frames.fps(nowMs) : (rtc?.decodedFps ?? null),
      target_fps: this.#hello?.fps ?? null,
      key_to_photon_now_ms: last,
      key_to_photon_p50_ms: percentile(values, 0.5),
      key_to_photon_p95_ms: percentile(values, 0.95),
      key_to_photon_samples: values.length,
      chunk_compute_ms: this.#chunk?.compute_ms ?? null,
      compute_factor:
        mediaMs === null || mediaMs === 0 || this.#chunk === null
          ? null
          : this.#chunk.compute_ms / mediaMs,
      real_time_factor: this.#chunk?.real_time_factor ?? null,
      chunk_index: this.#chunk?.index ?? null,
      lease_position: this.#lease?.position ?? null,
      players: this.#lease?.players ?? null,
      frame_interval_p50_ms: this.frames.intervalMs(0.5),
      frame_interval_p99_ms: this.frames.intervalMs(0.99),
      freezes: rtc?.freezes ?? null,
      freeze_seconds: rtc?.freezeSeconds ?? null,
      frames_dropped: this.#presented?.dropped ?? null,
      frames_repeated: this.frames.repeated,
      frame_id: this.#shown?.frame_id ?? null,
      shown_seq: this.#shown === null ? null : receiptOf(this.#shown.receipt).seq,
      codec: rtc?.codec ?? null,
      width: rtc?.width ?? null,
      height: rtc?.height ?? null,
      rtt_ms: rtc?.rttMs ?? null,
      jitter_buffer_ms: rtc?.jitterBufferMs ?? null,
      bitrate_kbps: rtc?.bitrateKbps ?? null,
    };
  }

  /** Slow is what the server says it is and what is seen here: one late chunk is neither. */
  #serverFactor(): number | null {
    const seen = this.#pace.factor;
    if (seen === null || this.#chunk === null) return null;
    return Math.min(seen, this.#chunk.real_time_factor);
  }

  #saw({ frame, displayedAtMs, knownSinceMs }: Match): Shown {
    this.frames.identified(displayedAtMs, frame.frame_id);
    this.#shown = frame;
    return { frameId: frame.frame_id, receipt: receiptOf(frame.receipt), atMs: displayedAtMs, knownSinceMs };
  }
}

/** A displayed frame of which it is known what it shows. */
export interface Shown {
  readonly frameId: string;
  readonly receipt: Receipt;
  readonly atMs: number;
  /** Every frame that was displayed since then is known. */
  readonly knownSinceMs: number;
}

/** What a snapshot says that is not measured here. */
export type SnapshotRest = Pick<
  HudSnapshot,
  "state" | "world" | "session" | "nonce" | "sent_seq" | "transport"
>;

/** Frames that were there to be shown, and those of them that this computer did not show. */
export interface Presented {
  readonly total: number;
  readonly dropped: number;
}

function decodedOf({ decoded, dropped }: RtcFigures): Presented | null {
  return decoded === null || dropped === null ? null : { total: decoded, dropped };
}

function droppedShare(before: Presented | null, now: Presented | null): number | null {
  if (before === null || now === null) return null;
  const total = now.total - before.total;
  return total < 5 ? null : (now.dropped - before.dropped) / total;
}
