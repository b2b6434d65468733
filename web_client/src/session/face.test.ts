import { describe, expect, it } from "vitest";
import type { State } from "../protocol/messages";
import { type Face, FACES, faceOf, type Facts, type Link, NO_FACTS, takesKeys } from "./face";
import { MOVES } from "./life";

const facts = (some: Partial<Facts>): Facts => ({ ...NO_FACTS, ...some });
const playing = facts({ state: "running", link: "up", played: true });

describe("faceOf", () => {
  it.each<[string, Face, Facts]>([
    ["nothing yet", "arriving", facts({})],
    ["Play was chosen", "checking", facts({ checking: true })],
    ["a link leads elsewhere", "crossroads", facts({ state: "suspended", crossroads: true })],
    ["in line", "waiting", facts({ state: "queued" })],
    ["a seat after a wait", "turn", facts({ state: "admitted", turn: true })],
    ["a seat, no connection yet", "connecting", facts({ state: "admitted", link: "dialing" })],
    ["connected, not known to be", "connecting", facts({ state: "connecting", link: "up" })],
    ["the model state is built", "starting", facts({ state: "starting", link: "up" })],
    ["it runs", "playing", playing],
    ["it runs slowly", "slow", { ...playing, slow: { side: "page" } }],
    ["paused", "paused", { ...playing, state: "suspended", pausedByPlayer: true }],
    ["paused, not confirmed yet", "paused", { ...playing, pausedByPlayer: true }],
    ["going on, not confirmed yet", "playing", { ...playing, state: "suspended" }],
    ["hidden", "hidden", { ...playing, hidden: true }],
    ["hidden while paused", "hidden", { ...playing, hidden: true, pausedByPlayer: true }],
    ["the connection is lost", "reconnecting", { ...playing, state: "suspended", link: "lost" }],
    ["reloaded", "connecting", facts({ state: "suspended", link: "dialing" })],
    ["reloaded and connected", "starting", facts({ state: "suspended", link: "up" })],
    ["another tab has it", "elsewhere", { ...playing, link: "elsewhere" }],
    ["another tab starts it", "elsewhere", facts({ state: "starting", link: "elsewhere" })],
    ["ending", "ended", { ...playing, state: "draining" }],
    ["ended", "ended", { ...playing, state: "failed", reason: "worker_died" }],
    ["ended in another tab", "ended", { ...playing, link: "elsewhere", state: "closed", reason: "left" }],
  ])("%s: %s", (_, face, known) => {
    expect(faceOf(known)).toBe(face);
  });

  it("trouble comes before all else", () => {
    const trouble = { sentence: "s", action: "retry", code: "c", detail: "d" } as const;
    expect(faceOf({ ...playing, trouble })).toBe("error");
  });

  it("has a face for every combination, and reaches every face", () => {
    const seen = new Set<Face>();
    const trouble = { sentence: "s", action: "retry", code: "c", detail: "d" } as const;
    for (const state of [null, ...(Object.keys(MOVES) as State[])]) {
      for (const link of ["none", "dialing", "up", "lost", "elsewhere"] satisfies Link[]) {
        for (const bits of Array.from({ length: 128 }, (__, index) => index)) {
          const face = faceOf(
            facts({
              state,
              link,
              checking: (bits & 1) > 0,
              played: (bits & 2) > 0,
              pausedByPlayer: (bits & 4) > 0,
              hidden: (bits & 8) > 0,
              turn: (bits & 32) > 0,
              crossroads: (bits & 64) > 0,
              slow: (bits & 16) > 0 ? { side: "page" } : null,
            }),
          );
          expect(FACES).toContain(face);
          // Keys never go to a world that this page is not connected to.
          if (takesKeys(face)) expect(link).toBe("up");
          seen.add(face);
        }
      }
    }
    seen.add(faceOf(facts({ trouble })));
    expect([...seen].sort()).toEqual([...FACES].sort());
  });
});
