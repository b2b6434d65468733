import { describe, expect, it } from "vitest";
import type { FrameReceipt } from "../protocol/messages";
import { KeysSeen, TAP_MS } from "./keysSeen";
import { KeyToPhoton, MAX_PENDING } from "./keyToPhoton";
import { RtpOffset } from "./rtpOffset";

describe("KeyToPhoton", () => {
  it("takes one sample a press, at the first frame that covers it", () => {
    const k2p = new KeyToPhoton(7);
    k2p.pressed(3, 1000);
    k2p.pressed(5, 1100);
    expect(k2p.displayed({ nonce: 7, seq: 2 }, 1150)).toEqual([]);
    expect(k2p.displayed({ nonce: 7, seq: 4 }, 1200)).toEqual([200]);
    expect(k2p.displayed({ nonce: 7, seq: 4 }, 1240)).toEqual([]);
    expect(k2p.displayed({ nonce: 7, seq: 9 }, 1300)).toEqual([200]);
  });

  it("takes none from frames of another connection, or of none", () => {
    const k2p = new KeyToPhoton(7);
    k2p.pressed(1, 0);
    expect(k2p.displayed({ nonce: 8, seq: 9 }, 100)).toEqual([]);
    expect(k2p.displayed({ nonce: 0, seq: 0 }, 100)).toEqual([]);
  });

  it("takes none of a press that may have been on screen before frames were known", () => {
    const k2p = new KeyToPhoton(7);
    k2p.pressed(1, 1000);
    k2p.pressed(2, 1300);
    expect(k2p.displayed({ nonce: 7, seq: 2 }, 1400, 1200)).toEqual([100]);
    expect(k2p.displayed({ nonce: 7, seq: 2 }, 1440, 1200)).toEqual([]);
  });

  it("forgets presses that will never be seen", () => {
    const k2p = new KeyToPhoton(7);
    for (let seq = 1; seq <= MAX_PENDING + 10; seq += 1) k2p.pressed(seq, 0);
    expect(k2p.displayed({ nonce: 7, seq: 1000 }, 5)).toHaveLength(MAX_PENDING);
    k2p.pressed(2000, 0);
    k2p.discard();
    expect(k2p.displayed({ nonce: 7, seq: 2000 }, 5)).toEqual([]);
  });
});

describe("KeysSeen", () => {
  it("shows what the frame's control held", () => {
    const seen = new KeysSeen(7);
    seen.sent(1, [], null);
    seen.sent(2, ["KeyW"], "KeyW");
    expect(seen.displayed({ nonce: 7, seq: 1 }, 0)).toEqual([]);
    expect(seen.displayed({ nonce: 7, seq: 2 }, 0)).toEqual(["KeyW"]);
    expect(seen.displayed({ nonce: 7, seq: 2 }, 0)).toEqual(["KeyW"]);
    seen.sent(3, [], null);
    expect(seen.displayed({ nonce: 7, seq: 3 }, 0)).toEqual([]);
  });

  it("shows a tap that was over before its chunk was bound, for about that chunk", () => {
    const seen = new KeysSeen(7);
    seen.sent(1, [], null);
    seen.sent(2, ["KeyL"], "KeyL");
    seen.sent(3, [], null);
    expect(seen.displayed({ nonce: 7, seq: 1 }, 0)).toEqual([]);
    expect(seen.displayed({ nonce: 7, seq: 3 }, 100)).toEqual(["KeyL"]);
    expect(seen.displayed({ nonce: 7, seq: 3 }, 100 + TAP_MS - 1)).toEqual(["KeyL"]);
    expect(seen.displayed({ nonce: 7, seq: 3 }, 100 + TAP_MS)).toEqual([]);
    seen.sent(4, ["KeyA"], "KeyA");
    expect(seen.displayed({ nonce: 7, seq: 4 }, 500)).toEqual(["KeyA"]);
    expect(seen.displayed({ nonce: 7, seq: 4 }, 9500)).toEqual(["KeyA"]);
  });

  it("shows nothing of another connection", () => {
    const seen = new KeysSeen(7);
    seen.sent(1, ["KeyW"], "KeyW");
    expect(seen.displayed({ nonce: 9, seq: 1 }, 0)).toEqual([]);
  });
});

describe("RtpOffset", () => {
  const MODULUS = 2 ** 32;
  // Publish times of a real clock: never quite even.
  const pts = [10_000, 13_744, 17_512, 21_231, 25_011, 28_744, 32_530, 36_219, 40_002, 43_761];
  const frame = (at: number, id: number): FrameReceipt => ({
    pts: at % MODULUS,
    frame_id: String(id),
    receipt: "0",
  });

  it("knows the offset from three agreeing frames, and takes no sample before", () => {
    const offset = 4_294_000_000;
    const rtp = new RtpOffset();
    pts.slice(0, 4).forEach((at, id) => rtp.published(frame(at, id)));
    expect(rtp.displayed(((pts[0] ?? 0) + offset) % MODULUS, 1)).toEqual([]);
    expect(rtp.displayed(((pts[1] ?? 0) + offset) % MODULUS, 2)).toEqual([]);
    expect(rtp.offset).toBeNull();
    expect(rtp.displayed(((pts[2] ?? 0) + offset) % MODULUS, 3)).toEqual([]);
    expect(rtp.offset).toBe(offset);
    expect(rtp.displayed(((pts[3] ?? 0) + offset) % MODULUS, 4)).toMatchObject([
      { frame: { frame_id: "3" }, displayedAtMs: 4 },
    ]);
  });

  it("works across the wrap of both clocks", () => {
    const rtp = new RtpOffset();
    const start = MODULUS - 20_000;
    const found: string[] = [];
    pts.forEach((at, id) => {
      rtp.published(frame(start + at, id));
      for (const match of rtp.displayed((start + at + 123_456) % MODULUS, id)) {
        found.push(match.frame.frame_id);
      }
    });
    expect(rtp.offset).toBe(123_456);
    expect(found).toEqual(["3", "4", "5", "6", "7", "8", "9"]);
  });

  it("settles a frame whose message came after it was displayed, with its display time", () => {
    const rtp = new RtpOffset();
    pts.slice(0, 3).forEach((at, id) => {
      rtp.published(frame(at, id));
      rtp.displayed(at + 5, id);
    });
    expect(rtp.displayed((pts[3] ?? 0) + 5, 777)).toEqual([]);
    expect(rtp.published(frame(pts[3] ?? 0, 3))).toMatchObject([
      { frame: { frame_id: "3" }, displayedAtMs: 777 },
    ]);
  });

  it("does not guess when evenly spaced frames agree on several offsets", () => {
    const rtp = new RtpOffset();
    for (let index = 0; index < 30; index += 1) {
      rtp.published(frame(index * 3750, index));
      rtp.displayed(index * 3750 + 99, index);
    }
    expect(rtp.offset).toBeNull();
  });

  it("follows timestamps that are whole milliseconds of a clock which is adjusted", () => {
    const rtp = new RtpOffset();
    const found: string[] = [];
    let at = 0;
    for (let id = 0; id < 60; id += 1) {
      at += 5580 + 90 * ((id * 37) % 5);
      rtp.published(frame(at, id));
      const moved = 90 * Math.floor(id / 20); // 1 ms at frame 20, 2 ms at frame 40
      found.push(...rtp.displayed(at + 777 + moved, id).map((match) => match.frame.frame_id));
    }
    expect(found).toEqual(Array.from({ length: 54 }, (_, index) => String(index + 6)));
    expect(rtp.offset).toBe(777 + 180);
  });

  it("is neither wrong nor late for long where LiveKit's clock drifts at the start", () => {
    let state = 1;
    const chance = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    let wrong = 0;
    let latest = 0;
    for (let run = 0; run < 400; run += 1) {
      const rtp = new RtpOffset();
      let moved = chance(3);
      let known = Infinity;
      let last = 0;
      for (let id = 0; id < 200; id += 1) {
        // 32 frames a second in whole milliseconds, each some of them early (capture.py).
        last = Math.max(last + 1, Math.floor(1000 + id * 31.25) - chance(5));
        if (id < 12 && chance(3) === 0) moved += 1;
        rtp.published(frame(last * 90, id));
        if (id < 4) continue; // nothing is displayed yet
        for (const match of rtp.displayed((last + moved) * 90 + 777, id)) {
          known = Math.min(known, id);
          if (match.frame.frame_id !== String(id)) wrong += 1;
        }
      }
      latest = Math.max(latest, known);
      expect(rtp.offset).toBe(777 + moved * 90);
    }
    expect(wrong).toBe(0); // of almost 80,000
    expect(latest).toBeLessThan(64);
  });

  it("says since when every displayed frame is known", () => {
    const rtp = new RtpOffset();
    const since: number[] = [];
    pts.forEach((at, id) => {
      if (id !== 6) rtp.published(frame(at, id)); // the message about frame 6 is lost
      since.push(...rtp.displayed(at + 5, 100 + id).map((match) => match.knownSinceMs));
    });
    expect(since).toEqual([102, 102, 102, 106, 106, 106]);
  });

  it("gives up an offset that frames fit only nearly", () => {
    const rtp = new RtpOffset();
    const offsets: (number | null)[] = [];
    pts.forEach((at, id) => {
      rtp.published(frame(at, id));
      rtp.displayed(at + 5 + (id < 3 ? 0 : 50 * (id % 3)), id);
      offsets.push(rtp.offset);
    });
    expect(offsets[2]).toBe(5);
    expect(offsets.slice(3)).toContain(null);
  });

  it("gives up an offset that no frame fits any more, and finds the new one", () => {
    const rtp = new RtpOffset();
    pts.slice(0, 4).forEach((at, id) => {
      rtp.published(frame(at, id));
      rtp.displayed(at + 5, id);
    });
    expect(rtp.offset).toBe(5);
    let at = 1_000_000;
    for (let id = 100; id < 200; id += 1) {
      at += 3700 + ((id * 37) % 101);
      rtp.published(frame(at, id));
      rtp.displayed(at + 70_005, id);
    }
    expect(rtp.offset).toBe(70_005);
  });
});
