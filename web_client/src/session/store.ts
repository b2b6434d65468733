/** What survives a reload of this tab: which session it plays. Nothing of it leaves the browser. */
import { type Transport, transportOf } from "../connection/choose";
import type { Credentials } from "./api";

const KEY = "veldt.session";

export interface StoredSession extends Credentials {
  readonly world: string;
  readonly startPoint: string | null;
  readonly transport: Transport;
}

/** The part of `Storage` that is used; a browser may refuse all of it. */
export type Shelf = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class SessionStore {
  readonly #shelf: () => Shelf;
  #memory: StoredSession | null = null;

  /** @param shelf gives the storage; it may throw where storing is forbidden. */
  constructor(shelf: () => Shelf) {
    this.#shelf = shelf;
  }

  load(): StoredSession | null {
    try {
      return parse(this.#shelf().getItem(KEY)) ?? this.#memory;
    } catch {
      return this.#memory; // forbidden: a reload then begins a new session
    }
  }

  save(session: StoredSession): void {
    this.#memory = session;
    try {
      this.#shelf().setItem(KEY, JSON.stringify(session));
    } catch {
      return; // kept for as long as the page lives
    }
  }

  clear(): void {
    this.#memory = null;
    try {
      this.#shelf().removeItem(KEY);
    } catch {
      return; // it was never stored
    }
  }
}

function parse(text: string | null): StoredSession | null {
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { id, token, world, startPoint, transport } = value as Partial<Record<string, unknown>>;
  if (typeof id !== "string" || typeof token !== "string" || typeof world !== "string") return null;
  return {
    id,
    token,
    world,
    startPoint: typeof startPoint === "string" ? startPoint : null,
    transport: transportOf(transport),
  };
}
