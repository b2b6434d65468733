/** The only place where text becomes a message and a message becomes text. */
import { checked, NotInSchema } from "./guard";
import type {
  Command,
  Connect,
  Connection,
  Created,
  CreateSession,
  Keys,
  Problem,
  Readiness,
  SessionEvent,
  SessionView,
  SpectatorLink,
  StatusMessage,
  Worlds,
} from "./messages";
import schema from "./schema.json";

export const PROTOCOL_VERSION: number = schema["x-protocol-version"];
export const MAX_MESSAGE_BYTES: number = schema["x-max-message-bytes"];
export const TOPICS = {
  keys: "veldt.keys",
  command: "veldt.command",
  status: "veldt.status",
} as const;

/** What can be received, by its name in the schema. */
interface Received {
  StatusMessage: StatusMessage;
  SessionEvent: SessionEvent;
  Created: Created;
  SessionView: SessionView;
  Connection: Connection;
  SpectatorLink: SpectatorLink;
  Worlds: Worlds;
  Problem: Problem;
  Readiness: Readiness;
}

/** Read one message of a named type; @throws NotInSchema for anything else. */
export function decode<Name extends keyof Received>(name: Name, text: string): Received[Name] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new NotInSchema(name, "is no JSON");
  }
  return checked(name, value) as Received[Name];
}

/** Write a message to the server. */
export function encode(message: Command | Keys | CreateSession | Connect): string {
  return JSON.stringify(message);
}

/** Which control state a frame shows: whose connection, and its newest `seq`. */
export interface Receipt {
  readonly nonce: number;
  readonly seq: number;
}

/** Split a u64 of the wire, `nonce << 32 | seq`, without losing digits. */
export function receiptOf(decimal: string): Receipt {
  const whole = BigInt(decimal);
  return { nonce: Number(whole >> 32n), seq: Number(whole & 0xffff_ffffn) };
}
