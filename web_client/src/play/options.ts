/** What a game needs of the page around it, and what it tells it. */
import type { Clock } from "../clock";
import type { Transport } from "../connection/choose";
import type { DirectHandlers } from "../connection/direct";
import type { MediaConnection } from "../connection/link";
import type { Api } from "../session/api";
import type { SessionStore } from "../session/store";
import type { Shown } from "./meters";

export interface GameOptions {
  readonly clock: Clock;
  readonly api: Api;
  readonly store: SessionStore;
  readonly makeConnection: (handlers: DirectHandlers, transport: Transport) => MediaConnection;
  readonly nonce: () => number;
  /** Whether this browser can play at all. */
  readonly preflight: () => boolean;
  /** Whether this page was reloaded: then a live connection may be its own former self. */
  readonly reloaded: boolean;
  readonly framesCanBeSeen: boolean;
}

export interface GameView {
  /** The facts, the world or the figures have changed. */
  readonly changed: () => void;
  readonly track: DirectHandlers["track"];
  /** The picture is about to go: keep what is on screen. */
  readonly cut: () => void;
  /** The keys that the frame on screen shows. */
  readonly shownKeys: (codes: readonly string[]) => void;
  /** It is known what a frame that was displayed shows. */
  readonly frame: (frame: Shown) => void;
  /** A seat is ready after a wait. */
  readonly turn: () => void;
  /** One line that passes. */
  readonly say: (words: string) => void;
}
