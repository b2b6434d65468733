import type { Clock } from "../clock";
import { WebmTail } from "./webm";

export const CLIP_MS = 15_000;
const KEY_FRAME_MS = 2000;
const SLICE_MS = 1000;
const FLUSH_MS = 5000; // what was recorded a moment ago comes within this, on a busy machine too
const BITS_PER_SECOND = 4_000_000;
const KINDS = ["video/webm;codecs=vp8", "video/webm;codecs=vp9", "video/webm"];

/** Keeps the last seconds of what is on screen, to be saved as a video. */
export class ClipRecorder {
  readonly #clock: Clock;
  #recorder: MediaRecorder | null = null;
  #stream: MediaStream | null = null;
  #tail: WebmTail | null = null;
  #order: Promise<void> = Promise.resolve(); // pieces are read one after the other
  #rested = 0; // ms
  #restsSince: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether this browser can. */
  static get possible(): boolean {
    return kind() !== null;
  }

  /** Whether there is anything to save. */
  get any(): boolean {
    return this.#tail !== null;
  }

  /** Record what this element shows, until `rest` or `forget`. */
  record(video: HTMLVideoElement): void {
    const stream = video.srcObject;
    const mimeType = kind();
    if (!(stream instanceof MediaStream) || mimeType === null) return;
    if (this.#recorder !== null && this.#stream === stream && this.#recorder.state !== "inactive") {
      if (this.#recorder.state === "paused") this.#recorder.resume();
      this.#rested = this.#restedUntilNow();
      this.#restsSince = null;
      return;
    }
    this.forget();
    this.#stream = stream;
    this.#begin(captured(video) ?? stream, mimeType);
  }

  /** Nothing moves: the time that passes is no part of the clip. */
  rest(): void {
    if (this.#recorder?.state !== "recording") return;
    this.#recorder.pause();
    this.#restsSince = this.#clock.now();
  }

  /** The world has ended; its last seconds can still be saved. */
  finish(): void {
    if (this.#recorder !== null && this.#recorder.state !== "inactive") this.#recorder.stop();
    this.#recorder = null;
    this.#stream = null;
  }

  /** Another world begins. */
  forget(): void {
    this.finish();
    this.#tail = null;
  }

  /** @returns the last 15 s, or what there is of them; null where nothing was recorded. */
  async clip(): Promise<{ video: Blob; seconds: number } | null> {
    await this.#flushed();
    await this.#order;
    const clip = this.#tail?.clip(CLIP_MS) ?? null;
    if (clip === null) return null;
    const seconds = Math.min(CLIP_MS, clip.ms) / 1000;
    return { video: new Blob([clip.file], { type: "video/webm" }), seconds };
  }

  #restedUntilNow(): number {
    const since = this.#restsSince;
    return this.#rested + (since === null ? 0 : this.#clock.now() - since);
  }

  #begin(stream: MediaStream, mimeType: string): void {
    const tail = new WebmTail(CLIP_MS + 3 * KEY_FRAME_MS);
    this.#rested = 0;
    this.#restsSince = null;
    const options: MediaRecorderOptions & { videoKeyFrameIntervalDuration: number } = {
      mimeType,
      videoBitsPerSecond: BITS_PER_SECOND,
      videoKeyFrameIntervalDuration: KEY_FRAME_MS,
    };
    try {
      const recorder = new MediaRecorder(stream, options);
      recorder.addEventListener("dataavailable", ({ data }) => {
        this.#order = this.#order.then(async () => {
          // On a clock that stands while nothing moves: a pause makes nothing old.
          const at = this.#clock.now() - this.#restedUntilNow();
          tail.push(new Uint8Array(await data.arrayBuffer()), at);
        });
      });
      recorder.start(SLICE_MS);
      this.#recorder = recorder;
      this.#tail = tail;
    } catch (error) {
      console.warn("no clips here:", error); // the button says so in words
    }
  }

  /** Wait for what the recorder still holds. */
  #flushed(): Promise<void> {
    const recorder = this.#recorder;
    if (recorder === null || recorder.state === "inactive") return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(FLUSH_MS, resolve);
      recorder.addEventListener(
        "dataavailable",
        () => {
          cancel();
          resolve();
        },
        { once: true },
      );
      recorder.requestData();
    });
  }
}

function kind(): string | null {
  if (!("MediaRecorder" in window)) return null;
  return KINDS.find((one) => MediaRecorder.isTypeSupported(one)) ?? null;
}

/** What the element shows as a stream of its own, where it can give one. */
function captured(video: HTMLVideoElement): MediaStream | null {
  const capable = video as HTMLVideoElement & { captureStream?: () => MediaStream };
  try {
    return capable.captureStream?.() ?? null;
  } catch {
    return null;
  }
}
