import type { Clock } from "../clock";
import type { Command, Connect, Connection, FrameReceipt, Keys, StatusMessage } from "../protocol/messages";
import { type Api, ApiProblem, type Credentials } from "../session/api";
import type { Link } from "../session/face";
import { Call } from "./call";
import type { Asked } from "./commands";
import type { DirectHandlers, Gone } from "./direct";
import { type Outcome, Redial } from "./redial";

/** What a connection brings when it asks where to go. */
export type Offer = Pick<Connect, "sdp" | "frame_metadata">;
export type Answer = (offer: Offer) => Promise<Connection>;

/** What a link needs of a connection; `DirectConnection` and `LiveKitConnection` are two. */
export interface MediaConnection {
  join(answer: Answer): Promise<void>;
  sendKeys(keys: Keys): void;
  sendCommand(command: Command): void;
  /** What the displayed frame with this RTP timestamp shows, where the frames carry it. */
  frameAt(rtpTimestamp: number): FrameReceipt | null;
  /** Who else is there; null where nobody can be. */
  company(): Company | null;
  stats(): Promise<RTCStatsReport | null>;
  close(): void;
}

/** Who is in a session besides the worker, by the names that `grant` takes. */
export interface Company {
  readonly me: string;
  readonly spectators: readonly string[];
}

export interface LinkHandlers {
  /** @param note in words why it is not up yet, where that is known. */
  readonly changed: (link: Link, note: string | null) => void;
  readonly up: (nonce: number, epoch: number) => void;
  readonly track: DirectHandlers["track"];
  /** The picture is about to go. */
  readonly cut: () => void;
  readonly status: (message: StatusMessage) => void;
  /** Connecting makes no sense any more: ask what has become of the session. */
  readonly refused: (problem: ApiProblem) => void;
}

const NO_PATH =
  "No media path yet: something between this page and the server may block UDP. Trying again.";

/** The connection of a session, made again for as long as the session lives. */
export class PlayerLink {
  readonly #clock: Clock;
  readonly #api: Api;
  readonly #session: Credentials;
  readonly #make: (handlers: DirectHandlers) => MediaConnection;
  readonly #nonce: () => number;
  readonly #handlers: LinkHandlers;
  #call: Call | null = null;
  #redial: Redial | null = null;
  #cancelRetry: (() => void) | null = null;
  #takeOver = false;
  #link: Link = "none";

  constructor(
    clock: Clock,
    api: Api,
    session: Credentials,
    make: (handlers: DirectHandlers) => MediaConnection,
    nonce: () => number,
    handlers: LinkHandlers,
  ) {
    this.#clock = clock;
    this.#api = api;
    this.#session = session;
    this.#make = make;
    this.#nonce = nonce;
    this.#handlers = handlers;
  }

  /** @param own whether another live connection may be one of ours, of which only we know the end. */
  dial({ takeOver, own }: { takeOver: boolean; own: boolean }): void {
    this.#hangUp();
    this.#takeOver = takeOver;
    this.#redial = new Redial(own, Math.random);
    this.#set(this.#link === "up" || this.#link === "lost" ? "lost" : "dialing", null);
    void this.#attempt();
  }

  sendKeys(keys: Keys): void {
    this.#call?.connection.sendKeys(keys);
  }

  command(asked: Asked, done?: (epoch: number | null) => void): void {
    this.#call?.command(asked, done);
  }

  frameAt(rtpTimestamp: number): FrameReceipt | null {
    return this.#call?.connection.frameAt(rtpTimestamp) ?? null;
  }

  company(): Company | null {
    return this.#link === "up" ? (this.#call?.connection.company() ?? null) : null;
  }

  async stats(): Promise<RTCStatsReport | null> {
    return (await this.#call?.connection.stats()) ?? null;
  }

  /** Say goodbye. `dial` may be called again. */
  close(): void {
    this.#hangUp();
    this.#redial = null;
  }

  async #attempt(): Promise<void> {
    const call = new Call(this.#clock, this.#make, {
      track: this.#handlers.track,
      open: () => {
        this.#opened(call);
      },
      status: (message) => {
        this.#heard(message);
      },
      gone: (why) => {
        this.#gone(why);
      },
    });
    this.#call = call;
    try {
      await call.join((offer) =>
        this.#api.connect(this.#session, { ...offer, take_over: this.#takeOver }),
      );
    } catch (error) {
      if (call.over) return;
      this.#drop();
      this.#failed(outcomeOf(error), error);
    }
  }

  #opened(call: Call): void {
    const nonce = this.#nonce();
    call.introduce(nonce, (epoch) => {
      this.#takeOver = false;
      this.#set("up", null);
      this.#handlers.up(nonce, epoch);
    });
  }

  #heard(message: StatusMessage): void {
    if (message.type === "error" && message.code === "playing_elsewhere") {
      this.#hangUp();
      this.#set("elsewhere", null);
      return;
    }
    this.#handlers.status(message);
  }

  #gone(why: Gone): void {
    this.#drop();
    if (why === "elsewhere") {
      this.#set("elsewhere", null);
      return;
    }
    if (why !== "no-path") {
      // It was up. What still counts as live over there may be this very connection.
      this.#redial = new Redial(true, Math.random);
      this.#set("lost", null);
    }
    this.#failed({ kind: "failed" }, null, why === "no-path" ? NO_PATH : null);
  }

  #failed(outcome: Outcome, error: unknown, note: string | null = null): void {
    const next = this.#redial?.next(outcome, this.#clock.now());
    switch (next?.kind) {
      case "retry":
        if (note !== null) this.#handlers.changed(this.#link, note);
        this.#cancelRetry = this.#clock.after(next.afterMs, () => void this.#attempt());
        return;
      case "elsewhere":
        this.#set("elsewhere", null);
        return;
      case "give-up":
        if (error instanceof ApiProblem) this.#handlers.refused(error);
        return;
      case undefined:
        return;
    }
  }

  #set(link: Link, note: string | null): void {
    this.#link = link;
    this.#handlers.changed(link, note);
  }

  #drop(): void {
    const call = this.#call;
    this.#call = null;
    if (call === null) return;
    this.#handlers.cut();
    call.hangUp();
  }

  #hangUp(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    this.#drop();
  }
}

/** What a failed attempt means; 4xx but for these will not get better by asking again. */
function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof ApiProblem)) return { kind: "failed" };
  if (error.code === "playing_elsewhere") return { kind: "elsewhere" };
  if (error.status >= 500 || error.status === 408 || error.status === 429) {
    return { kind: "failed" };
  }
  return { kind: "refused", code: error.code };
}
