/** The life of a session as the page mirrors it: the server's own table, from the schema. */
import type { EndReason, State } from "../protocol/messages";
import schema from "../protocol/schema.json";

export const MOVES = schema["x-moves"] as Readonly<Record<State, readonly State[]>>;
export const END_STATE = schema["x-end-states"] as Readonly<Record<EndReason, State>>;

export function terminal(state: State): boolean {
  return MOVES[state].length === 0;
}

/**
 * Whether a session in state `from` can be in state `to` later on. Steps in between may have
 * been missed; a step back that the table does not know is an old message that came late.
 */
export function reachable(from: State, to: State): boolean {
  const seen = new Set<State>([from]);
  const queue: State[] = [from];
  for (let state = queue.pop(); state !== undefined; state = queue.pop()) {
    if (state === to) return true;
    for (const next of MOVES[state]) {
      if (seen.has(next)) continue;
      seen.add(next);
      queue.push(next);
    }
  }
  return false;
}
