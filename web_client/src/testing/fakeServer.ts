import type { Fetch } from "../session/api";

type Answer = Response | Error;
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

/** The HTTP side of a server, scripted by route; the newest answer stays. */
export class FakeServer {
  readonly asked: Asked[] = [];
  readonly #answers = new Map<string, (() => Answer)[]>();

  /** Answer `"METHOD /path"` with these, one after the other; the last one again and again. */
  on(route: string, ...answers: (() => Answer)[]): this {
    this.#answers.set(route, answers);
    return this;
  }

  readonly fetch: Fetch = (path, init) => {
    const method = init?.method ?? "GET";
    const { body } = init ?? {};
    this.asked.push({ method, path, body: typeof body === "string" ? JSON.parse(body) : null });
    const answers = this.#answers.get(`${method} ${path}`);
    const next = answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0];
    const answer = next?.() ?? problem(404, "not_found");
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };

  /** How often a route was asked for. */
  count(route: string): number {
    return this.asked.filter(({ method, path }) => `${method} ${path}` === route).length;
  }
}

export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status });
}

export function problem(status: number, code: string): Response {
  return json({ title: code, status, code, detail: `${code} in words` }, status);
}

/** Lets every promise that is due run. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
