import type { Clock } from "../clock";
import { PROTOCOL_VERSION } from "../protocol/codec";
import type { Ack, Command, Error as Refused } from "../protocol/messages";

export const HELLO_MS = 250;

/** A command but for its id, which is given here. */
export type Asked = Command extends infer One ? (One extends Command ? Omit<One, "id"> : never) : never;

/**
 * Commands of one connection and what became of them. The `hello` is repeated until it is
 * acknowledged, since the first packets can arrive before their sender is known.
 */
export class Commands {
  readonly #clock: Clock;
  readonly #send: (command: Command) => void;
  readonly #prefix: string;
  #count = 0;
  #cancel: (() => void) | null = null;
  readonly #open = new Map<string, (epoch: number | null) => void>();

  /** @param prefix makes ids of this connection unlike those of an earlier one. */
  constructor(clock: Clock, prefix: string, send: (command: Command) => void) {
    this.#clock = clock;
    this.#prefix = prefix;
    this.#send = send;
  }

  /** Introduce this connection, again and again until `done` is called with the epoch. */
  hello(nonce: number, done: (epoch: number) => void): void {
    const id = this.#nextId();
    const repeat = (): void => {
      this.#send({ type: "hello", id, nonce, version: PROTOCOL_VERSION });
      this.#cancel = this.#clock.after(HELLO_MS, repeat);
    };
    this.#open.set(id, (epoch) => {
      this.#cancel?.();
      if (epoch !== null) done(epoch);
    });
    repeat();
  }

  /** @param done hears the epoch when it has taken effect, or null where it was refused. */
  ask(command: Asked, done: (epoch: number | null) => void = () => undefined): void {
    const id = this.#nextId();
    this.#open.set(id, done);
    this.#send({ ...command, id });
  }

  acknowledged({ id, epoch }: Ack): void {
    this.#settle(id, epoch);
  }

  refused({ id }: Refused): void {
    if (id !== null) this.#settle(id, null);
  }

  /** The connection is gone: nothing more is sent, and nobody hears of what was asked. */
  end(): void {
    this.#cancel?.();
    this.#open.clear();
  }

  #settle(id: string, epoch: number | null): void {
    const done = this.#open.get(id);
    this.#open.delete(id);
    done?.(epoch);
  }

  #nextId(): string {
    this.#count += 1;
    return `${this.#prefix}-${this.#count}`;
  }
}
