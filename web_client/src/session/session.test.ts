import { describe, expect, it } from "vitest";
import { FakeClock } from "../testing/fakeClock";
import { Api, ApiProblem, ApiUnreachable, type Fetch } from "./api";
import { eventOf } from "./events";
import { END_STATE, move, MOVES, reachable, terminal } from "./life";
import { patiently } from "./patience";
import { EventLines } from "./sse";
import { SessionStore, type Shelf } from "./store";
import { troubleOf } from "./trouble";

describe("life", () => {
  it("is closed: every move leads to a state of the table", () => {
    for (const targets of Object.values(MOVES)) {
      for (const target of targets) expect(MOVES).toHaveProperty(target);
    }
  });

  it("ends in states that nothing leaves", () => {
    for (const state of Object.values(END_STATE)) expect(terminal(state)).toBe(true);
    expect(terminal("running")).toBe(false);
  });

  it("lets steps be missed, and no step be taken back", () => {
    expect(reachable("admitted", "running")).toBe(true);
    expect(reachable("running", "suspended")).toBe(true);
    expect(reachable("suspended", "running")).toBe(true);
    expect(reachable("running", "starting")).toBe(false);
    expect(reachable("closed", "running")).toBe(false);
    expect(reachable("draining", "running")).toBe(false);
  });

  it("tells a step from a word that was overtaken and from what cannot be", () => {
    expect(move("running", "running")).toBe("on");
    expect(move("queued", "running")).toBe("on"); // steps were missed
    expect(move("running", "starting")).toBe("late");
    expect(move("closed", "running")).toBe("late");
    expect(move("failed", "closed")).toBe("illegal");
    const states = Object.keys(MOVES) as (keyof typeof MOVES)[];
    for (const from of states) {
      for (const to of states) {
        const illegal = from !== to && terminal(from) && terminal(to);
        expect([from, to, move(from, to) === "illegal"]).toEqual([from, to, illegal]);
      }
    }
  });
});

describe("EventLines", () => {
  it("puts events together from whatever pieces they come in", () => {
    const text = 'event: state\ndata: {"a":1}\n\n: a comment\n\ndata: x\ndata: y\n\n';
    for (let size = 1; size < 12; size += 1) {
      const lines = new EventLines();
      const events: string[] = [];
      for (let at = 0; at < text.length; at += size) events.push(...lines.push(text.slice(at, at + size)));
      expect(events).toEqual(['{"a":1}', "x\ny"]);
    }
  });

  it("takes every kind of line end, also one that is cut in two", () => {
    const lines = new EventLines();
    expect(lines.push("\uFEFFdata:a\r")).toEqual([]);
    expect(lines.push("\n\r\ndata: b\r\r")).toEqual(["a"]);
    expect(lines.push("\n")).toEqual(["b"]);
  });
});

describe("SessionStore", () => {
  const session = { id: "s", token: "t", world: "tiny", startPoint: "hut", transport: "webrtc" as const };

  function shelf(): Shelf & { kept: Map<string, string> } {
    const kept = new Map<string, string>();
    return {
      kept,
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    };
  }

  it("gives back what was saved, also to the page after a reload", () => {
    const kept = shelf();
    new SessionStore(() => kept).save(session);
    const reloaded = new SessionStore(() => kept);
    expect(reloaded.load()).toEqual(session);
    reloaded.clear();
    expect(new SessionStore(() => kept).load()).toBeNull();
  });

  it.each(["", "null", "[]", "{", '{"id":1}', '{"id":"s","token":"t"}'])(
    "takes %j for nothing",
    (text) => {
      const kept = shelf();
      kept.setItem("veldt.session", text);
      expect(new SessionStore(() => kept).load()).toBeNull();
    },
  );

  it("keeps the session for the life of the page where storing is forbidden", () => {
    const store = new SessionStore(() => {
      throw new Error("forbidden");
    });
    expect(store.load()).toBeNull();
    store.save(session);
    expect(store.load()).toEqual(session);
    store.clear();
    expect(store.load()).toBeNull();
  });
});

const created = JSON.stringify({
  session_id: "s",
  session_token: "t",
  status: "admitted",
  transport: "webrtc",
  world: "tiny",
});
const problem = (status: number, code: string): Response =>
  new Response(JSON.stringify({ title: code, status, code, detail: "words" }), {
    status,
    headers: { "retry-after": "2" },
  });

describe("Api", () => {
  it("sends the session's secret in a header, never in the address", async () => {
    const asked: [string, RequestInit | undefined][] = [];
    const fetch: Fetch = (url, init) => {
      asked.push([url, init]);
      return Promise.resolve(new Response('{"transport":"webrtc","sdp":"v=0","connect_seconds":30}'));
    };
    const api = new Api(fetch, new FakeClock());
    const connection = await api.connect({ id: "a/b", token: "secret" }, { sdp: "offer" });
    expect(connection.ice_servers).toEqual([]);
    const [url, init] = asked[0] ?? ["", undefined];
    expect(url).toBe("/v1/sessions/a%2Fb/connect");
    expect(init?.headers).toMatchObject({ authorization: "Bearer secret" });
    expect(init?.body).toBe('{"sdp":"offer"}');
  });

  it("makes a problem of a problem, and of a page that a proxy put there", async () => {
    const answers = [problem(429, "queue_full"), new Response("<html>", { status: 502 })];
    const api = new Api(() => Promise.resolve(answers.shift() ?? new Response()), new FakeClock());
    await expect(api.create({})).rejects.toMatchObject({
      status: 429,
      code: "queue_full",
      message: "words",
      retryAfterSeconds: 2,
    });
    await expect(api.create({})).rejects.toMatchObject({ status: 502, code: "http_502" });
  });

  it("does not wait for ever", async () => {
    const clock = new FakeClock();
    const api = new Api(
      (_, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener("abort", () => {
            reject(new Error("aborted"));
          });
        }),
      clock,
    );
    const answer = expect(api.worlds()).rejects.toThrow(ApiUnreachable);
    clock.step(20_000);
    await answer;
    expect(clock.pending).toBe(0);
  });
});

describe("patiently", () => {
  /** Lets the promises that are due run, then steps the clock, until `done`. */
  async function stepUntil(clock: FakeClock, done: Promise<unknown>): Promise<void> {
    const state = { over: false };
    const settle = (): void => {
      state.over = true;
    };
    done.then(settle, settle);
    for (let step = 0; step < 200 && !state.over; step += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      clock.step(100);
    }
  }

  it("asks again while a seat is about to be free", async () => {
    const clock = new FakeClock();
    const answers = [problem(429, "queue_full"), problem(503, "no_worker"), new Response(created)];
    const fetch: Fetch = (url) =>
      Promise.resolve(
        url === "/readyz"
          ? new Response('{"ready":false,"stage":"loading the world"}', { status: 503 })
          : (answers.shift() ?? new Response("", { status: 500 })),
      );
    const stages: string[] = [];
    const api = new Api(fetch, clock);
    const done = patiently(
      api,
      clock,
      () => api.create({}),
      (stage) => stages.push(stage),
    );
    await stepUntil(clock, done);
    expect((await done).session_id).toBe("s");
    expect(stages).toEqual(["loading the world", "loading the world"]);
  });

  it("gives up after a while, and at once where asking again is no use", async () => {
    const clock = new FakeClock();
    const create = (status: number, code: string): Promise<unknown> => {
      const api = new Api(() => Promise.resolve(problem(status, code)), clock);
      return patiently(
        api,
        clock,
        () => api.create({}),
        () => undefined,
      );
    };
    const full = create(429, "queue_full");
    const refused = expect(full).rejects.toThrow(ApiProblem);
    await stepUntil(clock, full);
    await refused;
    await expect(create(422, "unknown_start_point")).rejects.toMatchObject({
      code: "unknown_start_point",
    });
  });
});

describe("eventOf", () => {
  const view = {
    session_id: "s",
    world: "tiny",
    start_point: null,
    stage: null,
    queue_position: null,
    eta_seconds: null,
    claim_seconds: null,
    played_seconds: 12,
  };

  it("says the end only once it is there", () => {
    expect(eventOf({ ...view, status: "expired", reason: "idle" })).toEqual({
      event: "ended",
      reason: "idle",
      played_seconds: 12,
    });
    expect(eventOf({ ...view, status: "draining", reason: "idle" })).toMatchObject({
      event: "state",
      state: "draining",
    });
  });
});

describe("troubleOf", () => {
  it("is a sentence for every fault, with its code for the details", () => {
    const full = troubleOf(new ApiProblem(429, "queue_full", "all seats are taken", null));
    expect(full).toMatchObject({ code: "queue_full", action: "retry" });
    expect(full.sentence).toMatch(/^[A-Z].*\.$/);
    expect(troubleOf(new ApiProblem(418, "teapot", "?", null)).sentence).toMatch(/\.$/);
    expect(troubleOf(new Error("oops"))).toMatchObject({ code: "page_error", action: "reload" });
  });
});
