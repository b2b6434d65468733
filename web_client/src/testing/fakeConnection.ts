import type { DirectHandlers } from "../connection/direct";
import type { Answer, MediaConnection } from "../connection/link";
import type { Command, Connection, FrameReceipt, Keys, StatusMessage } from "../protocol/messages";

/** A connection whose other end is the test. */
export class FakeConnection implements MediaConnection {
  readonly handlers: DirectHandlers;
  readonly commands: Command[] = [];
  readonly keys: Keys[] = [];
  closed = false;
  joined: Connection | null = null;

  constructor(handlers: DirectHandlers) {
    this.handlers = handlers;
  }

  async join(answer: Answer): Promise<void> {
    this.joined = await answer({ sdp: "offer" });
  }

  sendKeys(keys: Keys): void {
    this.keys.push(keys);
  }

  sendCommand(command: Command): void {
    this.commands.push(command);
  }

  company(): null {
    return null;
  }

  frameAt(): FrameReceipt | null {
    return null;
  }

  stats(): Promise<null> {
    return Promise.resolve(null);
  }

  close(): void {
    this.closed = true;
  }

  /** The server says something. */
  say(message: StatusMessage): void {
    this.handlers.status(message);
  }

  /** All channels are open and the `hello` is acknowledged. */
  comeUp(epoch = 0): void {
    this.handlers.open();
    const hello = this.commands.findLast(({ type }) => type === "hello");
    if (hello === undefined) throw new Error("no hello was sent");
    this.say({ type: "ack", id: hello.id, epoch });
  }
}
