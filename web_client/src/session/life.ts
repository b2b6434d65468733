/** The life of a session as the page mirrors it: the server's own table, from the schema. */
import type { EndReason, State } from "../protocol/messages";
import schema from "../protocol/schema.json";

export const MOVES = schema["x-moves"] as Readonly<Record<State, readonly State[]>>;
export const END_STATE = schema["x-end-states"] as Readonly<Record<EndReason, State>>;

export function terminal(state: State): boolean {
  return MOVES[state].length === 0;
}

/**
 * Whether a session in state `from` can be in state `to` later on; steps in between may have been
 * missed.
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

/** What the word that a session is in state `to` means to whoever has it in state `from`. */
export type Move =
  | "on" // it is where it was, or one or more steps further
  | "late" // it was there before: a message that was overtaken
  | "illegal"; // no session can have been in both: somebody is wrong

export function move(from: State, to: State): Move {
  if (reachable(from, to)) return "on";
  return reachable(to, from) ? "late" : "illegal";
}
