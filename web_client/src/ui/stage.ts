import type { Presented } from "../play/meters";
import { fitOf } from "./fit";
import { must } from "./dom";

/** The picture: live video, the last frame while there is none, and the poster behind both. */
export class Stage {
  readonly video: HTMLVideoElement;
  readonly #backdrop: HTMLElement;
  readonly #lastFrame: HTMLCanvasElement;
  #poster: string | null = null;

  constructor() {
    this.video = must("#stage video") as HTMLVideoElement;
    this.#backdrop = must("#stage .backdrop");
    this.#lastFrame = must("#stage canvas") as HTMLCanvasElement;
    const refit = (): void => {
      this.#fit();
    };
    this.video.addEventListener("resize", refit);
    window.addEventListener("resize", refit);
  }

  /** The start picture, blurred behind everything and sharp until the first frame. */
  set poster(address: string | null) {
    if (address === this.#poster) return;
    this.#poster = address;
    const layer = document.createElement("div");
    layer.className = "poster";
    if (address !== null) layer.style.backgroundImage = `url("${encodeURI(address)}")`;
    const before = [...this.#backdrop.children];
    this.#backdrop.append(layer);
    requestAnimationFrame(() => {
      layer.classList.add("there");
    });
    setTimeout(() => {
      for (const old of before) old.remove();
    }, 700);
  }

  /** What is on screen, in the world's own pixels. */
  get picture(): { shown: HTMLVideoElement | HTMLCanvasElement; width: number; height: number } {
    const { video } = this;
    return this.#lastFrame.hidden
      ? { shown: video, width: video.videoWidth, height: video.videoHeight }
      : { shown: this.#lastFrame, width: this.#lastFrame.width, height: this.#lastFrame.height };
  }

  /** What the element says of its frames; null where it counts none. */
  get presented(): Presented | null {
    const { totalVideoFrames: total, droppedVideoFrames: dropped } =
      this.video.getVideoPlaybackQuality();
    return total === 0 ? null : { total, dropped };
  }

  set crisp(crisp: boolean) {
    document.body.classList.toggle("crisp", crisp);
  }

  show(stream: MediaStream): void {
    this.video.srcObject = stream;
    this.video.play().catch((error: unknown) => {
      // A newer stream has taken its place, or the browser wants a gesture: Play was one.
      console.warn("the video does not play:", error);
    });
  }

  /** Keep what is on screen while the video is exchanged. */
  freeze(): void {
    const { videoWidth, videoHeight } = this.video;
    if (videoWidth === 0 || !this.#lastFrame.hidden) return;
    this.#lastFrame.width = videoWidth;
    this.#lastFrame.height = videoHeight;
    this.#lastFrame.getContext("2d")?.drawImage(this.video, 0, 0);
    this.#lastFrame.hidden = false;
  }

  /** Frames come again. */
  thaw(): void {
    this.#lastFrame.hidden = true;
  }

  /** Nothing is left of the world that was shown. */
  clear(): void {
    this.thaw();
    this.video.srcObject = null;
  }

  #fit(): void {
    const { videoWidth: width, videoHeight: height } = this.video;
    const view = { width: window.innerWidth, height: window.innerHeight };
    document.body.dataset["fit"] = fitOf({ width, height }, view);
  }
}

/** Call back for each displayed frame, where the browser can. @returns whether it can. */
export function watchFrames(
  video: HTMLVideoElement,
  displayed: (rtp: number | null, atMs: number, presentedFrames: number) => void,
): boolean {
  if (!framesCanBeSeen()) return false;
  const next = (now: number, frame: VideoFrameCallbackMetadata): void => {
    displayed(frame.rtpTimestamp ?? null, Math.max(now, frame.expectedDisplayTime), frame.presentedFrames);
    video.requestVideoFrameCallback(next);
  };
  video.requestVideoFrameCallback(next);
  return true;
}

export function framesCanBeSeen(): boolean {
  return "requestVideoFrameCallback" in HTMLVideoElement.prototype;
}
