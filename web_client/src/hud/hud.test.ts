import { describe, expect, it } from "vitest";
import { ChunkPace } from "./chunkPace";
import { DisplayedFrames } from "./frames";
import { percentile, Recent } from "./percentile";
import { readRtcStats } from "./rtcStats";
import { lineOf, Trace } from "./sparkline";
import { Slowness } from "./slowness";
import { type HudSnapshot, ROWS } from "./snapshot";

describe("percentile", () => {
  it("is the nearest rank, and null of nothing", () => {
    expect(percentile([], 0.5)).toBeNull();
    expect(percentile([3, 1, 2], 0.5)).toBe(2);
    expect(percentile([1, 2, 3, 4], 0.95)).toBe(4);
    expect(percentile([5], 0)).toBe(5);
  });

  it("is over the newest values only", () => {
    const recent = new Recent(3);
    for (const value of [1, 2, 3, 4]) recent.add(value);
    expect(recent.values).toEqual([2, 3, 4]);
    expect(recent.last).toBe(4);
  });
});

describe("DisplayedFrames", () => {
  it("counts new pictures a second, not the ones that were sent again", () => {
    const frames = new DisplayedFrames();
    expect(frames.fps(0)).toBeNull();
    for (let index = 0; index < 48; index += 1) {
      const at = index * (1000 / 24);
      frames.displayed(at, index);
      frames.identified(at, String(index < 24 ? index : 23));
    }
    expect(frames.repeated).toBe(24);
    expect(frames.fps(1990)).toBe(12);
  });

  it("counts frames whose callback was missed, and takes no interval over them", () => {
    const frames = new DisplayedFrames();
    for (let index = 0; index < 20; index += 1) frames.displayed(index * 40, index);
    frames.displayed(1000, 25);
    expect(frames.intervalMs(0.99)).toBe(40);
    expect(frames.fps(1000)).toBe(26 / 2);
  });

  it("takes no interval across an interruption, and none from a handful of frames", () => {
    const frames = new DisplayedFrames();
    for (let index = 0; index < 20; index += 1) frames.displayed(index * 40, index);
    frames.interrupt();
    expect(frames.intervalMs(0.99)).toBeNull();
    for (let index = 0; index < 5; index += 1) frames.displayed(9000 + index * 40, 100 + index);
    expect(frames.intervalMs(0.99)).toBeNull();
    expect(frames.repeated).toBeNull();
  });
});

describe("ChunkPace", () => {
  it("is time passed over time played", () => {
    const pace = new ChunkPace();
    for (let index = 0; index < 10; index += 1) pace.arrived(index * 200, 100);
    expect(pace.factor).toBe(2);
  });

  it("is not known from a few chunks, nor across a pause", () => {
    const pace = new ChunkPace();
    for (let index = 0; index < 4; index += 1) pace.arrived(index * 200, 100);
    expect(pace.factor).toBeNull();
    for (let index = 0; index < 10; index += 1) pace.arrived(index * 200, 100);
    pace.arrived(9000, 100);
    expect(pace.factor).toBeNull();
  });
});

describe("Slowness", () => {
  it("says which side is slow, with patience in both directions", () => {
    const slowness = new Slowness();
    for (let second = 0; second < 4; second += 1) slowness.read(1.6, 0);
    expect(slowness.state(4)).toBeNull();
    slowness.read(1.6, 0);
    expect(slowness.state(4)).toEqual({ side: "server", percent: 63, players: 4 });
    for (let second = 0; second < 4; second += 1) slowness.read(1.0, 0);
    expect(slowness.state(4)).not.toBeNull();
    slowness.read(1.0, 0);
    expect(slowness.state(4)).toBeNull();
    for (let second = 0; second < 5; second += 1) slowness.read(1.0, 0.5);
    expect(slowness.state(4)).toEqual({ side: "page" });
    slowness.reset();
    expect(slowness.state(4)).toBeNull();
  });

  it("one bad second says nothing", () => {
    const slowness = new Slowness();
    for (let round = 0; round < 20; round += 1) slowness.read(round % 3 === 0 ? 5 : 1, null);
    expect(slowness.state(1)).toBeNull();
  });
});

describe("readRtcStats", () => {
  const report = (bytes: number, decoded: number, at: number): Record<string, unknown>[] => [
    { id: "c", type: "codec", mimeType: "video/VP8" },
    { id: "t", type: "transport", selectedCandidatePairId: "p" },
    { id: "p", type: "candidate-pair", currentRoundTripTime: 0.012 },
    {
      id: "v",
      type: "inbound-rtp",
      kind: "video",
      codecId: "c",
      timestamp: at,
      bytesReceived: bytes,
      framesDecoded: decoded,
      framesDropped: 1,
      freezeCount: 2,
      frameWidth: 256,
      frameHeight: 160,
    },
  ];

  it("reads what is there and takes rates from what has changed", () => {
    const first = readRtcStats(report(1000, 10, 5000), null);
    expect(first).toMatchObject({ codec: "VP8", rttMs: 12, width: 256, bitrateKbps: null });
    const second = readRtcStats(report(126_000, 34, 6000), first);
    expect(second).toMatchObject({ bitrateKbps: 1000, decodedFps: 24, dropped: 1, freezes: 2 });
  });

  it("says null, never 0, for what is not there", () => {
    const nothing = readRtcStats([], null);
    for (const [name, value] of Object.entries(nothing)) {
      if (name !== "atMs") expect(value, name).toBeNull();
    }
  });
});

describe("the rows", () => {
  it("say 'not measured' for everything that is not", () => {
    const empty = new Proxy({} as HudSnapshot, { get: () => null });
    for (const { id, text } of ROWS) expect(text(empty), id).toBe("not measured");
  });

  it("have names of their own", () => {
    expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length);
  });
});

describe("sparkline", () => {
  it("draws the last half minute, now at the right edge", () => {
    const trace = new Trace();
    trace.add(0, 100);
    trace.add(20_000, 200);
    trace.add(35_000, 100);
    expect(trace.since(35_000).map(({ atMs }) => atMs)).toEqual([20_000, 35_000]);
    expect(trace.since(60_000).map(({ atMs }) => atMs)).toEqual([35_000]);
    const line = lineOf(trace.since(35_000), 35_000);
    expect(line).toBe("M150.0 3.3 L300.0 19.6");
  });

  it("one sample is a point, none is nothing", () => {
    expect(lineOf([{ atMs: 0, value: 100 }], 0)).toMatch(/^M(.+) L\1$/);
    expect(lineOf([], 0)).toBe("");
  });
});
