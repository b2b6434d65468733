import { describe, expect, it } from "vitest";
import { FakeClock } from "../testing/fakeClock";
import { FakeServer, json } from "../testing/fakeServer";
import { Api, type Fetch } from "./api";

const worlds = (mediaServer: string | null): FakeServer =>
  new FakeServer().on("GET /v1/worlds", () => json({ worlds: [], media_server: mediaServer }));

describe("Api.reachesMedia", () => {
  it("asks nobody where there is no media server", async () => {
    const server = worlds(null);
    const api = new Api(server.fetch, new FakeClock());
    await api.worlds();
    expect(await api.reachesMedia()).toBe(true);
    expect(server.asked).toHaveLength(1);
  });

  it("takes any answer for one, and none for none", async () => {
    const asked: string[] = [];
    const answers: (() => Promise<Response>)[] = [
      () => Promise.resolve(new Response("", { status: 404 })),
      () => Promise.reject(new TypeError("refused")),
    ];
    const server = worlds("wss://livekit.example");
    const fetch: Fetch = (url, init) => {
      if (url.startsWith("/")) return server.fetch(url, init);
      asked.push(url);
      return answers.shift()?.() ?? Promise.reject(new Error("asked too often"));
    };
    const api = new Api(fetch, new FakeClock());
    await api.worlds();
    expect(await api.reachesMedia()).toBe(true);
    expect(await api.reachesMedia()).toBe(false);
    expect(asked).toEqual(["https://livekit.example", "https://livekit.example"]);
  });

  it("does not wait for ever", async () => {
    const clock = new FakeClock();
    const server = worlds("ws://livekit.example");
    const fetch: Fetch = (url, init) =>
      url.startsWith("/")
        ? server.fetch(url, init)
        : new Promise((_, reject) => {
            init?.signal?.addEventListener("abort", () => {
              reject(new DOMException("aborted", "AbortError"));
            });
          });
    const api = new Api(fetch, clock);
    await api.worlds();
    const reaches = api.reachesMedia();
    clock.step(5000);
    expect(await reaches).toBe(false);
  });
});
