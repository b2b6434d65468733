/** What a player takes away: a clip, a picture, a link. Each says in words how it went. */
import { browserClock } from "./clock";
import { ClipRecorder } from "./clips/recorder";
import type { Credentials } from "./session/api";
import type { Copier } from "./ui/copier";
import { watchLink } from "./watch/link";

export class Keepsakes {
  readonly #recorder = new ClipRecorder(browserClock);
  readonly #video: HTMLVideoElement;
  readonly #copier: Copier;
  readonly #say: (words: string) => void;

  constructor(video: HTMLVideoElement, copier: Copier, say: (words: string) => void) {
    this.#video = video;
    this.#copier = copier;
    this.#say = say;
  }

  /** What the page shows now decides what is recorded. */
  follow(now: "plays" | "rests" | "ended" | "none", wanted: boolean): void {
    if (now === "plays" && wanted) this.#recorder.record(this.#video);
    else if (now === "rests") this.#recorder.rest();
    else if (now === "ended") this.#recorder.finish();
    else this.#recorder.forget();
  }

  get hasClip(): boolean {
    return this.#recorder.any;
  }

  async saveClip(name: string): Promise<void> {
    if (!ClipRecorder.possible) {
      this.#say("This browser cannot record WebM video.");
      return;
    }
    const clip = await this.#recorder.clip();
    if (clip === null) {
      this.#say("Nothing is recorded yet.");
      return;
    }
    download(clip.video, fileName(name, "webm"));
    this.#say(`Saved the last ${Math.max(1, Math.round(clip.seconds))} s`);
  }

  /** The picture on screen, as the world made it. */
  async savePicture(name: string, shown: CanvasImageSource, width: number, height: number): Promise<void> {
    if (width === 0 || height === 0) {
      this.#say("There is no picture yet.");
      return;
    }
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    canvas.getContext("2d")?.drawImage(shown, 0, 0);
    const png = await new Promise<Blob | null>((resolve) => {
      canvas.toBlob(resolve, "image/png");
    });
    if (png === null) {
      this.#say("This browser does not give the page its picture.");
      return;
    }
    download(png, fileName(name, "png"));
    this.#say("Saved the picture");
  }

  /** Copy the page's address with the place one plays in. */
  async share(start: string | null): Promise<void> {
    const far = LOOPBACK.has(location.hostname) ? "; it works on this computer only" : "";
    await this.#copier.copy(linkTo(start), `Link copied${far}`);
  }

  /** Copy a link by which others watch. @param ask gives what it needs; null for no session. */
  async invite(ask: () => Promise<Credentials | null>): Promise<void> {
    try {
      const ticket = await ask();
      if (ticket !== null) await this.#copier.copy(watchLink(location.href, ticket), "The link is copied");
    } catch (error) {
      console.warn("inviting:", error);
      this.#say("There is no link at this moment");
    }
  }
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

export function linkTo(start: string | null): string {
  const link = new URL(location.pathname, location.href);
  if (start !== null) link.searchParams.set("start", start);
  return link.href;
}

function fileName(name: string, ending: string): string {
  const now = new Date();
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  const time = `${two(now.getHours())}.${two(now.getMinutes())}.${two(now.getSeconds())}`;
  return `veldt ${name.replace(/[^\w-]+/g, "-")} ${day} ${time}.${ending}`;
}

const KEPT_MS = 60_000; // some browsers ask first where to put it

function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  browserClock.after(KEPT_MS, () => {
    URL.revokeObjectURL(address);
  });
}
