import { describe, expect, it } from "vitest";
import { type Element, element, readNumber } from "./ebml";
import { type Clip, WebmTail } from "./webm";

const UNKNOWN = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
const one = (id: number[], ...content: number[]): number[] => [...id, 0x80 | content.length, ...content];
const INFO = one([0x15, 0x49, 0xa9, 0x66], ...one([0x2a, 0xd7, 0xb1], 0x0f, 0x42, 0x40));
const HEADER = [
  ...one([0x1a, 0x45, 0xdf, 0xa3], 1, 2),
  ...[0x18, 0x53, 0x80, 0x67],
  ...UNKNOWN,
  ...INFO,
  ...one([0x16, 0x54, 0xae, 0x6b], 9, 9, 9),
];
const block = (relativeMs: number, ...data: number[]): number[] =>
  one([0xa3], 0x81, relativeMs >> 8, relativeMs & 0xff, 0x80, ...data);
/** A cluster of blocks every 250 ms, `seconds` long. */
const cluster = (ms: number, seconds: number, size: number[] | null = UNKNOWN): number[] => {
  const content = one([0xe7], (ms >> 16) & 0xff, (ms >> 8) & 0xff, ms & 0xff);
  for (let at = 0; at < seconds * 1000; at += 250) content.push(...block(at, at & 0xff));
  const length = size ?? [0x10 | (content.length >> 24), content.length >> 16, content.length >> 8, content.length].map((byte) => byte & 0xff);
  return [0x1f, 0x43, 0xb6, 0x75, ...length, ...content];
};

/** Timestamps of a clip's clusters, in ms, the duration that its header says, and its cues. */
function read(clip: Clip | null): { stamps: number[]; duration: number } {
  const { file, ms } = clip ?? { file: new Uint8Array(), ms: NaN };
  const at = (start: number): Element => {
    const found = element(file, start);
    if (found?.size == null) throw new Error(`nothing whole begins at ${start}`);
    return found;
  };
  const size = (one: Element): number => one.size ?? NaN;
  const children = (parent: Element): Element[] => {
    const found: Element[] = [];
    for (let next = parent.body; next < parent.body + size(parent); ) {
      const child = at(next);
      found.push(child);
      next = child.body + size(child);
    }
    return found;
  };
  const value = (one: Element): number => readNumber(file, one.body, size(one));
  const stamps: number[] = [];
  const cues: number[] = [];
  let duration = NaN;
  const head = at(0);
  const segment = at(head.body + size(head));
  expect(segment.body + size(segment)).toBe(file.length); // it is whole
  for (const child of children(segment)) {
    if (child.id === 0x1549a966) {
      const said = children(child).find(({ id }) => id === 0x4489);
      duration = new DataView(file.buffer).getFloat64(said?.body ?? NaN);
    }
    if (child.id === 0x1f43b675) stamps.push(value(children(child)[0] ?? child));
    if (child.id !== 0x1c53bb6b) continue;
    for (const point of children(child)) {
      const [time, place] = children(point);
      if (time === undefined || place === undefined) throw new Error("half a cue");
      const position = children(place).find(({ id }) => id === 0xf1);
      const cluster = at(segment.body + value(position ?? place));
      expect(cluster.id).toBe(0x1f43b675); // a cue leads to a cluster, and to its time
      expect(value(children(cluster)[0] ?? cluster)).toBe(value(time));
      cues.push(value(time));
    }
  }
  expect(cues).toEqual(stamps);
  expect(duration).toBe(ms);
  return { stamps, duration };
}

describe("WebmTail", () => {
  const stream = (count: number, size: number[] | null = UNKNOWN): number[] => [
    ...HEADER,
    ...Array.from({ length: count }, (_, index) => cluster(index * 2000, 2, size)).flat(),
  ];

  it.each([
    ["clusters of unknown size, as Chromium writes them", UNKNOWN],
    ["clusters that say their size, as Firefox does", null],
  ])("%s: the last seconds are a video of their own", (_, size) => {
    const tail = new WebmTail(60_000);
    tail.push(Uint8Array.from(stream(10, size)), 20_000);
    const clip = tail.clip(5000);
    expect(clip).not.toBeNull();
    // It ends at 19.75 s; the key frame at or before 14.75 s is that of 14 s.
    expect(read(clip)).toEqual({ stamps: [0, 2000, 4000], duration: 5750 });
    expect([...(clip?.file ?? []).slice(0, 8)]).toEqual(HEADER.slice(0, 8));
  });

  it("takes the stream in any pieces and forgets what is too old", () => {
    const whole = stream(20);
    const tail = new WebmTail(9000);
    for (let at = 0; at < whole.length; at += 7) {
      tail.push(Uint8Array.from(whole.slice(at, at + 7)), (at / whole.length) * 40_000);
    }
    const { stamps, duration } = read(tail.clip(60_000));
    expect(stamps).toEqual([0, 2000, 4000, 6000]);
    expect(duration).toBe(7750);
  });

  it("a block that is only half there is left out", () => {
    const whole = stream(3);
    const tail = new WebmTail(60_000);
    tail.push(Uint8Array.from(whole.slice(0, whole.length - 3)), 0);
    expect(read(tail.clip(60_000)).duration).toBe(5500);
  });

  it("has nothing before the first cluster", () => {
    const tail = new WebmTail(60_000);
    expect(tail.clip(1000)).toBeNull();
    tail.push(Uint8Array.from(HEADER), 0);
    expect(tail.clip(1000)).toBeNull();
  });

  it("keeps no more however long it goes on", () => {
    const tail = new WebmTail(21_000);
    tail.push(Uint8Array.from(HEADER), 0);
    let most = 0;
    for (let second = 0; second < 3600; second += 2) {
      tail.push(Uint8Array.from(cluster(second * 1000, 2)), second * 1000);
      most = Math.max(most, tail.size);
    }
    expect(most).toBeLessThan(12 * cluster(0, 2).length + HEADER.length);
    expect(read(tail.clip(15_000)).duration).toBeGreaterThanOrEqual(15_000);
  });
});
