import { beforeEach, describe, expect, it } from "vitest";
import type { Readiness } from "../protocol/messages";
import { FakeClock } from "../testing/fakeClock";
import { settled } from "../testing/fakeServer";
import { Comeback } from "./comeback";

describe("Comeback", () => {
  let clock: FakeClock;
  let answer: Readiness | null;
  let asked: number;
  let comeback: Comeback;
  const pass = async (ms: number): Promise<void> => {
    for (let gone = 0; gone < ms; gone += 500) {
      clock.step(500);
      await settled();
    }
  };

  beforeEach(() => {
    clock = new FakeClock();
    answer = { ready: false, stage: "loading", progress: null };
    asked = 0;
    const readiness = (): Promise<Readiness | null> => {
      asked += 1;
      return Promise.resolve(answer);
    };
    comeback = new Comeback({ readiness }, clock, () => undefined);
  });

  it("says what the service does, that it is ready, and then asks no more", async () => {
    comeback.wanted = true;
    expect(comeback.awaited).toEqual({ ready: false, stage: null });
    await pass(1000);
    expect(comeback.awaited).toEqual({ ready: false, stage: "loading" });
    answer = null; // no answer at all
    await pass(1000);
    expect(comeback.awaited).toEqual({ ready: false, stage: null });
    answer = { ready: true, stage: "ready", progress: null };
    await pass(1000);
    expect(comeback.awaited?.ready).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it("asks nobody while the page is hidden or nothing is waited for", async () => {
    comeback.awake = false;
    comeback.wanted = true;
    await pass(5000);
    expect(asked).toBe(0);
    comeback.awake = true;
    await pass(1000);
    expect(asked).toBe(1);
    comeback.wanted = false;
    expect(comeback.awaited).toBeNull();
    expect(clock.pending).toBe(0);
  });

  it("asks more rarely once it has taken long", async () => {
    comeback.wanted = true;
    await pass(60_000);
    const before = asked;
    await pass(40_000);
    expect(asked - before).toBeLessThan(15);
  });

  it("an answer that comes when nobody waits any more counts for nothing", async () => {
    comeback.wanted = true;
    clock.step(500);
    comeback.wanted = false;
    await settled();
    expect(comeback.awaited).toBeNull();
    expect(clock.pending).toBe(0);
  });
});
