/** One player's game in this page: facts, and what moves them. Knows no DOM element. */
import type { Company } from "../connection/link";
import { readRtcStats } from "../hud/rtcStats";
import type { HudSnapshot } from "../hud/snapshot";
import type { Sample } from "../hud/sparkline";
import type {
  AdmittedEvent,
  EndReason,
  FrameReceipt,
  QueuedEvent,
  SessionEvent,
  State,
  StatusMessage,
  WorldView,
} from "../protocol/messages";
import { ApiProblem, type Credentials } from "../session/api";
import { eventOf } from "../session/events";
import { type Face, faceOf, type Facts, type Link, NO_FACTS } from "../session/face";
import { END_STATE, reachable, terminal } from "../session/life";
import { claimSeconds, inLine, type Line, seatReady } from "../session/line";
import type { StoredSession } from "../session/store";
import { NO_MEDIA_SERVER, NO_WEBRTC, troubleOf } from "../session/trouble";
import { Attached } from "./attached";
import { Controls } from "./controls";
import { Meters, type Shown } from "./meters";
import type { GameOptions, GameView } from "./options";
import { PlayTime } from "./playTime";
import { type Seat, Seats } from "./seats";
import { Worlds } from "./worlds";

export class Game {
  readonly controls: Controls;
  readonly #options: GameOptions;
  readonly #view: GameView;
  #facts: Facts = NO_FACTS;
  #meters: Meters;
  readonly #worlds: Worlds;
  readonly #seats: Seats;
  #attached: Attached | null = null;
  #toldPaused = false; // what the server was told last
  #stage: string | null = null;
  #note: string | null = null;
  #playTime = new PlayTime();
  #playedSeconds: number | null = null; // the server's count, once the session has ended
  #lostAt: number | null = null;
  #start: string | null = null;
  #given: string | null = null; // the spectator who has the controls
  #line: Line | null = null;

  constructor(options: GameOptions, view: GameView) {
    this.#options = options;
    this.#view = view;
    this.#meters = new Meters(options.framesCanBeSeen);
    this.#worlds = new Worlds(options.api, options.clock);
    this.#seats = new Seats(options, (stage) => {
      this.#preparing(stage);
    });
    this.controls = new Controls(options.clock, (keys) => this.#attached?.link.sendKeys(keys));
  }

  get face(): Face {
    return faceOf(this.#facts);
  }

  get facts(): Facts {
    return this.#facts;
  }

  /** The world that is played, or may be. */
  get world(): WorldView | null {
    return this.#worlds.find(this.#attached?.session.world);
  }

  get start(): string | null {
    return this.#attached?.session.startPoint ?? this.#start;
  }

  get sessionId(): string | null {
    return this.#attached?.session.id ?? null;
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

  get claimSeconds(): number {
    return claimSeconds(this.#line, this.#options.clock.now());
  }

  get playedSeconds(): number {
    return this.#playedSeconds ?? this.#playTime.seconds(this.#options.clock.now());
  }

  get lostSeconds(): number {
    return this.#lostAt === null ? 0 : (this.#options.clock.now() - this.#lostAt) / 1000;
  }

  hud(): HudSnapshot {
    return this.#meters.snapshot(this.#options.clock.now(), {
      state: this.face,
      world: this.world?.name ?? null,
      session: this.sessionId,
      nonce: this.controls.nonce,
      sent_seq: this.controls.seq,
      transport: this.#facts.link === "up" ? (this.#attached?.session.transport ?? null) : null,
    });
  }

  /** Key-to-photon of the last half minute. */
  latencies(): readonly Sample[] {
    return this.#meters.latencies(this.#options.clock.now());
  }

  // ---------------------------------------------------------------- beginning
  /** The page is here: which worlds there are, and whether a session is to be gone on with. */
  async begin(): Promise<void> {
    const stored = this.#options.store.load();
    const attached = stored === null ? null : this.#adopt(stored, "connecting");
    await this.#loadWorlds();
    if (attached !== null && this.#attached === attached) await this.#goOn(attached);
  }

  /** Play from a start point of the first world. */
  async play(startPoint: string | null): Promise<void> {
    if (this.#facts.checking) return;
    this.#forget();
    this.#start = startPoint;
    this.#set({ ...NO_FACTS, hidden: this.#facts.hidden, checking: true });
    if (!this.#options.preflight()) {
      this.#set({ checking: false, trouble: NO_WEBRTC });
      return;
    }
    if (!(await this.#options.api.reachesMedia())) {
      if (this.face === "checking") this.#set({ checking: false, trouble: NO_MEDIA_SERVER });
      return;
    }
    if (this.face !== "checking") return; // withdrawn meanwhile
    try {
      const seat = await this.#seats.ask(this.world?.name ?? null, startPoint);
      if (seat !== null) this.#begun(seat);
    } catch (error) {
      this.#set({ checking: false, trouble: troubleOf(error) });
    }
  }

  /** Do not wait for the answer to `play`. */
  withdraw(): void {
    if (!this.#facts.checking) return;
    this.#seats.withdraw();
    this.#stage = null;
    this.#set({ checking: false });
  }

  /** Take the seat that has come free. */
  stepIn(): void {
    if (this.face !== "turn") return;
    this.#set({ turn: false });
    this.#attached?.link.dial({ takeOver: false, own: true });
  }

  /** The same place again. */
  playAgain(): Promise<void> {
    return this.play(this.start);
  }

  /** Back to where a place is chosen; the session, if there is one, is another tab's now. */
  async chooseAgain(): Promise<void> {
    const { hidden } = this.#facts;
    this.#forget();
    this.#set({ ...NO_FACTS, hidden });
    if (!this.#worlds.known) await this.#loadWorlds();
  }

  /** Play here what is being played in another tab. */
  takeOver(): void {
    this.#attached?.link.dial({ takeOver: true, own: false });
  }

  /** End the session and say how long it was played. */
  leave(): void {
    const session = this.#attached?.session;
    if (session === undefined) return;
    this.#finish("left", this.playedSeconds, "draining");
    void this.#seats.giveBack(session).then(() => {
      if (this.#facts.reason === "left") this.#set({ state: "closed" });
    });
  }

  // ---------------------------------------------------------------- playing
  reset(): void {
    if (this.#facts.link !== "up") return;
    this.#attached?.link.command({ type: "reset" }, (epoch) => {
      if (epoch === null) return;
      this.#newEpoch(epoch);
      this.#view.say("Back at the start");
    });
  }

  /** Who watches; null where nobody can. */
  get company(): Company | null {
    return this.#attached?.link.company() ?? null;
  }

  /** Which spectator has the controls. */
  get given(): string | null {
    return this.#given;
  }

  /** Credentials with which others may watch. */
  async invite(): Promise<Credentials | null> {
    const session = this.#attached?.session;
    return session === undefined ? null : this.#options.api.invite(session);
  }

  /** Hand the controls to a spectator, or take them back by one's own name. */
  grant(to: string): void {
    this.controls.releaseAll();
    this.#attached?.link.command({ type: "grant", to }, (epoch) => {
      if (epoch === null) this.#view.say("The controls could not be handed over");
      else if (to !== this.company?.me) this.#given = to;
      this.#view.changed();
    });
  }

  pause(paused: boolean): void {
    if (paused) this.controls.releaseAll();
    this.#set({ pausedByPlayer: paused });
    this.#tellPaused();
  }

  /** The tab was hidden, or is back. */
  hide(hidden: boolean): void {
    if (hidden) this.controls.releaseAll();
    this.#set({ hidden });
    this.#tellPaused();
  }

  /** The page goes away, perhaps for good: leave the session free for whoever comes next. */
  pageHidden(): void {
    this.controls.end();
    this.#attached?.part();
    this.#set({ link: this.#facts.link === "up" ? "lost" : this.#facts.link });
  }

  /** The page is back from the browser's cache. */
  pageShown(): void {
    if (this.#facts.reason === null) this.#attached?.join(true);
  }

  /** A frame is on screen. */
  displayed(rtp: number | null, atMs: number, presentedFrames: number): void {
    const frameAt = (of: number): FrameReceipt | null => this.#attached?.link.frameAt(of) ?? null;
    this.#saw(this.#meters.displayed(rtp, atMs, presentedFrames, frameAt));
  }

  /** Once a second: figures that have to be asked for. */
  async tick(): Promise<void> {
    const report = await this.#attached?.link.stats();
    if (report && this.#facts.link === "up") {
      const stats: Record<string, unknown>[] = [];
      report.forEach((stat: Record<string, unknown>) => stats.push(stat));
      this.#meters.read(readRtcStats(stats, this.#meters.rtc));
      this.#facts = { ...this.#facts, slow: this.#meters.slow };
    }
    this.#view.changed();
  }

  // ---------------------------------------------------------------- inside
  async #loadWorlds(): Promise<void> {
    try {
      await this.#worlds.load((stage) => {
        this.#preparing(stage);
      });
      this.#stage = null;
      if (this.world !== null) this.controls.useLegend(this.world.controls, this.world.axes);
      this.#view.changed();
    } catch (error) {
      if (this.#attached === null) this.#set({ trouble: troubleOf(error) });
    }
  }

  #preparing(stage: string): void {
    this.#stage = stage;
    this.#view.changed();
  }

  #begun({ session, created }: Seat): void {
    this.#options.store.save(session);
    const attached = this.#adopt(session, created.status);
    if (created.status !== "queued") {
      attached.join(true);
      return;
    }
    const { queue_position, eta_seconds } = created;
    this.#line = inLine({ queue_position: queue_position ?? 1, eta_seconds });
    attached.follow();
    this.#view.changed();
  }

  async #goOn(attached: Attached): Promise<void> {
    try {
      const view = await this.#options.api.view(attached.session);
      // Nothing was known of it here: the first word is no move.
      if (!terminal(view.status)) this.#set({ state: view.status });
      this.#apply(eventOf(view));
    } catch (error) {
      if (error instanceof ApiProblem) {
        await this.chooseAgain(); // it ended long ago
        return;
      }
      // No answer: the loops below go on trying.
    }
    if (this.#attached !== attached || this.#facts.reason !== null) return;
    if (this.#facts.state === "queued") attached.follow();
    else attached.join(this.#options.reloaded);
  }

  #adopt(session: StoredSession, state: State): Attached {
    this.#stage = null;
    this.#note = null;
    this.#line = null;
    this.#playTime = new PlayTime();
    this.#playedSeconds = null;
    this.#toldPaused = false;
    this.#meters = new Meters(this.#options.framesCanBeSeen);
    const attached = new Attached(this.#options, session, {
      changed: (link, note) => {
        this.#linkChanged(link, note);
      },
      up: (nonce, epoch) => {
        this.#up(nonce, epoch);
      },
      track: this.#view.track,
      cut: this.#view.cut,
      status: (message) => {
        this.#heard(message);
      },
      event: (event) => {
        this.#apply(event);
      },
      gone: (problem) => {
        this.#forget();
        this.#set({ trouble: troubleOf(problem) });
      },
    });
    this.#attached = attached;
    this.#set({ ...NO_FACTS, hidden: this.#facts.hidden, state, link: "dialing" });
    return attached;
  }

  #apply(event: SessionEvent): void {
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
        this.#finish(event.reason, event.played_seconds);
        return;
    }
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
    this.#line = seatReady(event, this.#options.clock.now());
    this.#set({ turn: true });
    if (waited) this.#view.turn();
  }

  #heard(message: StatusMessage): void {
    switch (message.type) {
      case "hello": // whoever is greeted has the controls
        this.#given = null;
        this.#meters.hello(message);
        return;
      case "chunk":
        this.#meters.chunk(message, this.#options.clock.now());
        return;
      case "lease":
        this.#meters.lease(message);
        return;
      case "frames":
        this.#saw(this.#meters.published(message.frames));
        return;
      case "state":
        this.#toldPaused = message.paused;
        this.#moved(message.state, message.stage);
        if (message.reason !== null) this.#finish(message.reason, this.playedSeconds);
        else this.#tellPaused();
        return;
      case "error":
        console.warn(`refused by the server: ${message.code}: ${message.message}`);
        return;
      case "ack":
        return;
    }
  }

  /** The server says where the session is; what the table does not know came late. */
  #moved(state: State, stage: string | null): void {
    const before = this.#facts.state;
    if (before === null || this.#facts.reason !== null || !reachable(before, state)) return;
    this.#stage = stage;
    this.#playTime.running(state === "running", this.#options.clock.now());
    this.#set({ state, played: this.#facts.played || (state === "running" && this.#isUp()) });
  }

  #isUp(): boolean {
    return this.#facts.link === "up";
  }

  #linkChanged(link: Link, note: string | null): void {
    if (link === "lost") this.#lostAt ??= this.#options.clock.now();
    if (link === "up" || link === "elsewhere") this.#lostAt = null;
    if (link !== "up") {
      this.controls.end();
      this.#view.shownKeys([]);
    }
    this.#note = note;
    this.#set({ link });
    if (link === "lost") this.#attached?.ask();
  }

  #up(nonce: number, epoch: number): void {
    this.#meters.reconnected(epoch);
    this.controls.begin(nonce, epoch);
    this.#set({ played: this.#facts.played || this.#facts.state === "running" });
    this.#tellPaused();
  }

  #newEpoch(epoch: number): void {
    this.#meters.newEpoch(epoch);
    this.controls.newEpoch(epoch);
    this.#view.changed();
  }

  /** The server generates for nobody who looks away. */
  #tellPaused(): void {
    const paused = this.#facts.pausedByPlayer || this.#facts.hidden;
    if (!this.#isUp() || paused === this.#toldPaused) return;
    this.#toldPaused = paused;
    this.#meters.interrupted();
    this.#attached?.link.command({ type: paused ? "pause" : "resume" });
  }

  #saw(frames: readonly Shown[]): void {
    for (const frame of frames) {
      const { receipt, atMs } = frame;
      const { samples, shown } = this.controls.displayed(receipt, atMs);
      for (const sample of samples) this.#meters.latency(sample, atMs);
      this.#view.shownKeys(shown);
      this.#view.frame(frame);
    }
  }

  #finish(reason: EndReason, playedSeconds: number, state: State = END_STATE[reason]): void {
    if (this.#facts.reason !== null) return;
    this.#playedSeconds = playedSeconds;
    this.#playTime.running(false, this.#options.clock.now());
    this.controls.end();
    this.#attached?.part();
    this.#options.store.clear();
    this.#view.shownKeys([]);
    this.#set({ reason, state, link: "none" });
  }

  /** Let go of the session without ending it. */
  #forget(): void {
    this.controls.end();
    this.#attached?.part();
    this.#options.store.clear();
    this.#start = this.start;
    this.#attached = null;
    this.#stage = null;
    this.#note = null;
    this.#lostAt = null;
  }

  #set(change: Partial<Facts>): void {
    this.#facts = { ...this.#facts, ...change };
    this.#view.changed();
  }
}
