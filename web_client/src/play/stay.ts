/** One session as this page plays it: what is known of it, and what moves it. Knows no DOM element. */
import { readRtcStats } from "../hud/rtcStats";
import type {
  AdmittedEvent,
  EndReason,
  FrameReceipt,
  QueuedEvent,
  SessionEvent,
  State,
  StatusMessage,
} from "../protocol/messages";
import type { ApiProblem } from "../session/api";
import { type Link, NO_SESSION, type SessionFacts } from "../session/face";
import { END_STATE, move } from "../session/life";
import { inLine, type Line, seatReady } from "../session/line";
import type { StoredSession } from "../session/store";
import { Attached } from "./attached";
import type { Controls } from "./controls";
import { Meters, type Presented, type Shown } from "./meters";
import type { GameOptions, GameView } from "./options";
import { PlayTime } from "./playTime";

export interface StayHandlers {
  readonly changed: () => void;
  /** The server knows no such session, or not with this secret. */
  readonly gone: (problem: ApiProblem) => void;
}

export class Stay {
  readonly attached: Attached;
  readonly meters: Meters;
  readonly #options: GameOptions;
  readonly #view: GameView;
  readonly #controls: Controls;
  readonly #handlers: StayHandlers;
  readonly #playTime = new PlayTime();
  #facts: SessionFacts;
  #hidden: boolean;
  #toldPaused = false; // what the server was told last
  #stage: string | null = null;
  #note: string | null = null;
  #playedSeconds: number | null = null; // the server's count, once the session has ended
  #lostAt: number | null = null;
  #given: string | null = null; // the spectator who has the controls
  #line: Line | null = null;

  /** @param state in which the session is found. @param hidden whether nobody sees the page. */
  constructor(
    options: GameOptions,
    view: GameView,
    controls: Controls,
    session: StoredSession,
    { state, hidden }: { readonly state: State; readonly hidden: boolean },
    handlers: StayHandlers,
  ) {
    this.#options = options;
    this.#view = view;
    this.#controls = controls;
    this.#handlers = handlers;
    this.#facts = { ...NO_SESSION, state, link: "dialing" };
    this.#hidden = hidden;
    this.meters = new Meters(options.framesCanBeSeen);
    this.attached = new Attached(options, session, {
      changed: (link, note) => {
        this.#linkChanged(link, note);
      },
      up: (nonce, epoch) => {
        this.#up(nonce, epoch);
      },
      track: view.track,
      cut: view.cut,
      status: (message) => {
        this.#heard(message);
      },
      event: (event) => {
        this.apply(event);
      },
      gone: handlers.gone,
    });
  }

  get session(): StoredSession {
    return this.attached.session;
  }

  get facts(): SessionFacts {
    return this.#facts;
  }

  /** What is being prepared, or why it takes long. */
  get stage(): string | null {
    return this.#stage;
  }

  get note(): string | null {
    return this.#note;
  }

  /** The place in the line, while there is one. */
  get line(): Line | null {
    return this.#line;
  }

  get playedSeconds(): number {
    return this.#playedSeconds ?? this.#playTime.seconds(this.#now());
  }

  get lostSeconds(): number {
    return this.#lostAt === null ? 0 : (this.#now() - this.#lostAt) / 1000;
  }

  /** Which spectator has the controls. */
  get given(): string | null {
    return this.#given;
  }

  // ---------------------------------------------------------------- what the player does
  /** In line with this place; the news is heard, and nothing is connected. */
  queueUp(place: Omit<QueuedEvent, "event">): void {
    this.#line = inLine(place);
    this.attached.follow();
    this.#handlers.changed();
  }

  /** Take the seat that has come free. */
  stepIn(): void {
    this.#set({ turn: false });
    this.attached.link.dial({ takeOver: false, own: true });
  }

  pause(paused: boolean): void {
    this.#set({ pausedByPlayer: paused });
    this.#tellPaused();
  }

  hide(hidden: boolean): void {
    this.#hidden = hidden;
    this.#tellPaused();
  }

  /** @param done hears when the world is back at its start. */
  reset(done: () => void): void {
    if (!this.#isUp()) return;
    this.attached.link.command({ type: "reset" }, (epoch) => {
      if (epoch === null) return;
      this.meters.newEpoch(epoch);
      this.#controls.newEpoch(epoch);
      this.#handlers.changed();
      done();
    });
  }

  /** Hand the controls to a spectator, or take them back by one's own name. */
  grant(to: string, refused: () => void): void {
    this.attached.link.command({ type: "grant", to }, (epoch) => {
      if (epoch === null) refused();
      else if (to !== this.attached.link.company()?.me) this.#given = to;
      this.#handlers.changed();
    });
  }

  /** Let go of it without ending it; `attached.join` may be called again. */
  part(): void {
    this.#controls.end();
    this.attached.part();
    if (this.#isUp()) this.#set({ link: "lost" });
  }

  // ---------------------------------------------------------------- what is heard of it
  /** It was asked for and is in this state: the first word, which is no move. */
  found(state: State): void {
    this.#set({ state });
  }

  apply(event: SessionEvent): void {
    switch (event.event) {
      case "queued":
        this.#queued(event);
        return;
      case "admitted":
        this.#admitted(event);
        return;
      case "state":
        this.#moved(event.state, event.stage);
        return;
      case "ended":
        this.finish(event.reason, event.played_seconds);
        return;
    }
  }

  /** It is over, or is being closed: only the first reason counts. */
  finish(reason: EndReason, playedSeconds: number, state: State = END_STATE[reason]): void {
    if (this.#facts.reason !== null) return;
    this.#playedSeconds = playedSeconds;
    this.#playTime.running(false, this.#now());
    this.#controls.end();
    this.attached.part();
    this.#options.store.clear();
    this.#view.shownKeys([]);
    this.#set({ reason, state, link: "none" });
  }

  /** The seat is free again. */
  closed(): void {
    if (this.#facts.reason === "left") this.#set({ state: "closed" });
  }

  /** A frame is on screen. */
  displayed(rtp: number | null, atMs: number, presentedFrames: number): void {
    const frameAt = (of: number): FrameReceipt | null => this.attached.link.frameAt(of);
    this.#saw(this.meters.displayed(rtp, atMs, presentedFrames, frameAt));
  }

  /** Once a second: figures that have to be asked for. */
  async measure(presented: Presented | null): Promise<void> {
    const report = await this.attached.link.stats();
    if (!report || !this.#isUp()) return;
    const stats: Record<string, unknown>[] = [];
    report.forEach((stat: Record<string, unknown>) => stats.push(stat));
    this.meters.read(readRtcStats(stats, this.meters.rtc), presented);
    this.#facts = { ...this.#facts, slow: this.meters.slow };
  }

  #queued(event: QueuedEvent): void {
    this.#moved("queued", null);
    if (this.#facts.state !== "queued") return; // came late
    this.#line = inLine(event);
    this.#set({ turn: false });
  }

  #admitted(event: AdmittedEvent): void {
    const waited = this.#facts.state === "queued";
    this.#moved("admitted", null);
    if (this.#facts.state !== "admitted" || (!waited && !this.#facts.turn)) return;
    this.#line = seatReady(event, this.#now());
    this.#set({ turn: true });
    if (waited) this.#view.turn();
  }

  #heard(message: StatusMessage): void {
    switch (message.type) {
      case "hello": // whoever is greeted has the controls
        this.#given = null;
        this.meters.hello(message);
        return;
      case "chunk":
        this.meters.chunk(message, this.#now());
        return;
      case "lease":
        this.meters.lease(message);
        return;
      case "frames":
        this.#saw(this.meters.published(message.frames));
        return;
      case "state":
        this.#toldPaused = message.paused;
        this.#moved(message.state, message.stage);
        if (message.reason !== null) this.finish(message.reason, this.playedSeconds);
        else this.#tellPaused();
        return;
      case "error":
        console.warn(`refused by the server: ${message.code}: ${message.message}`);
        return;
      case "ack":
        return;
    }
  }

  /** The server says where the session is. */
  #moved(state: State, stage: string | null): void {
    const before = this.#facts.state;
    if (before === null || this.#facts.reason !== null) return;
    switch (move(before, state)) {
      case "late": // two ways lead here, and this word was overtaken
        return;
      case "illegal":
        console.error(`a session that is ${before} cannot become ${state}`);
        return;
      case "on":
        this.#stage = stage;
        this.#playTime.running(state === "running", this.#now());
        this.#set({ state, played: this.#facts.played || (state === "running" && this.#isUp()) });
    }
  }

  #linkChanged(link: Link, note: string | null): void {
    if (link === "lost") this.#lostAt ??= this.#now();
    if (link === "up" || link === "elsewhere") this.#lostAt = null;
    if (link !== "up") {
      this.#controls.end();
      this.#view.shownKeys([]);
    }
    this.#note = note;
    this.#set({ link });
    if (link === "lost") this.attached.ask();
  }

  #up(nonce: number, epoch: number): void {
    this.meters.reconnected(epoch);
    this.#controls.begin(nonce, epoch);
    this.#set({ played: this.#facts.played || this.#facts.state === "running" });
    this.#tellPaused();
  }

  /** The server generates for nobody who looks away. */
  #tellPaused(): void {
    const paused = this.#facts.pausedByPlayer || this.#hidden;
    if (!this.#isUp() || paused === this.#toldPaused) return;
    this.#toldPaused = paused;
    this.meters.interrupted();
    this.attached.link.command({ type: paused ? "pause" : "resume" });
  }

  #saw(frames: readonly Shown[]): void {
    for (const frame of frames) {
      const { receipt, atMs, knownSinceMs } = frame;
      const { samples, shown } = this.#controls.displayed(receipt, atMs, knownSinceMs);
      for (const sample of samples) this.meters.latency(sample, atMs);
      this.#view.shownKeys(shown);
      this.#view.frame(frame);
    }
  }

  #isUp(): boolean {
    return this.#facts.link === "up";
  }

  #now(): number {
    return this.#options.clock.now();
  }

  #set(change: Partial<SessionFacts>): void {
    this.#facts = { ...this.#facts, ...change };
    this.#handlers.changed();
  }
}
