import { beforeEach, describe, expect, it } from "vitest";
import type { Command } from "../protocol/messages";
import { Api } from "../session/api";
import type { Link } from "../session/face";
import { FakeClock } from "../testing/fakeClock";
import { FakeConnection } from "../testing/fakeConnection";
import { FakeServer, json, problem, settled } from "../testing/fakeServer";
import { backoffMs } from "./backoff";
import { Commands } from "./commands";
import { PlayerLink } from "./link";
import { newNonce } from "./nonce";
import { Redial } from "./redial";

describe("newNonce", () => {
  it("is random, of 32 bits, and never 0, which means 'no receipt'", () => {
    const from = (value: number) => (into: Uint32Array) => into.fill(value);
    expect(newNonce(from(4294967295))).toBe(4294967295);
    expect(newNonce(from(0))).toBe(1);
  });
});

describe("backoffMs", () => {
  it("begins at once, grows, and stays within seconds", () => {
    const steps = [0, 1, 2, 3, 4, 5, 50].map((attempt) => backoffMs(attempt, 0.5));
    expect(steps).toEqual([0, 250, 500, 1000, 2000, 3000, 3000]);
    expect(backoffMs(50, 1)).toBeLessThan(4000);
  });
});

describe("Redial", () => {
  it("believes that another tab plays, but not while that may be a connection of its own", () => {
    expect(new Redial(false, () => 0).next({ kind: "elsewhere" }, 0)).toEqual({
      kind: "elsewhere",
    });
    const reloaded = new Redial(true, () => 0);
    // The first answer may come late: from a worker that stood still meanwhile, for one.
    expect(reloaded.next({ kind: "elsewhere" }, 20_000)).toMatchObject({ kind: "retry" });
    expect(reloaded.next({ kind: "elsewhere" }, 23_400)).toMatchObject({ kind: "retry" });
    expect(reloaded.next({ kind: "elsewhere" }, 23_600)).toEqual({ kind: "elsewhere" });
  });
});

describe("Commands", () => {
  it("repeats hello every 250 ms until it is acknowledged", () => {
    const clock = new FakeClock();
    const sent: Command[] = [];
    const commands = new Commands(clock, "7", (command) => sent.push(command));
    const epochs: number[] = [];
    commands.hello(7, (epoch) => epochs.push(epoch));
    clock.step(600);
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1);
    expect(sent[0]).toMatchObject({ type: "hello", nonce: 7, version: 1 });
    commands.acknowledged({ type: "ack", id: "another", epoch: 9 });
    commands.acknowledged({ type: "ack", id: sent[0]?.id ?? "", epoch: 2 });
    commands.acknowledged({ type: "ack", id: sent[0]?.id ?? "", epoch: 2 });
    clock.step(1000);
    expect(epochs).toEqual([2]);
    expect(sent).toHaveLength(3);
  });

  it("tells who asked what became of it", () => {
    const sent: Command[] = [];
    const commands = new Commands(new FakeClock(), "7", (command) => sent.push(command));
    const results: (number | null)[] = [];
    commands.ask({ type: "reset" }, (epoch) => results.push(epoch));
    commands.ask({ type: "prompt", text: "rain" }, (epoch) => results.push(epoch));
    const [reset, prompt] = sent;
    expect(prompt).toMatchObject({ type: "prompt", text: "rain" });
    const fault = { type: "error", code: "unsupported_by_world", message: "", count: 1 } as const;
    commands.refused({ ...fault, id: prompt?.id ?? "" });
    commands.acknowledged({ type: "ack", id: reset?.id ?? "", epoch: 1 });
    expect(results).toEqual([null, 1]);
  });
});

describe("PlayerLink", () => {
  const connect = "POST /v1/sessions/s/connect";
  const answer = (): Response => json({ transport: "webrtc", sdp: "answer", connect_seconds: 30 });
  let clock: FakeClock;
  let server: FakeServer;
  let made: FakeConnection[];
  let links: Link[];
  let notes: (string | null)[];
  let log: string[];
  let link: PlayerLink;
  const newest = (): FakeConnection => {
    const last = made.at(-1);
    if (last === undefined) throw new Error("no connection was made");
    return last;
  };

  beforeEach(() => {
    clock = new FakeClock();
    server = new FakeServer().on(connect, answer);
    made = [];
    links = [];
    notes = [];
    log = [];
    link = new PlayerLink(
      clock,
      new Api(server.fetch, clock),
      { id: "s", token: "t" },
      (handlers) => {
        const connection = new FakeConnection(handlers);
        made.push(connection);
        return connection;
      },
      () => 7 + made.length,
      {
        changed: (now, note) => {
          links.push(now);
          notes.push(note);
        },
        up: (nonce, epoch) => log.push(`up ${nonce} ${epoch}`),
        cut: () => log.push("cut"),
        track: () => undefined,
        status: ({ type }) => log.push(type),
        refused: ({ code }) => log.push(`refused ${code}`),
      },
    );
  });

  it("is up once its hello is acknowledged, not before", async () => {
    link.dial({ takeOver: false, own: false });
    await settled();
    newest().handlers.open();
    expect(links).toEqual(["dialing"]);
    newest().comeUp(3);
    expect(links).toEqual(["dialing", "up"]);
    expect(log).toContain("up 8 3");
    expect(server.asked[0]?.body).toEqual({ sdp: "offer", take_over: false });
  });

  it("comes back by itself with a nonce of its own, and hears nothing of the old connection", async () => {
    link.dial({ takeOver: false, own: false });
    await settled();
    const old = newest();
    old.comeUp();
    log = [];
    old.handlers.gone("lost");
    expect(links.at(-1)).toBe("lost");
    expect([old.closed, log]).toEqual([true, ["cut"]]);
    clock.step(1000);
    await settled();
    expect(made).toHaveLength(2);
    newest().comeUp();
    old.say({ type: "lease", position: 0, players: 9 });
    old.handlers.gone("closed");
    expect(links.at(-1)).toBe("up");
    expect(log).toEqual(["cut", "up 9 0", "ack"]);
  });

  it("retries while the old connection may be its own, and then says elsewhere", async () => {
    server.on(connect, () => problem(409, "playing_elsewhere"));
    link.dial({ takeOver: false, own: true });
    for (let step = 0; step < 30; step += 1) {
      await settled();
      clock.step(200);
    }
    expect(server.count(connect)).toBeGreaterThan(5);
    expect(links).toEqual(["dialing", "elsewhere"]);
    expect(clock.pending).toBe(0);
  });

  it("a second tab is told at once, and takes over only when it is asked to", async () => {
    server.on(connect, () => problem(409, "playing_elsewhere"), answer);
    link.dial({ takeOver: false, own: false });
    await settled();
    expect(links).toEqual(["dialing", "elsewhere"]);
    link.dial({ takeOver: true, own: false });
    await settled();
    newest().comeUp();
    expect(links.at(-1)).toBe("up");
    expect(server.asked.at(-1)?.body).toEqual({ sdp: "offer", take_over: true });
  });

  it("does not fight for a session that another tab has taken over", async () => {
    link.dial({ takeOver: false, own: false });
    await settled();
    newest().comeUp();
    const told = { type: "error", code: "playing_elsewhere", message: "", id: null, count: 1 } as const;
    newest().say(told);
    newest().handlers.gone("closed");
    clock.step(60_000);
    await settled();
    expect(made).toHaveLength(1);
    expect(links.at(-1)).toBe("elsewhere");
  });

  it("says in words that there is no way through, and goes on trying", async () => {
    link.dial({ takeOver: false, own: false });
    await settled();
    newest().handlers.gone("no-path");
    expect(notes.at(-1)).toContain("UDP");
    clock.step(5000);
    await settled();
    expect(made).toHaveLength(2);
  });

  it("goes on through faults of the server, and stops where the session is no more", async () => {
    server.on(
      connect,
      () => problem(503, "worker_gone"),
      () => new Error("network"),
      () => problem(410, "session_ended"),
    );
    link.dial({ takeOver: false, own: false });
    for (let step = 0; step < 20; step += 1) {
      await settled();
      clock.step(500);
    }
    expect(server.count(connect)).toBe(3);
    expect(log).toContain("refused session_ended");
  });

  it("is silent after it was closed", async () => {
    link.dial({ takeOver: false, own: false });
    await settled();
    const { handlers } = newest();
    link.close();
    links = [];
    handlers.gone("closed");
    handlers.open();
    clock.step(60_000);
    await settled();
    expect([links, made.length]).toEqual([[], 1]);
  });
});
