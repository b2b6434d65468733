import type { Clock } from "../clock";
import { type Api, ApiProblem } from "./api";

const AGAIN_MS = 500;
/** How long to ask again, by what the service answers; for all else once is enough. */
const PATIENCE_MS: Readonly<Record<string, number>> = {
  queue_full: 6000, // a seat that was just left is free in a moment
  no_worker: 90_000, // a world that loads, or one that restarts after a fault
};

/**
 * Ask the service; where no seat or no worker is there for the moment, ask again for a while.
 *
 * @param waiting hears what a server that is not ready is doing.
 */
export async function patiently<Answer>(
  api: Api,
  clock: Clock,
  ask: () => Promise<Answer>,
  waiting: (stage: string) => void,
): Promise<Answer> {
  const began = clock.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const patience = error instanceof ApiProblem ? (PATIENCE_MS[error.code] ?? 0) : 0;
      if (clock.now() - began >= patience) throw error;
      const readiness = await api.readiness();
      if (readiness?.ready === false) waiting(readiness.stage);
      await new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
    }
  }
}
