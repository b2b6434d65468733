import type { Clock } from "../clock";
import type { StatusMessage } from "../protocol/messages";
import { type Asked, Commands } from "./commands";
import type { DirectHandlers } from "./direct";
import type { Answer, MediaConnection } from "./link";

/** What is heard on a call, until it is hung up. */
export type CallHandlers = Omit<DirectHandlers, "unreadable">;

/** One connection and what was asked over it: it hears the answers, and passes everything on. */
export class Call {
  readonly connection: MediaConnection;
  readonly #clock: Clock;
  #commands: Commands | null = null;
  #over = false;

  constructor(
    clock: Clock,
    make: (handlers: DirectHandlers) => MediaConnection,
    handlers: CallHandlers,
  ) {
    this.#clock = clock;
    /** What comes after the end is for nobody. */
    const live =
      <Said extends unknown[]>(hear: (...said: Said) => void) =>
      (...said: Said): void => {
        if (!this.#over) hear(...said);
      };
    this.connection = make({
      track: live(handlers.track),
      open: live(handlers.open),
      status: live((message: StatusMessage) => {
        this.#answered(message);
        handlers.status(message);
      }),
      unreadable: live((why: string) => {
        console.warn(`a status message was not understood: ${why}`);
      }),
      permitted: live((may: boolean) => handlers.permitted?.(may)),
      gone: live(handlers.gone),
    });
  }

  /** Whether it was hung up. */
  get over(): boolean {
    return this.#over;
  }

  join(answer: Answer): Promise<void> {
    return this.connection.join(answer);
  }

  /** Take the controls under this nonce; `done` hears the epoch once that is acknowledged. */
  introduce(nonce: number, done: (epoch: number) => void): void {
    this.quiet();
    this.#commands = new Commands(this.#clock, `${nonce}`, (command) => {
      this.connection.sendCommand(command);
    });
    this.#commands.hello(nonce, done);
  }

  /** @param done hears the epoch when it has taken effect, or null where it was refused. */
  command(asked: Asked, done?: (epoch: number | null) => void): void {
    this.#commands?.ask(asked, done);
  }

  /** Nothing is asked any more; what comes is still heard. */
  quiet(): void {
    this.#commands?.end();
    this.#commands = null;
  }

  hangUp(): void {
    this.#over = true;
    this.quiet();
    this.connection.close();
  }

  #answered(message: StatusMessage): void {
    if (message.type === "ack") this.#commands?.acknowledged(message);
    if (message.type === "error") this.#commands?.refused(message);
  }
}
