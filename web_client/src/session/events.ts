import type { Clock } from "../clock";
import { backoffMs } from "../connection/backoff";
import { decode } from "../protocol/codec";
import { NotInSchema } from "../protocol/guard";
import type { SessionEvent, SessionView } from "../protocol/messages";
import { type Api, ApiProblem, type Credentials } from "./api";
import { END_STATE, terminal } from "./life";
import { EventLines } from "./sse";

const POLL_MS = 2000; // while the stream says nothing: a proxy may hold it back
const QUIET_MS = 4000; // the first bytes come at once where nothing is in between
const SILENT_MS = 40_000; // the server writes a comment at least every 15 s

export interface EventHandlers {
  readonly event: (event: SessionEvent) => void;
  readonly view: (view: SessionView) => void;
  /** The session does not exist any more, or is not ours. */
  readonly gone: (problem: ApiProblem) => void;
}

/** What happens to a session, by its event stream, and by asking where that brings nothing. */
export class SessionEvents {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #session: Credentials;
  readonly #handlers: EventHandlers;
  #ended = false;
  #reading: AbortController | null = null;
  #cancelPoll: (() => void) | null = null;
  #heardAt = -Infinity;
  #told = 0; // events of the stream

  constructor(api: Api, clock: Clock, session: Credentials, handlers: EventHandlers) {
    this.#api = api;
    this.#clock = clock;
    this.#session = session;
    this.#handlers = handlers;
  }

  start(): void {
    void this.#follow();
    this.#cancelPoll = this.#clock.after(QUIET_MS, () => void this.#poll());
  }

  stop(): void {
    this.#ended = true;
    this.#reading?.abort();
    this.#cancelPoll?.();
  }

  /** Ask now: something has happened to the connection. News that comes meanwhile is newer than the answer. */
  async ask(): Promise<void> {
    const told = this.#told;
    try {
      const view = await this.#api.view(this.#session);
      if (!this.#ended && told === this.#told) this.#handlers.view(view);
    } catch (error) {
      this.#fault(error);
    }
  }

  async #follow(): Promise<void> {
    for (let attempt = 0; !this.#ended; attempt += 1) {
      await this.#wait(backoffMs(attempt, Math.random()));
      if (this.#over()) return;
      try {
        if (await this.#readOnce()) attempt = 0;
      } catch (error) {
        this.#fault(error);
      }
    }
  }

  /** @returns whether anything was received. */
  async #readOnce(): Promise<boolean> {
    const reading = (this.#reading = new AbortController());
    let any = false;
    let cancelSilence = (): void => undefined;
    const watch = (): void => {
      cancelSilence();
      cancelSilence = this.#clock.after(SILENT_MS, () => {
        reading.abort();
      });
    };
    watch();
    try {
      const response = await this.#api.events(this.#session, reading.signal);
      const lines = new EventLines();
      const decoder = new TextDecoder();
      const reader = response.body?.getReader();
      for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) {
        any = true;
        this.#heardAt = this.#clock.now();
        watch();
        for (const data of lines.push(decoder.decode(chunk.value, { stream: true }))) {
          this.#handle(data);
        }
      }
      return any;
    } catch (error) {
      if (any && !(error instanceof ApiProblem)) return true; // cut off: begin again
      throw error;
    } finally {
      cancelSilence();
      this.#heardAt = -Infinity; // until it is open again, ask
    }
  }

  #handle(data: string): void {
    if (this.#ended) return;
    try {
      const event = decode("SessionEvent", data);
      this.#told += 1;
      this.#handlers.event(event);
    } catch (error) {
      // An event of a newer server: what it means is also in the session's view.
      if (!(error instanceof NotInSchema)) throw error;
      void this.ask();
    }
  }

  async #poll(): Promise<void> {
    if (this.#over()) return;
    if (this.#clock.now() - this.#heardAt > SILENT_MS) await this.ask();
    if (this.#over()) return;
    this.#cancelPoll = this.#clock.after(POLL_MS, () => void this.#poll());
  }

  #over(): boolean {
    return this.#ended;
  }

  #fault(error: unknown): void {
    if (this.#ended || !(error instanceof ApiProblem)) return; // unreachable: the loops try again
    if (error.status === 401 || error.status === 403 || error.status === 404) {
      this.stop();
      this.#handlers.gone(error);
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve));
  }
}

/** What a view says, in the words of the stream. */
export function eventOf(view: SessionView): SessionEvent {
  if (view.reason !== null && terminal(view.status) && END_STATE[view.reason] === view.status) {
    return { event: "ended", reason: view.reason, played_seconds: view.played_seconds };
  }
  if (view.status === "queued" && view.queue_position !== null) {
    const { queue_position, eta_seconds } = view;
    return { event: "queued", queue_position, eta_seconds };
  }
  if (view.status === "admitted" && view.claim_seconds !== null) {
    return { event: "admitted", claim_seconds: view.claim_seconds };
  }
  return { event: "state", state: view.status, stage: view.stage };
}
