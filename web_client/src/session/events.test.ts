import { describe, expect, it } from "vitest";
import { FakeClock } from "../testing/fakeClock";
import { FakeServer, json, settled } from "../testing/fakeServer";
import { Api, type Fetch } from "./api";
import { eventOf, SessionEvents } from "./events";

const SESSION = { id: "s", token: "t" };
const STREAM = "GET /v1/sessions/s/events";
const VIEW = "GET /v1/sessions/s";

function queued(position: number): Record<string, unknown> {
  return {
    session_id: "s",
    world: "tiny",
    start_point: null,
    status: "queued",
    reason: null,
    stage: null,
    queue_position: position,
    eta_seconds: null,
    claim_seconds: null,
    played_seconds: 0,
  };
}

/** An event stream that a test writes. */
class Stream {
  readonly response: Response;
  #writer: ReadableStreamDefaultController<Uint8Array> | null = null;

  constructor() {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#writer = controller;
      },
    });
    this.response = new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  say(position: number): void {
    const event = { event: "queued", queue_position: position, eta_seconds: null };
    this.write(`data: ${JSON.stringify(event)}\n\n`);
  }

  write(text: string): void {
    this.#writer?.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.#writer?.close();
  }
}

/** Positions as they were heard, by the stream and by asking. */
function follow(fetch: Fetch, clock: FakeClock): { heard: number[]; events: SessionEvents } {
  const heard: number[] = [];
  const hear = (event: ReturnType<typeof eventOf>): void => {
    if (event.event === "queued") heard.push(event.queue_position);
  };
  const events = new SessionEvents(new Api(fetch, clock), clock, SESSION, {
    event: hear,
    view: (view) => {
      hear(eventOf(view));
    },
    gone: () => heard.push(-1),
  });
  return { heard, events };
}

describe("SessionEvents", () => {
  it("comes back to a stream that was cut, and asks in the meantime", async () => {
    const [first, second] = [new Stream(), new Stream()];
    const clock = new FakeClock();
    const server = new FakeServer()
      .on(STREAM, () => first.response, () => new Error("away"), () => second.response)
      .on(VIEW, () => json(queued(2)));
    const { heard, events } = follow(server.fetch, clock);
    events.start();
    clock.step(0);
    await settled();
    first.say(3);
    await settled();
    expect(heard).toEqual([3]);
    first.end();
    for (let ms = 0; ms < 6000; ms += 100) {
      clock.step(100);
      await settled();
    }
    expect(server.count(STREAM)).toBe(3);
    expect(heard).toContain(2); // by asking
    second.say(1);
    await settled();
    expect(heard.at(-1)).toBe(1);
    events.stop();
  });

  it("believes the stream where an answer was overtaken by it", async () => {
    const stream = new Stream();
    const clock = new FakeClock();
    let answer: (response: Response) => void = () => undefined;
    const slow = new Promise<Response>((resolve) => (answer = resolve));
    const server = new FakeServer().on(STREAM, () => stream.response);
    const { heard, events } = follow(
      (path, init) => (path.endsWith("/events") ? server.fetch(path, init) : slow),
      clock,
    );
    events.start();
    clock.step(0);
    await settled();
    const asked = events.ask();
    stream.say(2);
    await settled();
    answer(json(queued(3))); // how it was when it was asked
    await asked;
    expect(heard).toEqual([2]);
    events.stop();
  });

  it("asks again where an answer never ends", async () => {
    const clock = new FakeClock();
    const endless = (signal: AbortSignal | null | undefined): Response => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          signal?.addEventListener("abort", () => {
            controller.error(new Error("aborted"));
          });
        },
      });
      return new Response(body);
    };
    let asked = 0;
    const { events } = follow((path, init) => {
      if (path.endsWith("/events")) return Promise.reject(new Error("away"));
      asked += 1;
      return Promise.resolve(endless(init?.signal));
    }, clock);
    events.start();
    for (let ms = 0; ms < 40_000; ms += 500) {
      clock.step(500);
      await settled();
    }
    expect(asked).toBeGreaterThan(1);
    events.stop();
  });
});
