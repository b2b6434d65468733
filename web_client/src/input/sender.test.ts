import { beforeEach, describe, expect, it } from "vitest";
import type { Keys } from "../protocol/messages";
import { FakeClock } from "../testing/fakeClock";
import { KeysSender } from "./sender";

const up = { held: [], presses: {}, axes: {} };
const walking = { held: ["KeyW"], presses: { KeyW: 1 }, axes: {} };

let clock: FakeClock;
let sent: { at: number; keys: Keys }[];
let sender: KeysSender;

beforeEach(() => {
  clock = new FakeClock(1000);
  sent = [];
  sender = new KeysSender(clock, (keys) => sent.push({ at: clock.now() - 1000, keys }));
});

describe("KeysSender", () => {
  it("sends nothing before a connection is acknowledged", () => {
    expect(sender.changed(walking)).toBeNull();
    clock.step(1000);
    expect(sent).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it("repeats a change at 20, 40 and 80 ms, then at 10 Hz while something is held", () => {
    sender.begin(7, 0, up);
    clock.step(1000);
    sent = [];
    expect(sender.changed(walking)).toBe(2);
    clock.step(300);
    expect(sent.map(({ at }) => at - 1000)).toEqual([0, 20, 40, 80, 180, 280]);
    expect(new Set(sent.map(({ keys }) => keys.seq))).toEqual(new Set([2]));
    expect(sent[0]?.keys).toEqual({
      epoch: 0,
      nonce: 7,
      seq: 2,
      held: ["KeyW"],
      presses: { KeyW: 1 },
    });
  });

  it("falls to 2 Hz when nothing is held", () => {
    sender.begin(7, 0, up);
    clock.step(80);
    sent = [];
    clock.step(1500);
    expect(sent.map(({ at }) => at)).toEqual([580, 1080, 1580]);
  });

  it("a stick that is held counts as held", () => {
    sender.begin(7, 0, up);
    sender.changed({ ...up, axes: { forward: 0.5 } });
    clock.step(80);
    sent = [];
    clock.step(200);
    expect(sent).toHaveLength(2);
    expect(sent[0]?.keys.axes).toEqual({ forward: 0.5 });
  });

  it("a change in the middle of a burst begins a burst of its own", () => {
    sender.begin(7, 0, up);
    clock.step(1000);
    sent = [];
    sender.changed(walking);
    clock.step(30);
    sender.changed(up);
    clock.step(100);
    expect(sent.map(({ at, keys }) => [at - 1000, keys.seq])).toEqual([
      [0, 2],
      [20, 2],
      [30, 3],
      [50, 3],
      [70, 3],
      [110, 3],
    ]);
  });

  it("a new epoch changes no seq, and a new connection begins at 1", () => {
    sender.begin(7, 0, walking);
    sender.newEpoch(1);
    clock.step(20);
    expect(sent.at(-1)?.keys).toMatchObject({ epoch: 1, seq: 1 });
    sender.changed(up);
    sender.begin(8, 1, up);
    expect(sent.at(-1)?.keys).toMatchObject({ nonce: 8, epoch: 1, seq: 1 });
  });

  it("is silent after the end", () => {
    sender.begin(7, 0, walking);
    sender.end();
    sent = [];
    clock.step(1000);
    expect(sent).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
