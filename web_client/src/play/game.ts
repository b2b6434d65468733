/** One player's game in this page: worlds, seats, and the session that is played. Knows no DOM element. */
import type { Company } from "../connection/link";
import type { HudSnapshot } from "../hud/snapshot";
import type { Sample } from "../hud/sparkline";
import type { State, WorldView } from "../protocol/messages";
import { ApiProblem, type Credentials } from "../session/api";
import { eventOf } from "../session/events";
import { type Face, faceOf, type Facts, NO_PAGE, NO_SESSION, type PageFacts } from "../session/face";
import { terminal } from "../session/life";
import { claimSeconds, type Line } from "../session/line";
import type { StoredSession } from "../session/store";
import { NO_MEDIA_SERVER, NO_WEBRTC, troubleOf } from "../session/trouble";
import { type Awaited, Comeback } from "./comeback";
import { Controls } from "./controls";
import { Meters, type Presented } from "./meters";
import type { GameOptions, GameView } from "./options";
import { type Seat, Seats } from "./seats";
import { Stay } from "./stay";
import { Worlds } from "./worlds";

/** After these ends, and with these troubles, the service is on its way back. */
const AWAY = new Set<string>([
  "worker_died",
  "shutdown",
  "no_worker",
  "shutting_down",
  "unreachable",
]);

export class Game {
  readonly controls: Controls;
  readonly #options: GameOptions;
  readonly #view: GameView;
  readonly #worlds: Worlds;
  readonly #seats: Seats;
  readonly #comeback: Comeback;
  readonly #unplayed: Meters; // what there is to say without a session
  #page: PageFacts = NO_PAGE;
  #stay: Stay | null = null;
  #stage: string | null = null; // of a service that is not ready
  #start: string | null = null;
  #elsewhere: string | null = null; // the start point of a link that leads away from the session

  constructor(options: GameOptions, view: GameView) {
    this.#options = options;
    this.#view = view;
    this.#worlds = new Worlds(options.api, options.clock);
    this.#seats = new Seats(options, (stage) => {
      this.#preparing(stage);
    });
    this.#comeback = new Comeback(options.api, options.clock, view.changed);
    this.#unplayed = new Meters(options.framesCanBeSeen);
    this.controls = new Controls(options.clock, (keys) => this.#stay?.attached.link.sendKeys(keys));
  }

  get face(): Face {
    return faceOf(this.facts);
  }

  get facts(): Facts {
    return { ...(this.#stay?.facts ?? NO_SESSION), ...this.#page };
  }

  /** The world that is played, or may be. */
  get world(): WorldView | null {
    return this.#worlds.find(this.#stay?.session.world);
  }

  get start(): string | null {
    return this.#stay?.session.startPoint ?? this.#start;
  }

  /** Where the link leads, at the crossroads. */
  get elsewhere(): string | null {
    return this.#elsewhere;
  }

  get sessionId(): string | null {
    return this.#stay?.session.id ?? null;
  }

  /** What is being prepared, or why it takes long. */
  get stage(): string | null {
    return this.#stay?.stage ?? this.#stage;
  }

  get note(): string | null {
    return this.#stay?.note ?? null;
  }

  /** How it stands with a service that went away; null where it did not. */
  get awaited(): Awaited | null {
    return this.#comeback.awaited;
  }

  /** The place in the line, while there is one. */
  get line(): Line | null {
    return this.#stay?.line ?? null;
  }

  get claimSeconds(): number {
    return claimSeconds(this.line, this.#options.clock.now());
  }

  get playedSeconds(): number {
    return this.#stay?.playedSeconds ?? 0;
  }

  get lostSeconds(): number {
    return this.#stay?.lostSeconds ?? 0;
  }

  hud(): HudSnapshot {
    const meters = this.#stay?.meters ?? this.#unplayed;
    return meters.snapshot(this.#options.clock.now(), {
      state: this.face,
      world: this.world?.name ?? null,
      session: this.sessionId,
      nonce: this.controls.nonce,
      sent_seq: this.controls.seq,
      transport: this.facts.link === "up" ? (this.#stay?.session.transport ?? null) : null,
    });
  }

  /** Key-to-photon of the last half minute. */
  latencies(): readonly Sample[] {
    return this.#stay?.meters.latencies(this.#options.clock.now()) ?? [];
  }

  // ---------------------------------------------------------------- beginning
  /**
   * The page is here: which worlds there are, and whether a session is to be gone on with.
   *
   * @param wanted the start point that the page's address names.
   */
  async begin(wanted: string | null = null): Promise<void> {
    const stored = this.#options.store.load();
    const stay = stored === null ? null : this.#adopt(stored, "connecting");
    await this.#loadWorlds();
    if (stay === null || this.#stay !== stay) return;
    const known = this.world?.start_points.some(({ name }) => name === wanted) ?? false;
    if (known && wanted !== stay.session.startPoint) this.#elsewhere = wanted;
    await this.#find(stay);
    if (this.#stay !== stay || stay.facts.reason !== null) return;
    if (this.#elsewhere === null) {
      this.#goOn(stay);
      return;
    }
    stay.attached.follow(); // a place in line is kept meanwhile
    this.#set({ crossroads: true });
  }

  /** At the crossroads: on with the session that this tab has. */
  goOn(): void {
    if (this.#stay === null || !this.#page.crossroads) return;
    this.#elsewhere = null;
    this.#set({ crossroads: false });
    this.#goOn(this.#stay);
  }

  /** At the crossroads: to where the link leads. */
  async goElsewhere(): Promise<void> {
    const stay = this.#stay;
    if (stay === null || !this.#page.crossroads) return;
    const wanted = this.#elsewhere;
    // One that runs although this page is not connected is another tab's: it is left alone.
    if (stay.facts.state !== "running") void this.#seats.giveBack(stay.session);
    await this.play(wanted);
  }

  /** Play from a start point of the first world. */
  async play(startPoint: string | null): Promise<void> {
    if (this.#page.checking) return;
    this.#forget();
    this.#start = startPoint;
    this.#set({ checking: true });
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
    if (!this.#page.checking) return;
    this.#seats.withdraw();
    this.#stage = null;
    this.#set({ checking: false });
  }

  /** Take the seat that has come free. */
  stepIn(): void {
    if (this.face === "turn") this.#stay?.stepIn();
  }

  /** The same place again. */
  playAgain(): Promise<void> {
    return this.play(this.start);
  }

  /** Back to where a place is chosen; the session, if there is one, is another tab's now. */
  async chooseAgain(): Promise<void> {
    this.#forget();
    this.#set({});
    if (!this.#worlds.known) await this.#loadWorlds();
  }

  /** Play here what is being played in another tab. */
  takeOver(): void {
    this.#stay?.attached.link.dial({ takeOver: true, own: false });
  }

  /** End the session and say how long it was played. */
  leave(): void {
    const stay = this.#stay;
    if (stay === null) return;
    stay.finish("left", stay.playedSeconds, "draining");
    void this.#seats.giveBack(stay.session).then(() => {
      stay.closed();
    });
  }

  // ---------------------------------------------------------------- playing
  reset(): void {
    this.#stay?.reset(() => {
      this.#view.say("Back at the start");
    });
  }

  /** Who watches; null where nobody can. */
  get company(): Company | null {
    return this.#stay?.attached.link.company() ?? null;
  }

  /** Which spectator has the controls. */
  get given(): string | null {
    return this.#stay?.given ?? null;
  }

  /** Credentials with which others may watch. */
  async invite(): Promise<Credentials | null> {
    const session = this.#stay?.session;
    return session === undefined ? null : this.#options.api.invite(session);
  }

  /** Hand the controls to a spectator, or take them back by one's own name. */
  grant(to: string): void {
    this.controls.releaseAll();
    this.#stay?.grant(to, () => {
      this.#view.say("The controls could not be handed over");
    });
  }

  pause(paused: boolean): void {
    if (paused) this.controls.releaseAll();
    this.#stay?.pause(paused);
  }

  /** The tab was hidden, or is back. */
  hide(hidden: boolean): void {
    if (hidden) this.controls.releaseAll();
    this.#comeback.awake = !hidden;
    this.#set({ hidden });
    this.#stay?.hide(hidden);
  }

  /** The page goes away, perhaps for good: leave the session free for whoever comes next. */
  pageHidden(): void {
    this.controls.end();
    this.#stay?.part();
  }

  /** The page is back from the browser's cache. */
  pageShown(): void {
    const stay = this.#stay;
    if (stay?.facts.reason !== null) return;
    if (this.#page.crossroads) stay.attached.follow();
    else stay.attached.join(true);
  }

  /** A frame is on screen. */
  displayed(rtp: number | null, atMs: number, presentedFrames: number): void {
    this.#stay?.displayed(rtp, atMs, presentedFrames);
  }

  /** Once a second: figures that have to be asked for. */
  async tick(presented: Presented | null): Promise<void> {
    await this.#stay?.measure(presented);
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
      if (this.#stay === null) this.#set({ trouble: troubleOf(error) });
    }
  }

  #preparing(stage: string): void {
    this.#stage = stage;
    this.#view.changed();
  }

  #begun({ session, created }: Seat): void {
    this.#options.store.save(session);
    const stay = this.#adopt(session, created.status);
    if (created.status !== "queued") {
      stay.attached.join(true);
      return;
    }
    const { queue_position, eta_seconds } = created;
    stay.queueUp({ queue_position: queue_position ?? 1, eta_seconds });
  }

  /** Ask what has become of a session that was stored. */
  async #find(stay: Stay): Promise<void> {
    try {
      const view = await this.#options.api.view(stay.session);
      if (!terminal(view.status)) stay.found(view.status);
      stay.apply(eventOf(view));
    } catch (error) {
      if (error instanceof ApiProblem) await this.chooseAgain(); // it ended long ago
      // Without an answer the loops of the connection go on trying.
    }
  }

  #goOn(stay: Stay): void {
    if (stay.facts.state === "queued") stay.attached.follow();
    else if (!stay.facts.turn) stay.attached.join(this.#options.reloaded);
  }

  #adopt(session: StoredSession, state: State): Stay {
    this.#stage = null;
    const stay = new Stay(
      this.#options,
      this.#view,
      this.controls,
      session,
      { state, hidden: this.#page.hidden },
      {
        changed: () => {
          if (this.#stay === stay) this.#changed();
        },
        gone: (problem) => {
          this.#forget();
          this.#set({ trouble: { ...troubleOf(problem), session: session.id } });
        },
      },
    );
    this.#stay = stay;
    this.#set({ checking: false, trouble: null });
    return stay;
  }

  /** Let go of the session without ending it. */
  #forget(): void {
    this.controls.end();
    this.#start = this.#elsewhere ?? this.start;
    this.#stay?.attached.part();
    this.#options.store.clear();
    this.#stay = null;
    this.#stage = null;
    this.#elsewhere = null;
    this.#page = { ...this.#page, checking: false, crossroads: false, trouble: null };
  }

  #set(change: Partial<PageFacts>): void {
    this.#page = { ...this.#page, ...change };
    this.#changed();
  }

  #changed(): void {
    const { reason, trouble } = this.facts;
    if (this.#page.crossroads && reason !== null) {
      void this.chooseAgain(); // one of the two ways is gone
      return;
    }
    this.#comeback.wanted = AWAY.has(trouble?.code ?? reason ?? "");
    this.#view.changed();
  }
}
