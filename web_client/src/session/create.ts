import type { Clock } from "../clock";
import type { Created, CreateSession } from "../protocol/messages";
import type { Api } from "./api";
import { passing } from "./trouble";

const PATIENCE_MS = 6000; // a seat that was just left, or a worker that restarts, is there soon
const AGAIN_MS = 500;

/**
 * Open a session; where no seat or no worker is there for a moment, ask again for a while.
 *
 * @param waiting hears what a server that is not ready is doing.
 */
export async function createSession(
  api: Api,
  clock: Clock,
  body: CreateSession,
  waiting: (stage: string) => void,
): Promise<Created> {
  const until = clock.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await api.create(body);
    } catch (error) {
      if (!passing(error) || clock.now() > until) throw error;
      const readiness = await api.readiness();
      if (readiness?.ready === false) waiting(readiness.stage);
      await new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
    }
  }
}
