import { beforeEach, describe, expect, it } from "vitest";
import type { StatusMessage } from "../protocol/messages";
import { Api } from "../session/api";
import { SessionStore, type Shelf } from "../session/store";
import { FakeClock } from "../testing/fakeClock";
import { FakeConnection } from "../testing/fakeConnection";
import { FakeServer, json, problem, settled } from "../testing/fakeServer";
import { Game } from "./game";
import type { GameOptions } from "./options";

const WORLDS = {
  worlds: [
    {
      name: "tiny",
      title: "The veldt",
      about: "A place.",
      width: 256,
      height: 160,
      fps: 24,
      frames_per_chunk: 4,
      start_points: [
        { name: "hut", title: "The hut", picture: "/hut.png" },
        { name: "waterhole", title: "The waterhole", picture: "/waterhole.png" },
      ],
      controls: [
        { code: "KeyW", label: "Walk ahead", aliases: [] },
        { code: "KeyJ", label: "Look left", aliases: ["ArrowLeft"] },
      ],
      axes: [],
      prompt: false,
      image: false,
    },
  ],
};
const CREATED = {
  session_id: "s",
  session_token: "t",
  status: "admitted",
  transport: "webrtc",
  world: "tiny",
};
const view = (status: string, reason: string | null = null): Record<string, unknown> => ({
  session_id: "s",
  world: "tiny",
  start_point: "hut",
  status,
  reason,
  played_seconds: 42,
});
const state = (name: "starting" | "running" | "suspended", paused = false): StatusMessage => ({
  type: "state",
  state: name,
  reason: null,
  paused,
  stage: null,
});

/** An event stream that stays open, and the way to write on it. */
function eventStream(): { response: () => Response; send: (event: unknown) => void } {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  return {
    response: () =>
      new Response(
        new ReadableStream<Uint8Array>({
          start: (given) => {
            controller = given;
          },
        }),
      ),
    send: (event) => {
      controller?.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
    },
  };
}

let clock: FakeClock;
let server: FakeServer;
let made: FakeConnection[];
let kept: Map<string, string>;
let shown: (readonly string[])[];
let events: ReturnType<typeof eventStream>;
let game: Game;
let turns = 0;

const shelf = (): Shelf => ({
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, value) => kept.set(key, value),
  removeItem: (key) => kept.delete(key),
});
const newest = (): FakeConnection => {
  const last = made.at(-1);
  if (last === undefined) throw new Error("no connection was made");
  return last;
};

function newGame(more: Partial<GameOptions> = {}): Game {
  return new Game(
    {
      clock,
      api: new Api(server.fetch, clock),
      store: new SessionStore(shelf),
      makeConnection: (handlers) => {
        const connection = new FakeConnection(handlers);
        made.push(connection);
        return connection;
      },
      nonce: () => 7 + made.length,
      preflight: () => true,
      reloaded: false,
      framesCanBeSeen: true,
      ...more,
    },
    {
      changed: () => undefined,
      track: () => undefined,
      cut: () => undefined,
      shownKeys: (codes) => shown.push(codes),
      frame: () => undefined,
      turn: () => (turns += 1),
      say: () => undefined,
    },
  );
}

async function play(): Promise<FakeConnection> {
  await game.begin();
  await game.play("hut");
  clock.step(1); // the event stream opens
  await settled();
  newest().comeUp();
  newest().say(state("starting"));
  newest().say(state("running"));
  return newest();
}

beforeEach(() => {
  clock = new FakeClock(1000);
  events = eventStream();
  server = new FakeServer()
    .on("GET /v1/worlds", () => json(WORLDS))
    .on("POST /v1/sessions", () => json(CREATED, 201))
    .on("GET /v1/sessions/s", () => json(view("running")))
    .on("GET /v1/sessions/s/events", () => events.response())
    .on("DELETE /v1/sessions/s", () => new Response(null, { status: 204 }))
    .on("POST /v1/sessions/s/connect", () =>
      json({ transport: "webrtc", sdp: "answer", connect_seconds: 30 }),
    );
  made = [];
  kept = new Map();
  shown = [];
  turns = 0;
  game = newGame();
});

describe("Game", () => {
  it("goes from the cards to play by the states of the page", async () => {
    await game.begin();
    expect(game.face).toBe("arriving");
    const playing = game.play("hut");
    expect(game.face).toBe("checking");
    await playing;
    expect(game.face).toBe("connecting");
    await settled();
    newest().comeUp();
    newest().say(state("starting"));
    expect(game.face).toBe("starting");
    newest().say(state("running"));
    expect(game.face).toBe("playing");
    expect(server.asked.find(({ path }) => path === "/v1/sessions")?.body).toEqual({
      world: "tiny",
      start_point: "hut",
    });
  });

  it("sends a key the moment it goes down, and shows it when a frame with its receipt is there", async () => {
    const connection = await play();
    const frame = (index: number, pts: number, receipt: string, atMs: number): void => {
      connection.say({ type: "frames", frames: [{ pts, frame_id: String(index), receipt }] });
      game.displayed(pts + 77, atMs, index);
    };
    for (const [index, pts] of [10_000, 13_744, 17_512].entries()) frame(index, pts, "0", clock.now());
    connection.keys.length = 0;
    expect(game.controls.press("KeyW", "keyboard", clock.now())).toBe(true);
    expect(connection.keys).toMatchObject([{ nonce: 8, seq: 2, held: ["KeyW"], presses: { KeyW: 1 } }]);
    frame(3, 21_231, String((8n << 32n) | 2n), clock.now() + 150);
    expect(shown.at(-1)).toEqual(["KeyW"]);
    expect(game.hud()).toMatchObject({ key_to_photon_p50_ms: 150, key_to_photon_samples: 1 });
    expect(game.hud()).toMatchObject({ frame_id: "3", shown_seq: 2, sent_seq: 2, nonce: 8 });
  });

  it("a message that comes late never takes it back a state", async () => {
    await play();
    events.send({ event: "state", state: "starting", stage: null });
    await settled();
    expect(game.face).toBe("playing");
    events.send({ event: "state", state: "draining", stage: null });
    await settled();
    expect(game.face).toBe("ended");
  });

  it("pauses for the player and while hidden, and goes on only when neither holds", async () => {
    const connection = await play();
    const asked = (): string[] =>
      connection.commands.map(({ type }) => type).filter((type) => type !== "hello");
    game.controls.press("KeyW", "keyboard", clock.now());
    game.hide(true);
    expect(game.face).toBe("hidden");
    expect(connection.keys.at(-1)?.held).toEqual([]);
    connection.say(state("suspended", true));
    game.hide(false);
    expect(asked()).toEqual(["pause", "resume"]);
    connection.say(state("running"));
    game.pause(true);
    game.hide(true);
    game.hide(false);
    expect(game.face).toBe("paused");
    game.pause(false);
    expect(asked()).toEqual(["pause", "resume", "pause", "resume"]);
  });

  it("a session that was paused by a page before this one is woken", async () => {
    await play();
    newest().say(state("suspended", true));
    expect(newest().commands.at(-1)?.type).toBe("resume");
  });

  it("a reset gives later keys the new epoch and measures nothing across it", async () => {
    const connection = await play();
    game.controls.press("KeyW", "keyboard", clock.now());
    game.reset();
    const reset = connection.commands.findLast(({ type }) => type === "reset");
    connection.say({ type: "ack", id: reset?.id ?? "", epoch: 1 });
    game.controls.release("KeyW", "keyboard");
    expect(connection.keys.at(-1)?.epoch).toBe(1);
    expect(game.hud().epoch).toBe(1);
    expect(
      game.controls.displayed({ nonce: 8, seq: 9 }, clock.now() + 500).samples,
    ).toEqual([]);
  });

  it("a reload goes on with the same session and counts presses from nothing", async () => {
    await play();
    game.controls.press("KeyW", "keyboard", clock.now());
    game.pageHidden();
    expect(newest().closed).toBe(true);
    game = newGame({ reloaded: true });
    await game.begin();
    await settled();
    expect(game.face).toBe("connecting");
    newest().comeUp();
    newest().say(state("running"));
    expect(game.face).toBe("playing");
    expect(server.count("POST /v1/sessions")).toBe(1);
    expect(newest().keys.at(-1)).toMatchObject({ seq: 1, held: [], presses: {} });
    expect(game.hud().key_to_photon_samples).toBe(0);
  });

  it("what ended while the page was away is not begun again", async () => {
    await play();
    game.pageHidden();
    server.on("GET /v1/sessions/s", () => problem(404, "unknown_session"));
    game = newGame({ reloaded: true });
    await game.begin();
    expect(game.face).toBe("arriving");
    expect(kept.size).toBe(0);
  });

  it("a lost connection is made again, and its keys are up", async () => {
    const connection = await play();
    game.controls.press("KeyW", "keyboard", clock.now());
    connection.handlers.gone("lost");
    clock.step(5000);
    expect(game.face).toBe("reconnecting");
    expect(game.lostSeconds).toBe(5);
    await settled();
    newest().comeUp();
    expect(game.face).toBe("playing");
    expect(newest().keys.at(-1)).toMatchObject({ seq: 1, held: [] });
  });

  it.each(["worker_died", "idle", "time_limit"] as const)("says that it ended: %s", async (reason) => {
    await play();
    events.send({ event: "ended", reason, played_seconds: 90 });
    await settled();
    expect([game.face, game.facts.reason, game.playedSeconds]).toEqual(["ended", reason, 90]);
    expect(newest().closed).toBe(true);
    expect(kept.size).toBe(0);
    clock.step(120_000);
    await settled();
    expect(made).toHaveLength(1);
  });

  it("says that the server has forgotten the session", async () => {
    const connection = await play();
    server.on("GET /v1/sessions/s", () => problem(404, "unknown_session"));
    connection.handlers.gone("closed");
    await settled();
    expect([game.face, game.facts.trouble?.code]).toEqual(["error", "unknown_session"]);
    expect(kept.size).toBe(0);
  });

  it("learns of the end without an event stream", async () => {
    server.on("GET /v1/sessions/s/events", () => new Error("a proxy holds it back"));
    const connection = await play();
    server.on("GET /v1/sessions/s", () => json(view("failed", "worker_died")));
    connection.handlers.gone("closed");
    await settled();
    expect([game.face, game.facts.reason, game.playedSeconds]).toEqual(["ended", "worker_died", 42]);
  });

  it("leaves, waits for the seat to be free, and plays again", async () => {
    await play();
    game.leave();
    expect([game.face, game.facts.reason]).toEqual(["ended", "left"]);
    server.on("POST /v1/sessions", () => json({ ...CREATED, session_id: "s2" }, 201));
    const again = game.playAgain();
    await again;
    expect(server.asked.findIndex(({ method }) => method === "DELETE")).toBeLessThan(
      server.asked.findLastIndex(({ path }) => path === "/v1/sessions"),
    );
    expect(game.sessionId).toBe("s2");
    expect(game.start).toBe("hut");
  });

  it("a new session beside one that another tab plays leaves that one alone", async () => {
    const connection = await play();
    connection.say({ type: "error", code: "playing_elsewhere", message: "", id: null, count: 1 });
    expect(game.face).toBe("elsewhere");
    await game.chooseAgain();
    expect(game.face).toBe("arriving");
    expect(server.count("DELETE /v1/sessions/s")).toBe(0);
  });

  it("says what is wrong where it cannot play", async () => {
    game = newGame({ preflight: () => false });
    await game.begin();
    await game.play("hut");
    expect(game.face).toBe("error");
    expect(game.facts.trouble?.sentence).toContain("WebRTC");
    expect(server.count("POST /v1/sessions")).toBe(0);
    await game.chooseAgain();
    expect(game.face).toBe("arriving");
  });

  it("waits for a world that is being loaded, and says so", async () => {
    server
      .on("GET /v1/worlds", () => json({ worlds: [] }), () => json(WORLDS))
      .on("GET /readyz", () => json({ ready: false, stage: "loading the world" }, 503));
    const begun = game.begin();
    await settled();
    expect([game.face, game.world, game.stage]).toEqual(["arriving", null, "loading the world"]);
    clock.step(1000);
    await begun;
    expect([game.face, game.world?.name, game.stage]).toEqual(["arriving", "tiny", null]);
  });

  it("says that the server does not answer, and finds it when asked again", async () => {
    server.on("GET /v1/worlds", () => new Error("refused"), () => json(WORLDS));
    await game.begin();
    expect(game.facts.trouble).toMatchObject({ code: "unreachable", action: "retry" });
    await game.chooseAgain();
    expect([game.face, game.world?.title]).toEqual(["arriving", "The veldt"]);
  });
});

describe("Game in line", () => {
  const QUEUED = { ...CREATED, status: "queued", queue_position: 3, eta_seconds: 150 };

  beforeEach(async () => {
    server.on("POST /v1/sessions", () => json(QUEUED, 201));
    await game.begin();
    await game.play("hut");
    clock.step(1);
    await settled();
  });

  it("shows the place and how it moves, and builds nothing meanwhile", async () => {
    expect(game.face).toBe("waiting");
    expect(game.line).toMatchObject({ ahead: 2, etaSeconds: 150 });
    events.send({ event: "queued", queue_position: 2, eta_seconds: 70 });
    await settled();
    expect(game.line).toMatchObject({ ahead: 1, etaSeconds: 70 });
    expect(made).toEqual([]);
  });

  it("says when it is one's turn, counts down, and connects when one steps in", async () => {
    events.send({ event: "admitted", claim_seconds: 19.9 });
    await settled();
    expect(game.face).toBe("turn");
    expect(turns).toBe(1);
    expect(game.claimSeconds).toBe(20);
    clock.step(2500);
    expect(game.claimSeconds).toBe(18);
    events.send({ event: "admitted", claim_seconds: 17.2 }); // said again: nothing new
    await settled();
    expect(turns).toBe(1);
    expect(made).toEqual([]);
    game.stepIn();
    expect(game.face).toBe("connecting");
    await settled();
    newest().comeUp();
    newest().say(state("starting"));
    newest().say(state("running"));
    expect(game.face).toBe("playing");
  });

  it("a turn that was missed is a place in line again; missed twice, it ends in words", async () => {
    events.send({ event: "admitted", claim_seconds: 20 });
    await settled();
    events.send({ event: "queued", queue_position: 2, eta_seconds: null });
    await settled();
    expect(game.face).toBe("waiting");
    expect(game.line).toMatchObject({ ahead: 1, etaSeconds: null });
    events.send({ event: "admitted", claim_seconds: 20 });
    await settled();
    expect(turns).toBe(2);
    events.send({ event: "ended", reason: "claim_missed", played_seconds: 0 });
    await settled();
    expect(game.face).toBe("ended");
  });

  it("a reload keeps the place and does not connect", async () => {
    const queued = { ...view("queued"), queue_position: 2, eta_seconds: 30, claim_seconds: null };
    server.on("GET /v1/sessions/s", () => json(queued));
    game = newGame({ reloaded: true });
    await game.begin();
    await settled();
    expect(game.face).toBe("waiting");
    expect(game.line?.ahead).toBe(1);
    expect(made).toEqual([]);
  });

  it("can be left", async () => {
    game.leave();
    await settled();
    expect(game.face).toBe("ended");
    expect(server.count("DELETE /v1/sessions/s")).toBe(1);
  });
});

describe("Game that is asked for too much", () => {
  it("thinks better of it while the service is not ready", async () => {
    await game.begin();
    server.on("POST /v1/sessions", () => problem(503, "no_worker"));
    const playing = game.play("hut");
    await settled();
    expect(game.face).toBe("checking");
    game.withdraw();
    expect(game.face).toBe("arriving");
    clock.step(600);
    await playing;
    expect(game.face).toBe("arriving");
    expect(server.count("POST /v1/sessions")).toBe(1);
  });

  it("closes a session that comes after that", async () => {
    await game.begin();
    server.on("POST /v1/sessions", () => {
      game.withdraw();
      return json(CREATED, 201);
    });
    await game.play("hut");
    await settled();
    expect(game.face).toBe("arriving");
    expect(server.count("DELETE /v1/sessions/s")).toBe(1);
    expect(made).toEqual([]);
  });
});

describe("Game in a tab that has a session, at a link", () => {
  beforeEach(async () => {
    await play();
    game.pageHidden();
    server.on("GET /v1/sessions/s", () => json(view("suspended")));
    game = newGame();
  });

  it.each(["hut", null, "no such place"])("to %s: goes on", async (wanted) => {
    await game.begin(wanted);
    await settled();
    expect(game.face).toBe("connecting");
    newest().comeUp();
    expect(game.sessionId).toBe("s");
  });

  it("to another place: asks, and goes on where it was", async () => {
    await game.begin("waterhole");
    expect([game.face, game.start, game.elsewhere]).toEqual(["crossroads", "hut", "waterhole"]);
    expect(made).toHaveLength(1); // nothing is connected meanwhile
    game.goOn();
    await settled();
    newest().comeUp();
    newest().say(state("running"));
    expect(game.face).toBe("playing");
    expect(server.count("DELETE /v1/sessions/s")).toBe(0);
  });

  it("to another place: asks, gives the seat back and begins there", async () => {
    await game.begin("waterhole");
    server.on("POST /v1/sessions", () => json({ ...CREATED, session_id: "s2" }, 201));
    await game.goElsewhere();
    expect(server.count("DELETE /v1/sessions/s")).toBe(1);
    expect([game.sessionId, game.start]).toEqual(["s2", "waterhole"]);
    expect(JSON.parse(kept.get("veldt.session") ?? "")).toMatchObject({ id: "s2" });
  });

  it("never ends what another tab plays", async () => {
    server.on("GET /v1/sessions/s", () => json(view("running")));
    await game.begin("waterhole");
    await game.goElsewhere();
    expect(server.count("DELETE /v1/sessions/s")).toBe(0);
  });

  it("offers the place of the link where the session is over, or ends meanwhile", async () => {
    await game.begin("waterhole");
    clock.step(1);
    await settled();
    events.send({ event: "ended", reason: "disconnected", played_seconds: 9 });
    await settled();
    expect([game.face, game.start]).toEqual(["arriving", "waterhole"]);
    expect(kept.size).toBe(0);
  });
});

describe("Game whose service went away", () => {
  it("says how it stands with a worker that died, and when one can play again", async () => {
    await play();
    server.on("GET /readyz", () => json({ ready: false, stage: "loading the world" }, 503), () =>
      json({ ready: true, stage: "ready" }),
    );
    events.send({ event: "ended", reason: "worker_died", played_seconds: 9 });
    await settled();
    expect([game.face, game.awaited]).toEqual(["ended", { ready: false, stage: null }]);
    clock.step(500);
    await settled();
    expect(game.awaited).toEqual({ ready: false, stage: "loading the world" });
    clock.step(1000);
    await settled();
    expect(game.awaited?.ready).toBe(true);
    await game.playAgain();
    expect([game.face, game.awaited]).toEqual(["connecting", null]);
  });

  it("waits for nothing after other ends", async () => {
    await play();
    events.send({ event: "ended", reason: "idle", played_seconds: 9 });
    await settled();
    expect(game.awaited).toBeNull();
    clock.step(60_000);
    await settled();
    expect(server.count("GET /readyz")).toBe(0);
  });
});

describe("Game that hears of moves", () => {
  it.each([
    ["running", "suspended", "suspended"],
    ["running", "starting", "running"], // overtaken
    ["running", "queued", "running"],
  ] as const)("%s, then %s: %s", async (first, then, shown) => {
    await play();
    events.send({ event: "state", state: first, stage: null });
    events.send({ event: "state", state: then, stage: null });
    await settled();
    expect(game.facts.state).toBe(shown);
  });
});
