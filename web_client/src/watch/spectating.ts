/** Somebody who watches a session, and plays it once the player hands over. Knows no DOM element. */
import type { Clock } from "../clock";
import { backoffMs } from "../connection/backoff";
import { Call } from "../connection/call";
import type { DirectHandlers, Gone } from "../connection/direct";
import type { MediaConnection } from "../connection/link";
import { Controls } from "../play/controls";
import { receiptOf } from "../protocol/codec";
import type { EndReason, StatusMessage } from "../protocol/messages";
import { type Api, ApiProblem, type Credentials } from "../session/api";

export type Seat = "connecting" | "watching" | "playing" | "reconnecting" | "ended";

export interface SpectatingView {
  readonly changed: (seat: Seat) => void;
  readonly track: DirectHandlers["track"];
  readonly cut: () => void;
  readonly shownKeys: (codes: readonly string[]) => void;
}

/** What ends it for good: the session is over, or this link never led to one. */
const OVER = new Set(["session_ended", "unknown_session", "no_spectators"]);

export class Spectating {
  readonly controls: Controls;
  readonly #clock: Clock;
  readonly #api: Api;
  readonly #ticket: Credentials;
  readonly #make: (handlers: DirectHandlers) => MediaConnection;
  readonly #nonce: () => number;
  readonly #view: SpectatingView;
  #call: Call | null = null;
  #attempts = 0;
  #seat: Seat = "connecting";

  constructor(
    clock: Clock,
    api: Api,
    ticket: Credentials,
    make: (handlers: DirectHandlers) => MediaConnection,
    nonce: () => number,
    view: SpectatingView,
  ) {
    this.#clock = clock;
    this.#api = api;
    this.#ticket = ticket;
    this.#make = make;
    this.#nonce = nonce;
    this.#view = view;
    this.controls = new Controls(clock, (keys) => this.#call?.connection.sendKeys(keys));
  }

  get seat(): Seat {
    return this.#seat;
  }

  /** Why it is over, where the session has said it. */
  reason: EndReason | null = null;

  async start(): Promise<void> {
    const call = new Call(this.#clock, this.#make, {
      track: this.#view.track,
      open: () => {
        this.#opened();
      },
      status: (message) => {
        this.#heard(message);
      },
      permitted: (may) => {
        if (!may) this.#watch();
      },
      gone: (why) => {
        this.#gone(why);
      },
    });
    this.#call = call;
    try {
      await call.join(() => this.#api.watch(this.#ticket));
    } catch (error) {
      if (call.over) return;
      if (error instanceof ApiProblem && OVER.has(error.code)) this.#end(null);
      else this.#gone("no-path");
    }
  }

  /** A frame is on screen. */
  displayed(rtp: number | null, atMs: number): void {
    const known = rtp === null ? null : this.#call?.connection.frameAt(rtp);
    if (!known) return;
    this.#view.shownKeys(this.controls.displayed(receiptOf(known.receipt), atMs).shown);
  }

  close(): void {
    this.#watch();
    this.#call?.hangUp();
    this.#call = null;
  }

  #opened(): void {
    this.#attempts = 0;
    this.#watch();
  }

  #heard(message: StatusMessage): void {
    // Only whoever has the controls is greeted.
    if (message.type === "hello") this.#play();
    if (message.type === "state" && message.reason !== null) this.#end(message.reason);
  }

  #play(): void {
    const nonce = this.#nonce();
    this.#call?.introduce(nonce, (epoch) => {
      this.controls.begin(nonce, epoch);
      this.#set("playing");
    });
  }

  #watch(): void {
    this.#call?.quiet();
    this.controls.end();
    this.#view.shownKeys([]);
    if (this.#seat !== "ended") this.#set("watching");
  }

  #gone(why: Gone): void {
    this.controls.end();
    this.#view.cut();
    this.#call?.hangUp();
    this.#call = null;
    this.#set(this.#seat === "connecting" ? "connecting" : "reconnecting");
    this.#attempts += why === "no-path" ? 1 : 0;
    this.#clock.after(backoffMs(this.#attempts, Math.random()), () => void this.start());
  }

  #end(reason: EndReason | null): void {
    this.reason = reason;
    this.#set("ended");
    this.close();
  }

  #set(seat: Seat): void {
    if (seat === this.#seat && seat !== "connecting") return;
    this.#seat = seat;
    this.#view.changed(seat);
  }
}
