import type { Clock } from "../clock";
import { decode, encode, MAX_MESSAGE_BYTES, TOPICS } from "../protocol/codec";
import { NotInSchema } from "../protocol/guard";
import type { Command, Keys, StatusMessage } from "../protocol/messages";
import type { Answer } from "./link";

const GATHER_MS = 2000;
const UP_MS = 12_000; // then there is no way through, and the page says so
const WAVERING_MS = 4000; // "disconnected" may heal by itself
const MAX_BUFFERED_BYTES = 16 * 1024; // of keys: newer ones replace those that wait

/** Why a connection is gone. */
export type Gone =
  | "no-path" // it never came up
  | "lost" // it was up, and nothing gets through any more
  | "closed" // the server has closed it
  | "elsewhere"; // somebody else has come under its name

export interface DirectHandlers {
  readonly track: (stream: MediaStream, receiver: RTCRtpReceiver) => void;
  /** All channels are open; commands may be sent. */
  readonly open: () => void;
  readonly status: (message: StatusMessage) => void;
  readonly unreadable: (why: string) => void;
  /** Whether this page may send messages has changed. Said of spectators only. */
  readonly permitted?: (may: boolean) => void;
  readonly gone: (why: Gone) => void;
}

/** One peer connection: receives one video, speaks on three data channels. */
export class DirectConnection {
  readonly #clock: Clock;
  readonly #handlers: DirectHandlers;
  readonly #peer: RTCPeerConnection;
  readonly #keys: RTCDataChannel;
  readonly #command: RTCDataChannel;
  readonly #status: RTCDataChannel;
  #wasUp = false;
  #over = false;
  #cancelLimit: (() => void) | null = null;

  constructor(clock: Clock, handlers: DirectHandlers) {
    this.#clock = clock;
    this.#handlers = handlers;
    this.#peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
    this.#peer.addTransceiver("video", { direction: "recvonly" });
    this.#keys = this.#peer.createDataChannel(TOPICS.keys, { ordered: false, maxRetransmits: 0 });
    this.#command = this.#peer.createDataChannel(TOPICS.command);
    this.#status = this.#peer.createDataChannel(TOPICS.status);
    this.#listen();
  }

  /** Gather addresses, let `answer` ask the server, and join. Throws what `answer` throws. */
  async join(answer: Answer): Promise<void> {
    await this.#peer.setLocalDescription(await this.#peer.createOffer());
    await this.#gathered();
    const { sdp } = await answer({ sdp: this.#peer.localDescription?.sdp ?? "" });
    if (this.#over) return;
    this.#cancelLimit = this.#clock.after(UP_MS, () => {
      this.#end("no-path");
    });
    await this.#peer.setRemoteDescription({ type: "answer", sdp: sdp ?? "" });
  }

  sendKeys(keys: Keys): void {
    if (this.#keys.readyState !== "open" || this.#keys.bufferedAmount > MAX_BUFFERED_BYTES) return;
    const text = encode(keys);
    if (text.length <= MAX_MESSAGE_BYTES) this.#keys.send(text);
  }

  sendCommand(command: Command): void {
    if (this.#command.readyState === "open") this.#command.send(encode(command));
  }

  /** Direct WebRTC says on the status channel what its frames show. */
  frameAt(): null {
    return null;
  }

  /** Nobody else is on a direct connection. */
  company(): null {
    return null;
  }

  async stats(): Promise<RTCStatsReport | null> {
    return this.#over ? null : this.#peer.getStats();
  }

  /** Say goodbye; the handlers hear nothing more. */
  close(): void {
    this.#over = true;
    this.#cancelLimit?.();
    this.#peer.close();
  }

  #listen(): void {
    const channels = [this.#keys, this.#command, this.#status];
    for (const channel of channels) {
      channel.onopen = () => {
        if (this.#over || channels.some(({ readyState }) => readyState !== "open")) return;
        this.#wasUp = true;
        this.#cancelLimit?.();
        this.#handlers.open();
      };
      channel.onclose = () => {
        this.#end(this.#wasUp ? "closed" : "no-path");
      };
    }
    this.#status.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (!this.#over) this.#receive(data);
    };
    this.#peer.ontrack = ({ track, streams, receiver }) => {
      this.#handlers.track(streams[0] ?? new MediaStream([track]), receiver);
    };
    this.#peer.onconnectionstatechange = () => {
      this.#stateChanged();
    };
  }

  #receive(data: unknown): void {
    try {
      this.#handlers.status(decode("StatusMessage", String(data)));
    } catch (error) {
      if (!(error instanceof NotInSchema)) throw error;
      this.#handlers.unreadable(error.message);
    }
  }

  #stateChanged(): void {
    const state = this.#peer.connectionState;
    if (state === "failed" || state === "closed") {
      this.#end(this.#wasUp ? "lost" : "no-path");
    } else if (state === "disconnected" && this.#wasUp) {
      this.#cancelLimit?.();
      this.#cancelLimit = this.#clock.after(WAVERING_MS, () => {
        this.#end("lost");
      });
    } else if (state === "connected" && this.#wasUp) {
      this.#cancelLimit?.();
    }
  }

  #end(why: Gone): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelLimit?.();
    this.#handlers.gone(why); // the last frame is still there
    this.#peer.close();
  }

  #gathered(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#peer.iceGatheringState === "complete") {
        resolve();
        return;
      }
      const cancel = this.#clock.after(GATHER_MS, resolve);
      this.#peer.onicegatheringstatechange = () => {
        if (this.#peer.iceGatheringState !== "complete") return;
        cancel();
        resolve();
      };
    });
  }
}

/** Show frames as soon as they are decoded: a game wants no buffer. */
export function withoutBuffer(receiver: RTCRtpReceiver): void {
  if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
  if ("playoutDelayHint" in receiver) {
    (receiver as RTCRtpReceiver & { playoutDelayHint: number }).playoutDelayHint = 0;
  }
}
