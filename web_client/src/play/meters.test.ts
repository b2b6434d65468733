import { describe, expect, it } from "vitest";
import { readRtcStats } from "../hud/rtcStats";
import { Meters, type Presented } from "./meters";

/** `getStats` of a decoder that keeps up. */
const decoded = (framesDecoded: number) =>
  readRtcStats([{ type: "inbound-rtp", kind: "video", framesDecoded, framesDropped: 0 }], null);

describe("Meters", () => {
  const slowAfter = (readings: readonly (Presented | null)[]): unknown => {
    const meters = new Meters(true);
    readings.forEach((presented, index) => {
      meters.read(decoded(24 * index), presented);
    });
    return meters.slow;
  };
  const half = (_: unknown, index: number): Presented => ({ total: 24 * index, dropped: 12 * index });

  it("holds this computer for slow where every frame is decoded and half of them are shown", () => {
    expect(slowAfter(Array.from({ length: 5 }, half))).toBeNull();
    expect(slowAfter(Array.from({ length: 6 }, half))).toEqual({ side: "page" });
  });

  it("goes by the decoder where the video element counts nothing", () => {
    expect(slowAfter(Array.from({ length: 9 }, () => null))).toBeNull();
  });

  it("says how many frames were not shown", () => {
    const meters = new Meters(true);
    const rest = { state: "playing", world: null, session: null, nonce: null, sent_seq: null, transport: null } as const;
    expect(meters.snapshot(0, rest).frames_dropped).toBeNull();
    meters.read(decoded(24), { total: 24, dropped: 7 });
    expect(meters.snapshot(0, rest).frames_dropped).toBe(7);
    meters.read(decoded(48), null);
    expect(meters.snapshot(0, rest).frames_dropped).toBe(0);
  });
});
