import { transportOf } from "../connection/choose";
import type { Created } from "../protocol/messages";
import { patiently } from "../session/patience";
import type { StoredSession } from "../session/store";
import type { GameOptions } from "./options";

export interface Seat {
  readonly session: StoredSession;
  readonly created: Created;
}

/** The player has thought better of it while the service was being asked. */
class Withdrawn extends Error {}

/** Sessions asked for and given back. One wish counts at a time, the newest. */
export class Seats {
  readonly #options: Pick<GameOptions, "api" | "clock">;
  readonly #preparing: (stage: string) => void;
  #asked = 0;
  #leaving: Promise<void> = Promise.resolve();

  /** @param preparing hears what a service that is not ready is doing. */
  constructor(options: Pick<GameOptions, "api" | "clock">, preparing: (stage: string) => void) {
    this.#options = options;
    this.#preparing = preparing;
  }

  /** @returns a session, or null where another wish has taken the place of this one. */
  async ask(world: string | null, startPoint: string | null): Promise<Seat | null> {
    const { api, clock } = this.#options;
    const asked = ++this.#asked;
    const still = (): boolean => asked === this.#asked;
    try {
      await this.#leaving;
      const body = { world, start_point: startPoint };
      const create = (): Promise<Created> => {
        if (!still()) throw new Withdrawn();
        return api.create(body);
      };
      const created = await patiently(api, clock, create, this.#preparing);
      const session = sessionOf(created, startPoint);
      if (still()) return { session, created };
      void this.giveBack(session); // nobody waits for it any more
      return null;
    } catch (error) {
      if (error instanceof Withdrawn || !still()) return null;
      throw error;
    }
  }

  /** Forget what was asked for. */
  withdraw(): void {
    this.#asked += 1;
  }

  /** End a session; the next one is asked for when it is gone. */
  giveBack(session: StoredSession): Promise<void> {
    this.#leaving = this.#options.api.close(session).catch((error: unknown) => {
      // Unreachable or gone already: the server's own limits end it.
      console.warn("closing the session:", error);
    });
    return this.#leaving;
  }
}

function sessionOf(created: Created, startPoint: string | null): StoredSession {
  return {
    id: created.session_id,
    token: created.session_token,
    world: created.world,
    startPoint,
    transport: transportOf(created.transport),
  };
}
