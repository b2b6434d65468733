import { beforeEach, describe, expect, it } from "vitest";
import { Api } from "../session/api";
import { FakeClock } from "../testing/fakeClock";
import { FakeConnection } from "../testing/fakeConnection";
import { FakeServer, json, problem, settled } from "../testing/fakeServer";
import { watchedBy, watchLink } from "./link";
import { type Seat, Spectating } from "./spectating";

describe("watchLink", () => {
  it("keeps the ticket in the fragment and gives it back", () => {
    const link = watchLink("https://a.example/?start=hut#x", { id: "0a1b", token: "c2d3" });
    expect(link).toBe("https://a.example/#watch=0a1b.c2d3");
    expect(watchedBy(new URL(link).hash)).toEqual({ id: "0a1b", token: "c2d3" });
  });

  it.each(["", "#watch=", "#watch=a", "#watch=a.", "#watch=a.b.c", "#watch=../x.ab", "#play"])(
    "takes %j for no link",
    (hash) => {
      expect(watchedBy(hash)).toBeNull();
    },
  );
});

describe("Spectating", () => {
  let clock: FakeClock;
  let server: FakeServer;
  let made: FakeConnection[];
  let seats: Seat[];
  let spectating: Spectating;
  const newest = (): FakeConnection => {
    const last = made.at(-1);
    if (last === undefined) throw new Error("no connection was made");
    return last;
  };
  const hello = {
    type: "hello",
    version: 1,
    world: "tiny",
    session: "s",
    epoch: 4,
    fps: 24,
    frames_per_chunk: 4,
  } as const;

  beforeEach(async () => {
    clock = new FakeClock(1000);
    server = new FakeServer().on("POST /v1/sessions/s/watch", () =>
      json({ transport: "livekit", url: "ws://a", token: "t", connect_seconds: 30 }),
    );
    made = [];
    seats = [];
    spectating = new Spectating(
      clock,
      new Api(server.fetch, clock),
      { id: "s", token: "ab" },
      (handlers) => {
        made.push(new FakeConnection(handlers));
        return newest();
      },
      () => 7,
      {
        changed: (seat) => seats.push(seat),
        track: () => undefined,
        cut: () => undefined,
        shownKeys: () => undefined,
      },
    );
    spectating.controls.useLegend([{ code: "KeyW", label: "ahead", aliases: [] }], []);
    await spectating.start();
  });

  it("watches, and sends nothing", () => {
    newest().handlers.open();
    spectating.controls.press("KeyW", "keyboard", clock.now());
    clock.step(2000);
    expect(seats).toEqual(["watching"]);
    expect([newest().keys, newest().commands]).toEqual([[], []]);
  });

  it("plays once it is greeted, until it may not send any more", () => {
    newest().handlers.open();
    newest().say(hello);
    const said = newest().commands.at(-1);
    expect(said).toMatchObject({ type: "hello", nonce: 7 });
    newest().say({ type: "ack", id: said?.id ?? "", epoch: 4 });
    expect(spectating.seat).toBe("playing");
    expect(newest().keys.at(-1)).toMatchObject({ nonce: 7, epoch: 4 });
    newest().handlers.permitted?.(false);
    expect(spectating.seat).toBe("watching");
    newest().keys.length = 0;
    spectating.controls.press("KeyW", "keyboard", clock.now());
    clock.step(2000);
    expect(newest().keys).toEqual([]);
  });

  it("comes back by itself, and stops when the session is over", async () => {
    newest().handlers.open();
    newest().handlers.gone("lost");
    expect(spectating.seat).toBe("reconnecting");
    clock.step(1000);
    await settled();
    expect(made).toHaveLength(2);
    server.on("POST /v1/sessions/s/watch", () => problem(410, "session_ended"));
    newest().handlers.gone("lost");
    clock.step(1000);
    await settled();
    expect(spectating.seat).toBe("ended");
    clock.step(60_000);
    expect(made).toHaveLength(3);
  });
});
