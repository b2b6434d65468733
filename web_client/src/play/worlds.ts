import type { Clock } from "../clock";
import type { WorldView } from "../protocol/messages";
import { type Api, ApiProblem } from "../session/api";
import { patiently } from "../session/patience";

/** The worlds that can be played here. */
export class Worlds {
  readonly #api: Api;
  readonly #clock: Clock;
  #all: readonly WorldView[] = [];

  constructor(api: Api, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  get known(): boolean {
    return this.#all.length > 0;
  }

  /** The world of that name, else the first one. */
  find(name: string | undefined): WorldView | null {
    return this.#all.find((world) => world.name === name) ?? this.#all[0] ?? null;
  }

  /** Ask for them; a front door without a world yet is asked again for a while. */
  async load(waiting: (stage: string) => void): Promise<void> {
    const ask = async (): Promise<readonly WorldView[]> => {
      const worlds = await this.#api.worlds();
      // The front door is there before its worker has loaded anything.
      if (worlds.length === 0) throw new ApiProblem(503, "no_worker", "no world is loaded", null);
      return worlds;
    };
    this.#all = await patiently(this.#api, this.#clock, ask, waiting);
  }
}
