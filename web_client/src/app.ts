/** Puts the game and its page together. */
import { browserClock } from "./clock";
import { canConnect, focusGame, keyboardLayout, toggleFullscreen, wasReloaded } from "./browser";
import { makeConnection } from "./connection/choose";
import { withoutBuffer } from "./connection/direct";
import { newNonce } from "./connection/nonce";
import { ClipRecorder } from "./clips/recorder";
import { Devices, padsAreOffered } from "./devices";
import type { Shortcut } from "./input/keyboard";
import { Keepsakes } from "./keepsakes";
import { Game } from "./play/game";
import { Api } from "./session/api";
import { type Face, takesKeys } from "./session/face";
import { SessionStore } from "./session/store";
import { Arriving } from "./ui/arriving";
import { CompanyPanel } from "./ui/company";
import { chime, chimeIsPossible, prepareChime } from "./ui/chime";
import { must } from "./ui/dom";
import { Help } from "./ui/help";
import { copyText, HudPanel } from "./ui/hudPanel";
import { KeyCaps } from "./ui/keyCaps";
import { paintFrom } from "./ui/paint";
import { Preferences } from "./ui/preferences";
import { Sheet } from "./ui/sheet";
import { framesCanBeSeen, Stage, watchFrames } from "./ui/stage";
import { Toast } from "./ui/toast";
import { Topbar } from "./ui/topbar";
import { watchLink } from "./watch/link";

const QUIET_MS = 3000; // without a moving pointer; then the tools fade

export class App {
  readonly #stage = new Stage();
  readonly #toast = new Toast(must("#toast"), browserClock);
  readonly #preferences = new Preferences(() => localStorage);
  readonly #wanted = new URLSearchParams(location.search).get("start");
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
  #layout: ReadonlyMap<string, string> | undefined;
  #face: Face | null = null;
  #cancelQuiet: (() => void) | null = null;

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
    this.#keepsakes = new Keepsakes(this.#stage.video, say);
    this.#caps = new KeyCaps(must("#keys"), must("#shown-keys"), {
      press: (code, holder, atMs) => {
        this.#devices.pressed(code, holder, atMs);
      },
      release: (code, holder) => {
        game.controls.release(code, holder);
      },
    });
    this.#devices = new Devices(game, this.#caps, {
      shortcut: (shortcut) => this.#shortcut(shortcut),
      covered: () => this.#help.open,
      uncover: () => {
        this.#help.close();
      },
      say,
      stir: () => {
        this.#stir();
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
      playAgain: () => void game.playAgain(),
      chooseAgain: () => void game.chooseAgain(),
      saveClip: () => this.#shortcut("clip"),
      hasClip: () => this.#keepsakes.hasClip,
      chime: chimeIsPossible() ? this.#preferences.get("chime") === "on" : null,
      setChime: (on) => {
        this.#preferences.set("chime", on ? "on" : "off");
        if (on) prepareChime();
      },
      say,
    });
    this.#hud = new HudPanel(must("#hud"), say);
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
        saveClip: () => this.#shortcut("clip"),
        savePicture: () => this.#shortcut("picture"),
        share,
        figures: () => this.#shortcut("hud"),
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
      clip: () => this.#shortcut("clip"),
      picture: () => this.#shortcut("picture"),
      share,
      pause: () => {
        this.#shortcut("pause");
      },
      fullscreen: () => {
        this.#shortcut("fullscreen");
      },
      hud: () => {
        this.#shortcut("hud");
      },
      help: () => {
        this.#shortcut("help");
      },
      leave: () => {
        game.leave();
      },
    });
    this.#company = new CompanyPanel({
      invite: () => void this.#invite(),
      grant: (to) => {
        game.grant(to);
      },
    });
    this.#help.element.append(this.#company.element);
    must("#front").append(this.#arriving.element, this.#sheet.element);
    document.body.append(this.#help.element);
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
    setInterval(() => {
      void this.#game.tick();
      this.#devices.look();
    }, 1000);
    void this.#learnLayout();
    this.#render();
    await this.#game.begin();
  }

  #listen(): void {
    const game = this.#game;
    this.#devices.listen();
    document.addEventListener("visibilitychange", () => {
      const hidden = document.visibilityState === "hidden";
      game.hide(hidden);
      this.#devices.awake = !hidden;
    });
    window.addEventListener("pagehide", () => {
      game.pageHidden();
    });
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) game.pageShown();
    });
    for (const kind of ["pointermove", "pointerdown", "focusin"] as const) {
      document.addEventListener(kind, () => {
        this.#stir();
      });
    }
    if (!framesCanBeSeen()) {
      this.#stage.video.addEventListener("timeupdate", () => {
        if (game.facts.link === "up") this.#stage.thaw();
      });
    }
  }

  /** @returns whether it did anything. */
  #shortcut(shortcut: Shortcut): boolean {
    const game = this.#game;
    switch (shortcut) {
      case "menu":
      case "help":
        if (this.#help.open) return false; // the dialog closes itself
        this.#help.show({
          controls: game.world?.controls ?? [],
          inSession: takesKeys(game.face),
          layout: this.#layout,
        });
        return true;
      case "hud":
        this.#hud.open = !this.#hud.open;
        this.#preferences.set("hud", this.#hud.open ? "on" : "off");
        return true;
      case "fullscreen":
        void toggleFullscreen().then((done) => {
          if (!done) this.#toast.say("This browser does not let the page fill the screen.");
        });
        return true;
      case "clip":
        if (!this.#keepsakes.hasClip && !takesKeys(game.face)) return false;
        void this.#keepsakes.saveClip(game.start ?? "world");
        return true;
      case "picture": {
        if (!takesKeys(game.face)) return false;
        const { shown, width, height } = this.#stage.picture;
        void this.#keepsakes.savePicture(game.start ?? "world", shown, width, height);
        return true;
      }
      case "reset":
        if (!takesKeys(game.face)) return false;
        game.reset();
        return true;
      case "pause":
        if (!takesKeys(game.face)) return false;
        game.pause(game.face !== "paused");
        return true;
    }
  }

  #render(): void {
    const game = this.#game;
    const { face } = game;
    const arriving = face === "arriving" || face === "checking";
    this.#arriving.element.hidden = !arriving;
    this.#arriving.use(game.world, game.start ?? this.#wanted, this.#layout);
    this.#arriving.busy(face === "checking" || game.world === null, face === "checking");
    if (game.world !== null) this.#caps.use(game.world.controls, this.#layout);
    this.#topbar.render(game);
    this.#sheet.render(game);
    this.#hud.render(game.hud(), game.latencies(), browserClock.now());
    this.#company.render(game.company, game.given);
    if (face === this.#face) return;
    const before = this.#face;
    this.#face = face;
    this.#keep();
    this.#devices.renderHint();
    if (arriving || face === "error") this.#stage.clear();
    this.#showPoster();
    document.body.dataset["state"] = face;
    if (face === "arriving") this.#arriving.focus();
    else if (before !== null && takesKeys(face) && face !== "paused") focusGame();
    this.#stir();
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
    const plays = face === "playing" || face === "slow";
    const rests = face === "paused" || face === "hidden" || face === "reconnecting";
    const now = plays ? "plays" : rests ? "rests" : face === "ended" ? "ended" : "none";
    this.#keepsakes.follow(now, this.#preferences.get("clips") !== "off");
  }

  /** Somebody is there: the tools show for a while. */
  #stir(): void {
    document.body.classList.remove("quiet");
    this.#cancelQuiet?.();
    this.#cancelQuiet = browserClock.after(QUIET_MS, () => {
      document.body.classList.add("quiet");
    });
  }

  async #invite(): Promise<void> {
    try {
      const ticket = await this.#game.invite();
      if (ticket === null) return;
      await copyText(watchLink(location.href, ticket));
      this.#toast.say("The link is copied");
    } catch (error) {
      console.warn("inviting:", error);
      this.#toast.say("There is no link at this moment");
    }
  }

  #setCrisp(crisp: boolean): void {
    this.#stage.crisp = crisp;
    this.#preferences.set("crisp", crisp ? "on" : "off");
  }

  async #learnLayout(): Promise<void> {
    this.#layout = await keyboardLayout();
    this.#render();
  }
}
