import type { Clock } from "../clock";
import { decode, encode } from "../protocol/codec";
import type {
  Connect,
  Connection,
  Created,
  CreateSession,
  Readiness,
  SessionView,
  WorldView,
} from "../protocol/messages";

/** The service answered with a problem; `code` is stable. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly retryAfterSeconds: number | null,
  ) {
    super(detail);
    this.name = "ApiProblem";
  }
}

/** The service did not answer, or not in its own words. */
export class ApiUnreachable extends Error {
  readonly code = "unreachable";

  constructor(detail: string) {
    super(detail);
    this.name = "ApiUnreachable";
  }
}

/** Who may act on a session. */
export interface Credentials {
  readonly id: string;
  readonly token: string;
}

const ANSWER_MS = 15_000;
const MEDIA_MS = 4000;

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>;

/** The HTTP API, as far as a player needs it. Every call ends within its limit. */
export class Api {
  readonly #fetch: Fetch;
  readonly #clock: Clock;
  #mediaServer: string | null = null;

  constructor(fetch: Fetch, clock: Clock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  async worlds(): Promise<readonly WorldView[]> {
    const { worlds, media_server } = decode("Worlds", await this.#text("GET", "/v1/worlds"));
    this.#mediaServer = media_server;
    return worlds;
  }

  /** Whether this browser reaches the media server that `worlds` has named; true without one. */
  async reachesMedia(): Promise<boolean> {
    if (this.#mediaServer === null) return true;
    const limit = new AbortController();
    const cancel = this.#clock.after(MEDIA_MS, () => {
      limit.abort();
    });
    try {
      const url = this.#mediaServer.replace(/^ws/, "http");
      await this.#fetch(url, { mode: "no-cors", cache: "no-store", signal: limit.signal });
      return true;
    } catch {
      return false; // no answer at all: what it says does not matter, nor may it be read
    } finally {
      cancel();
    }
  }

  /** How far a server that is not ready has come; null where it does not say. */
  async readiness(): Promise<Readiness | null> {
    try {
      const [, text] = await this.#request("GET", "/readyz", {});
      return decode("Readiness", text);
    } catch {
      return null; // an answer of a proxy, or none: the caller knows already that it is not ready
    }
  }

  async create(body: CreateSession): Promise<Created> {
    return decode("Created", await this.#text("POST", "/v1/sessions", { body: encode(body) }));
  }

  async view(session: Credentials): Promise<SessionView> {
    return decode("SessionView", await this.#text("GET", pathOf(session), { session }));
  }

  async connect(session: Credentials, body: Connect): Promise<Connection> {
    const path = `${pathOf(session)}/connect`;
    return decode("Connection", await this.#text("POST", path, { session, body: encode(body) }));
  }

  /** What lets others watch the session: credentials for `watch`. */
  async invite(session: Credentials): Promise<Credentials> {
    const text = await this.#text("POST", `${pathOf(session)}/tokens`, { session });
    const { session_id: id, watch_token: token } = decode("SpectatorLink", text);
    return { id, token };
  }

  /** Where a spectator joins. */
  async watch(ticket: Credentials): Promise<Connection> {
    const path = `${pathOf(ticket)}/watch`;
    return decode("Connection", await this.#text("POST", path, { session: ticket }));
  }

  /** End the session; answers when its seat is free, or a little later. */
  async close(session: Credentials): Promise<void> {
    await this.#text("DELETE", pathOf(session), { session, keepalive: true });
  }

  /** Open the event stream; the body is read by the caller, and `signal` ends it. */
  async events(session: Credentials, signal: AbortSignal): Promise<Response> {
    const response = await this.#fetch(`${pathOf(session)}/events`, {
      headers: { ...authorization(session), accept: "text/event-stream" },
      cache: "no-store",
      signal,
    });
    if (!response.ok) throw problemOf(response, await response.text().catch(() => ""));
    return response;
  }

  async #text(method: string, path: string, options: RequestOptions = {}): Promise<string> {
    const [response, text] = await this.#request(method, path, options);
    if (!response.ok) throw problemOf(response, text);
    return text;
  }

  /** One limit for all of it: an answer that begins and never ends is none. */
  async #request(
    method: string,
    path: string,
    options: RequestOptions,
  ): Promise<[response: Response, text: string]> {
    const limit = new AbortController();
    const cancel = this.#clock.after(ANSWER_MS, () => {
      limit.abort();
    });
    try {
      const response = await this.#fetch(path, {
        method,
        headers: {
          accept: "application/json",
          ...(options.session === undefined ? {} : authorization(options.session)),
          ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        },
        body: options.body ?? null,
        cache: "no-store",
        keepalive: options.keepalive ?? false,
        signal: limit.signal,
      });
      return [response, await response.text()];
    } catch (error) {
      throw new ApiUnreachable(
        limit.signal.aborted ? `no answer within ${ANSWER_MS / 1000} s` : String(error),
      );
    } finally {
      cancel();
    }
  }
}

interface RequestOptions {
  readonly session?: Credentials;
  readonly body?: string;
  readonly keepalive?: boolean;
}

function pathOf(session: Credentials): string {
  return `/v1/sessions/${encodeURIComponent(session.id)}`;
}

function authorization(session: Credentials): Record<string, string> {
  return { authorization: `Bearer ${session.token}` };
}

function problemOf(response: Response, text: string): ApiProblem {
  const wait = Number(response.headers.get("retry-after") ?? "");
  const retryAfter = Number.isFinite(wait) && wait > 0 ? wait : null;
  try {
    const problem = decode("Problem", text);
    return new ApiProblem(response.status, problem.code, problem.detail, retryAfter);
  } catch {
    // Not ours: a proxy's page, say. Its status is all that counts.
    return new ApiProblem(
      response.status,
      `http_${response.status}`,
      `The server answered ${response.status}.`,
      retryAfter,
    );
  }
}
