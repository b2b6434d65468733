import type { RemoteTrack, RemoteVideoTrack, Room } from "livekit-client";
import type { Clock } from "../clock";
import { decode, encode, MAX_MESSAGE_BYTES, TOPICS } from "../protocol/codec";
import { NotInSchema } from "../protocol/guard";
import type { Command, FrameReceipt, Keys, StatusMessage } from "../protocol/messages";
import type { DirectHandlers, Gone } from "./direct";
import type { Answer, Company } from "./link";
import type * as Library from "./livekitClient";

const UP_MS = 12_000; // then there is no way through, and the page says so
const WORKER = "worker"; // whose messages count; LiveKit stamps the sender
const SPECTATOR = "spectator-";
/** What comes on this topic goes back: a hidden page answers too, although its timers sleep. */
const ALIVE = "veldt.alive";

type Video = Pick<RemoteVideoTrack, "lookupFrameMetadata" | "receiver">;

/**
 * Whether frames can be read on their way without holding them up.
 *
 * Chromium hands them to a worker and back through `createEncodedStreams`, the only way that
 * livekit-client uses there: each picture comes some 8 ms later for it. Where there is no such
 * call, `RTCRtpScriptTransform` is the way.
 */
export function framesAreReadable(): boolean {
  return (
    "RTCRtpScriptTransform" in globalThis &&
    !("createEncodedStreams" in RTCRtpReceiver.prototype || "userAgentData" in navigator)
  );
}

/** One stay in a LiveKit room: one video, messages by topic. */
export class LiveKitConnection {
  readonly #clock: Clock;
  readonly #handlers: DirectHandlers;
  readonly #readsFrames: boolean;
  #room: Room | null = null;
  #metadata: Worker | null = null;
  #track: Video | null = null;
  #up = false;
  #over = false;
  #greeted = false;
  #cancelLimit: (() => void) | null = null;

  /** @param readsFrames read in the frames what they show; else `frames` messages say it. */
  constructor(clock: Clock, handlers: DirectHandlers, readsFrames: boolean) {
    this.#clock = clock;
    this.#handlers = handlers;
    this.#readsFrames = readsFrames;
  }

  /** Load the library, let `answer` ask for a place in the room, and go there. */
  async join(answer: Answer): Promise<void> {
    const library = await import("./livekitClient"); // before a token is minted: it is short-lived
    if (this.#over) return;
    const { url, token } = await answer({ frame_metadata: this.#readsFrames });
    if (this.#isOver()) return;
    this.#cancelLimit = this.#clock.after(UP_MS, () => {
      this.#end("no-path");
    });
    const room = this.#makeRoom(library);
    this.#room = room;
    try {
      await room.connect(url ?? "", token ?? "", { autoSubscribe: true });
    } catch (error) {
      console.warn("the room cannot be entered:", error);
      this.#end("no-path");
      return;
    }
    if (this.#isOver()) return;
    this.#cancelLimit();
    this.#up = true;
    this.#handlers.open();
  }

  sendKeys(keys: Keys): void {
    const text = encode(keys);
    if (text.length <= MAX_MESSAGE_BYTES) this.#send(text, TOPICS.keys, false);
  }

  sendCommand(command: Command): void {
    this.#send(encode(command), TOPICS.command, true);
  }

  /** What the frame with this RTP timestamp shows; null where that is not known. */
  frameAt(rtpTimestamp: number): FrameReceipt | null {
    const metadata = this.#track?.lookupFrameMetadata({ rtpTimestamp });
    if (metadata === undefined) return null;
    const { frameId, userTimestamp } = metadata;
    return { pts: 0, frame_id: String(frameId), receipt: String(userTimestamp) };
  }

  company(): Company | null {
    const room = this.#room;
    if (room === null) return null;
    const others = [...room.remoteParticipants.keys()];
    return {
      me: room.localParticipant.identity,
      spectators: others.filter((who) => who.startsWith(SPECTATOR)),
    };
  }

  async stats(): Promise<RTCStatsReport | null> {
    return (await this.#track?.receiver?.getStats()) ?? null;
  }

  /** Say goodbye; the handlers hear nothing more. */
  close(): void {
    this.#over = true;
    this.#leave();
  }

  #makeRoom(library: typeof Library): Room {
    const { DefaultReconnectPolicy, DisconnectReason, FrameMetadataWorker, Room, RoomEvent, Track, setLogLevel } =
      library;
    setLogLevel("warn");
    if (this.#readsFrames) this.#metadata = new FrameMetadataWorker();
    const room = new Room({
      adaptiveStream: false,
      dynacast: false,
      disconnectOnPageLeave: true,
      ...(this.#metadata && { frameMetadata: { worker: this.#metadata } }),
      reconnectPolicy: new DefaultReconnectPolicy([0, 300, 1000, 2000]),
    });
    room.on(RoomEvent.TrackSubscribed, (track: RemoteTrack, _, { identity }) => {
      const { receiver } = track;
      if (this.#over || identity !== WORKER || track.kind !== Track.Kind.Video || !receiver) return;
      this.#track = track as RemoteTrack & Video;
      this.#handlers.track(new MediaStream([track.mediaStreamTrack]), receiver);
    });
    room.on(RoomEvent.DataReceived, (payload, sender, _, topic) => {
      if (!this.#over && sender?.identity === WORKER) this.#receive(payload, topic ?? "");
    });
    room.on(RoomEvent.ParticipantPermissionsChanged, (_, who) => {
      if (this.#over || who !== room.localParticipant) return;
      this.#handlers.permitted?.(room.localParticipant.permissions?.canPublishData === true);
    });
    // A connection that has to be made anew is made with a fresh token, by whoever holds this one.
    room.on(RoomEvent.Reconnecting, () => {
      this.#end(this.#up ? "lost" : "no-path");
    });
    room.on(RoomEvent.Disconnected, (reason) => {
      if (!this.#up) this.#end("no-path");
      else if (reason === DisconnectReason.DUPLICATE_IDENTITY) this.#end("elsewhere");
      else this.#end("lost");
    });
    return room;
  }

  #receive(payload: Uint8Array, topic: string): void {
    const text = new TextDecoder().decode(payload);
    if (topic === ALIVE) {
      this.#send(text, ALIVE, false);
    } else if (topic === TOPICS.status) {
      this.#read(text);
    }
  }

  #read(text: string): void {
    let message: StatusMessage;
    try {
      message = decode("StatusMessage", text);
    } catch (error) {
      if (!(error instanceof NotInSchema)) throw error;
      this.#handlers.unreadable(error.message);
      return;
    }
    // Greeted again: the worker has lost its own way to the room and does not know us any more.
    if (message.type === "hello" && this.#greeted) this.#handlers.open();
    this.#greeted ||= message.type === "hello";
    this.#handlers.status(message);
  }

  #send(text: string, topic: string, reliable: boolean): void {
    if (!this.#up || this.#over || this.#room === null) return;
    const bytes = new TextEncoder().encode(text);
    this.#room.localParticipant.publishData(bytes, { reliable, topic }).catch((error: unknown) => {
      if (!this.#over) console.debug(`not sent on ${topic}:`, error); // all of it is repeated
    });
  }

  #end(why: Gone): void {
    if (this.#over) return;
    this.#over = true;
    this.#handlers.gone(why); // the last frame is still there
    this.#leave();
  }

  #leave(): void {
    this.#cancelLimit?.();
    this.#track = null;
    const room = this.#room;
    this.#room = null;
    void room?.disconnect().finally(() => this.#metadata?.terminate());
  }

  /** As a method, since it changes while something is awaited. */
  #isOver(): boolean {
    return this.#over;
  }
}
