/** Puts the game and its page together. */
import { browserClock } from "./clock";
import {
  canConnect,
  focusGame,
  keyboardLayout,
  nameInAddress,
  startInAddress,
  wasReloaded,
} from "./browser";
import { makeConnection } from "./connection/choose";
import { withoutBuffer } from "./connection/direct";
import { newNonce } from "./connection/nonce";
import { ClipRecorder } from "./clips/recorder";
import { Devices, padsAreOffered } from "./devices";
import type { Shortcut } from "./input/keyboard";
import { Keepsakes } from "./keepsakes";
import { Game } from "./play/game";
import { Api } from "./session/api";
import { type Face, plays } from "./session/face";
import { SessionStore } from "./session/store";
import { Shortcuts } from "./shortcuts";
import { Arriving } from "./ui/arriving";
import { CompanyPanel } from "./ui/company";
import { chime, chimeIsPossible, prepareChime } from "./ui/chime";
import { Copier } from "./ui/copier";
import { must } from "./ui/dom";
import { Help } from "./ui/help";
import { HudPanel } from "./ui/hudPanel";
import { KeyCaps } from "./ui/keyCaps";
import { paintFrom } from "./ui/paint";
import { Preferences } from "./ui/preferences";
import { Quiet } from "./ui/quiet";
import { Sheet } from "./ui/sheet";
import { framesCanBeSeen, Stage, watchFrames } from "./ui/stage";
import { Toast } from "./ui/toast";
import { Topbar } from "./ui/topbar";

const BEAT_MS = 1000;

export class App {
  readonly #stage = new Stage();
  readonly #toast = new Toast(must("#toast"), browserClock);
  readonly #preferences = new Preferences(() => localStorage);
  readonly #quiet = new Quiet(browserClock);
  readonly #wanted = startInAddress();
  readonly #game: Game;
  readonly #arriving: Arriving;
  readonly #sheet: Sheet;
  readonly #hud: HudPanel;
  readonly #help: Help;
  readonly #company: CompanyPanel;
  readonly #topbar: Topbar;
  readonly #caps: KeyCaps;
  readonly #devices: Devices;
  readonly #keepsakes: Keepsakes;
  readonly #shortcuts: Shortcuts;
  #layout: ReadonlyMap<string, string> | undefined;
  #face: Face | null = null;
  #begun = false;
  #cancelBeat: (() => void) | null = null;

  constructor() {
    const say = (words: string): void => {
      this.#toast.say(words);
    };
    this.#game = new Game(
      {
        clock: browserClock,
        api: new Api((url, init) => fetch(url, init), browserClock),
        store: new SessionStore(() => sessionStorage),
        makeConnection: (handlers, transport) => makeConnection(browserClock, transport, handlers),
        nonce: () => newNonce((into) => crypto.getRandomValues(into)),
        preflight: canConnect,
        reloaded: wasReloaded(),
        framesCanBeSeen: framesCanBeSeen(),
      },
      {
        changed: () => {
          this.#render();
        },
        track: (stream, receiver) => {
          withoutBuffer(receiver);
          this.#stage.show(stream);
        },
        cut: () => {
          this.#stage.freeze();
        },
        shownKeys: (codes) => {
          this.#caps.seen(codes);
        },
        frame: ({ frameId, receipt, atMs }) => {
          // For whoever measures from outside: tests, and figures of a real page.
          const detail = { frameId, ...receipt, atMs };
          this.#stage.video.dispatchEvent(new CustomEvent("veldt-frame", { detail }));
        },
        turn: () => {
          if (this.#preferences.get("chime") === "on") chime();
        },
        say,
      },
    );
    const game = this.#game;
    const copier = new Copier(say);
    const shortcut = (name: Shortcut): boolean => this.#shortcuts.do(name);
    this.#keepsakes = new Keepsakes(this.#stage.video, copier, say);
    this.#caps = new KeyCaps(must("#keys"), must("#shown-keys"), {
      press: (code, holder, atMs) => {
        this.#devices.pressed(code, holder, atMs);
      },
      release: (code, holder) => {
        game.controls.release(code, holder);
      },
    });
    this.#devices = new Devices(game, this.#caps, {
      shortcut,
      say,
      stir: () => {
        this.#quiet.stir();
      },
    });
    this.#arriving = new Arriving({
      chosen: () => {
        this.#showPoster();
      },
      play: (start) => {
        if (this.#preferences.get("chime") === "on") prepareChime();
        void game.play(start);
      },
      withdraw: () => {
        game.withdraw();
      },
    });
    this.#sheet = new Sheet({
      takeOver: () => {
        game.takeOver();
      },
      leave: () => {
        game.leave();
      },
      pause: (paused) => {
        game.pause(paused);
      },
      stepIn: () => {
        game.stepIn();
      },
      goOn: () => {
        game.goOn();
      },
      goElsewhere: () => void game.goElsewhere(),
      playAgain: () => void game.playAgain(),
      chooseAgain: () => void game.chooseAgain(),
      saveClip: () => shortcut("clip"),
      hasClip: () => this.#keepsakes.hasClip,
      chime: chimeIsPossible() ? this.#preferences.get("chime") === "on" : null,
      setChime: (on) => {
        this.#preferences.set("chime", on ? "on" : "off");
        if (on) prepareChime();
      },
      copier,
    });
    this.#hud = new HudPanel(must("#hud"), copier);
    const share = (): void => void this.#keepsakes.share(game.start ?? this.#arriving.choice);
    this.#help = new Help(
      {
        opened: () => {
          game.controls.releaseAll();
        },
        reset: () => {
          game.reset();
        },
        leave: () => {
          game.leave();
        },
        saveClip: () => shortcut("clip"),
        savePicture: () => shortcut("picture"),
        share,
        figures: () => shortcut("hud"),
        crisp: (crisp) => {
          this.#setCrisp(crisp);
        },
        clips: (clips) => {
          this.#preferences.set("clips", clips ? "on" : "off");
          this.#keep();
        },
      },
      {
        pads: padsAreOffered(),
        clips: ClipRecorder.possible,
        fullscreen: document.fullscreenEnabled,
      },
    );
    this.#topbar = new Topbar({
      clip: () => shortcut("clip"),
      picture: () => shortcut("picture"),
      share,
      pause: () => {
        shortcut("pause");
      },
      fullscreen: () => {
        shortcut("fullscreen");
      },
      hud: () => {
        shortcut("hud");
      },
      help: () => {
        shortcut("help");
      },
      leave: () => {
        game.leave();
      },
    });
    this.#company = new CompanyPanel({
      invite: () => void this.#keepsakes.invite(() => game.invite()),
      grant: (to) => {
        game.grant(to);
      },
    });
    this.#shortcuts = new Shortcuts({
      game,
      help: this.#help,
      hud: this.#hud,
      keepsakes: this.#keepsakes,
      preferences: this.#preferences,
      stage: this.#stage,
      say,
      layout: () => this.#layout,
    });
    this.#help.element.append(this.#company.element);
    must("#front").append(this.#arriving.element, this.#sheet.element);
    document.body.append(this.#help.element, copier.element);
  }

  /** Begin: listen, draw, and go on where this tab was. */
  async start(): Promise<void> {
    this.#listen();
    this.#hud.open = this.#preferences.get("hud") === "on";
    this.#setCrisp(this.#preferences.get("crisp") === "on");
    this.#help.crisp = this.#preferences.get("crisp") === "on";
    this.#help.clips = this.#preferences.get("clips") !== "off";
    watchFrames(this.#stage.video, (rtp, atMs, presentedFrames) => {
      if (this.#game.facts.link === "up") this.#stage.thaw();
      this.#game.displayed(rtp, atMs, presentedFrames);
    });
    this.#wake(document.visibilityState !== "hidden");
    void this.#learnLayout();
    this.#render();
    await this.#game.begin(this.#wanted);
    this.#begun = true;
  }

  #listen(): void {
    const game = this.#game;
    this.#devices.listen();
    document.addEventListener("visibilitychange", () => {
      const hidden = document.visibilityState === "hidden";
      game.hide(hidden);
      this.#devices.awake = !hidden;
      this.#wake(!hidden);
    });
    window.addEventListener("pagehide", () => {
      game.pageHidden();
    });
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) game.pageShown();
    });
    for (const kind of ["pointermove", "pointerdown", "focusin"] as const) {
      document.addEventListener(kind, () => {
        this.#quiet.stir();
      });
    }
    if (!framesCanBeSeen()) {
      this.#stage.video.addEventListener("timeupdate", () => {
        if (game.facts.link === "up") this.#stage.thaw();
      });
    }
  }

  /** What is done for the eye only is done while somebody looks. */
  #wake(awake: boolean): void {
    this.#cancelBeat?.();
    this.#cancelBeat = null;
    if (awake) this.#beat();
  }

  #beat(): void {
    void this.#game.tick(this.#stage.presented);
    this.#devices.look();
    this.#cancelBeat = browserClock.after(BEAT_MS, () => {
      this.#beat();
    });
  }

  #render(): void {
    const game = this.#game;
    const { face } = game;
    const arriving = face === "arriving" || face === "checking";
    this.#arriving.element.hidden = !arriving;
    this.#arriving.use(game.world, this.#wanted ?? game.start, this.#layout);
    this.#arriving.busy(face === "checking" || game.world === null, face === "checking");
    if (game.world !== null) this.#caps.use(game.world.controls, this.#layout);
    this.#topbar.render(game);
    this.#sheet.render(game);
    this.#hud.render(game.hud(), game.latencies(), browserClock.now());
    this.#company.render(game.company, game.given);
    if (this.#begun && game.sessionId !== null && face !== "crossroads") nameInAddress(game.start);
    if (face === this.#face) return;
    const before = this.#face;
    this.#face = face;
    this.#keep();
    this.#devices.renderHint();
    if (arriving || face === "error") this.#stage.clear();
    this.#showPoster();
    document.body.dataset["state"] = face;
    if (face === "arriving") this.#arriving.focus();
    // From fast to slow and back, nobody loses what has the focus.
    else if (before !== null && plays(face) && !plays(before)) focusGame();
    this.#quiet.stir();
  }

  /** The picture of the place that is chosen or played. */
  #showPoster(): void {
    const { world } = this.#game;
    const arriving = this.#face === null || this.#face === "arriving" || this.#face === "checking";
    const name = arriving ? this.#arriving.choice : this.#game.start;
    const start = world?.start_points.find((point) => point.name === name);
    const picture = (start ?? world?.start_points[0])?.picture ?? null;
    this.#stage.poster = picture;
    if (picture !== null) void paintFrom(picture);
  }

  /** The last seconds are recorded while the world plays, and kept when it ends. */
  #keep(): void {
    const face = this.#face;
    const rests = face === "paused" || face === "hidden" || face === "reconnecting";
    const now = face !== null && plays(face) ? "plays" : rests ? "rests" : face === "ended" ? "ended" : "none";
    this.#keepsakes.follow(now, this.#preferences.get("clips") !== "off");
  }

  #setCrisp(crisp: boolean): void {
    this.#stage.crisp = crisp;
    this.#preferences.set("crisp", crisp ? "on" : "off");
  }

  async #learnLayout(): Promise<void> {
    this.#layout = await keyboardLayout();
    this.#topbar.layout = this.#layout;
    this.#render();
  }
}
