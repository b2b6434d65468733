import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeClock } from "../testing/fakeClock";
import { settled } from "../testing/fakeServer";
import { ClipRecorder } from "./recorder";

const HEADER = [0x1a, 0x45, 0xdf, 0xa3, 0x81, 0, 0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255];
/** A second of video that begins at `ms`. */
const second = (ms: number): number[] => [
  ...[0x1f, 0x43, 0xb6, 0x75, 0x01, 255, 255, 255, 255, 255, 255, 255],
  ...[0xe7, 0x83, ms >> 16, (ms >> 8) & 255, ms & 255],
  ...[0xa3, 0x85, 0x81, 0, 0, 0x80, 1],
  ...[0xa3, 0x85, 0x81, 3, 0xe8, 0x80, 1],
];

class FakeRecorder extends EventTarget {
  static newest: FakeRecorder | null = null;
  static isTypeSupported = (): boolean => true;
  state: "inactive" | "recording" | "paused" = "inactive";

  constructor() {
    super();
    FakeRecorder.newest = this;
  }
  start(): void {
    this.state = "recording";
  }
  pause(): void {
    this.state = "paused";
  }
  resume(): void {
    this.state = "recording";
  }
  stop(): void {
    this.state = "inactive";
  }
  requestData(): void {
    this.give([]);
  }
  give(bytes: number[]): void {
    const data = new Blob([Uint8Array.from(bytes)]);
    this.dispatchEvent(Object.assign(new Event("dataavailable"), { data }));
  }
}

describe("ClipRecorder", () => {
  let clock: FakeClock;
  let clips: ClipRecorder;
  let recorded: number;
  const video = (): HTMLVideoElement => ({ srcObject: stream }) as unknown as HTMLVideoElement;
  let stream: object;
  /** As many seconds of play, as the browser hands them over. */
  const play = async (seconds: number): Promise<void> => {
    for (let count = 0; count < seconds; count += 1) {
      clock.step(1000);
      FakeRecorder.newest?.give(second(recorded));
      recorded += 1000;
      await settled();
    }
  };

  beforeEach(() => {
    const FakeStream = Map; // any class will do
    vi.stubGlobal("MediaStream", FakeStream);
    vi.stubGlobal("MediaRecorder", FakeRecorder);
    vi.stubGlobal("window", { MediaRecorder: FakeRecorder });
    stream = new FakeStream();
    clock = new FakeClock();
    clips = new ClipRecorder(clock);
    recorded = 0;
    clips.record(video());
    FakeRecorder.newest?.give(HEADER);
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("keeps the last 15 s, and says how much of them there is", async () => {
    await play(4);
    expect((await clips.clip())?.seconds).toBe(4);
    await play(40);
    expect((await clips.clip())?.seconds).toBe(15);
  });

  it("a pause makes nothing old that was recorded before it", async () => {
    await play(10);
    clips.rest();
    clips.rest(); // said twice
    clock.step(600_000);
    clips.record(video());
    await play(5);
    expect((await clips.clip())?.seconds).toBe(15);
  });

  it("another world begins with nothing", async () => {
    await play(10);
    clips.forget();
    expect(clips.any).toBe(false);
    expect(await clips.clip()).toBeNull();
  });
});
