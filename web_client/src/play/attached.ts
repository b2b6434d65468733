import type { DirectHandlers } from "../connection/direct";
import { type LinkHandlers, type MediaConnection, PlayerLink } from "../connection/link";
import type { SessionEvent } from "../protocol/messages";
import type { ApiProblem } from "../session/api";
import { eventOf, SessionEvents } from "../session/events";
import type { StoredSession } from "../session/store";
import type { GameOptions } from "./options";

export type AttachedHandlers = Omit<LinkHandlers, "refused"> & {
  /** Something has happened to the session, whichever way that was learned. */
  readonly event: (event: SessionEvent) => void;
  /** The server knows no such session, or not with this secret. */
  readonly gone: (problem: ApiProblem) => void;
};

/** One session as this page holds it: its connection, and the news of it. */
export class Attached {
  readonly link: PlayerLink;
  readonly #options: GameOptions;
  readonly #handlers: AttachedHandlers;
  #events: SessionEvents | null = null;

  constructor(
    options: GameOptions,
    readonly session: StoredSession,
    handlers: AttachedHandlers,
  ) {
    this.#options = options;
    this.#handlers = handlers;
    const { clock, api, makeConnection, nonce } = options;
    const make = (to: DirectHandlers): MediaConnection => makeConnection(to, session.transport);
    this.link = new PlayerLink(clock, api, session, make, nonce, {
      ...handlers,
      refused: () => {
        this.ask();
      },
    });
  }

  /** Hear the news and connect. @param own see `PlayerLink.dial`. */
  join(own: boolean): void {
    this.follow();
    this.link.dial({ takeOver: false, own });
  }

  /** Hear the news only: there is no seat yet. */
  follow(): void {
    this.#events?.stop();
    this.#events = new SessionEvents(this.#options.api, this.#options.clock, this.session, {
      event: this.#handlers.event,
      view: (view) => {
        this.#handlers.event(eventOf(view));
      },
      gone: this.#handlers.gone,
    });
    this.#events.start();
  }

  /** Ask what has become of the session. */
  ask(): void {
    void this.#events?.ask();
  }

  /** Let go of it; `join` may be called again. */
  part(): void {
    this.#events?.stop();
    this.link.close();
  }
}
