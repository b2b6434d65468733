import type { Game } from "../play/game";
import type { Face } from "../session/face";
import type { Copier } from "./copier";
import { button, el, setText } from "./dom";
import { fingersFirst } from "./hint";
import { awaitedWords, duration, ENDED, waitWords } from "./words";

type Actions = Pick<Game, "takeOver" | "leave" | "pause" | "stepIn" | "goOn"> & {
  readonly goElsewhere: () => void;
  readonly playAgain: () => void;
  readonly chooseAgain: () => void;
  readonly saveClip: () => void;
  readonly hasClip: () => boolean;
  /** Whether a sound is to say that it is one's turn; null where none can be made. */
  readonly chime: boolean | null;
  readonly setChime: (on: boolean) => void;
  readonly copier: Copier;
};

interface Parts {
  readonly title: string;
  readonly number?: boolean; // how many come first, large
  readonly busy?: boolean;
  readonly actions?: readonly HTMLElement[];
  readonly details?: boolean;
}

/** What stands over the picture whenever the world is not simply being played. */
export class Sheet {
  readonly element = el("section", { class: "sheet", hidden: true });
  readonly #actions: Actions;
  readonly #title = el("h2", { testid: "sheet-title" });
  readonly #sentence = el("p", { class: "sentence", testid: "reason" });
  readonly #more = el("p", { class: "more", "aria-live": "polite" });
  readonly #awaited = el("p", { class: "more", testid: "awaited", "aria-live": "polite" });
  readonly #number = el("p", { class: "number", testid: "ahead", "aria-hidden": "true" });
  readonly #stepIn: HTMLButtonElement;
  #claimed = 1; // seconds that the seat was kept for when it came free
  #face: Face | null = null;

  constructor(actions: Actions) {
    this.#actions = actions;
    this.#stepIn = button("", "step-in", actions.stepIn, "main");
    this.#stepIn.classList.add("turn");
    // A click or tap beside the button goes on too.
    this.element.addEventListener("click", ({ target }) => {
      if (this.#face !== "paused") return;
      if (target instanceof Element && target.closest("button") === null) actions.pause(false);
    });
  }

  render(game: Game): void {
    const { face } = game;
    const parts = this.#parts(face, game);
    this.element.hidden = parts === null;
    if (parts !== null && (face !== this.#face || face === "error")) this.#build(face, parts, game);
    this.#face = face;
    if (parts === null) return;
    this.#count(game);
    setText(this.#title, parts.title);
    setText(this.#sentence, sentenceOf(face, game));
    setText(this.#more, moreOf(face, game));
    this.#await(game);
    this.#sentence.hidden = this.#sentence.textContent === "";
    this.#more.hidden = this.#more.textContent === "";
  }

  /** A service that went away: how it stands, and the way on once it is back. */
  #await({ awaited, facts }: Game): void {
    this.#awaited.hidden = awaited === null;
    setText(this.#awaited, awaited === null ? "" : awaitedWords(awaited, facts.reason));
    if (awaited?.ready !== true) return;
    const again = this.element.querySelector("[data-testid=play-again], [data-testid=retry]");
    if (again !== null) setText(again, facts.reason === null ? "Go on" : "Ready: play again");
  }

  /** What counts down. */
  #count(game: Game): void {
    setText(this.#number, String(game.line?.ahead ?? ""));
    const left = game.claimSeconds;
    if (game.face !== "turn") return;
    this.#claimed = Math.max(this.#claimed, left);
    setText(this.#stepIn, `Your seat is ready — step in (${left})`);
    this.#stepIn.style.setProperty("--left", String(left / this.#claimed));
  }

  #build(face: Face, parts: Parts, game: Game): void {
    const before = this.element.dataset["key"];
    const key = `${face} ${game.facts.trouble?.code ?? ""}`;
    if (face === this.#face && key === before) return;
    this.element.dataset["key"] = key;
    const glass = el(
      "div",
      { class: `glass panel panel-${face}` },
      parts.number === true ? this.#number : null,
      this.#title,
      this.#sentence,
      parts.busy === true ? el("div", { class: "progress", "aria-hidden": "true" }) : null,
      this.#more,
      this.#awaited,
      parts.actions ? el("div", { class: "actions" }, ...parts.actions) : null,
      parts.details === true ? this.#details(game) : null,
    );
    this.element.replaceChildren(glass);
    glass.querySelector<HTMLElement>(".actions .main")?.focus({ preventScroll: true });
  }

  #parts(face: Face, game: Game): Parts | null {
    const actions = this.#actions;
    const leave = button("Leave", "leave-here", () => {
      actions.leave();
    });
    switch (face) {
      case "arriving":
      case "checking":
      case "playing":
      case "slow":
        return null;
      case "crossroads":
        return {
          title: "Where to?",
          actions: [
            button(`Begin: ${titleOf(game, game.elsewhere)}`, "go-elsewhere", actions.goElsewhere, "main"),
            button(`Go on: ${titleOf(game, game.start)}`, "go-on", () => { actions.goOn(); }),
          ],
        };
      case "waiting":
        return {
          title: "You are in line",
          number: true,
          actions: [...this.#chime(), leave],
        };
      case "turn":
        return { title: "Your turn", actions: [this.#stepIn, leave] };
      case "connecting":
        return { title: "Connecting", busy: true };
      case "starting":
        return { title: "Warming up", busy: true };
      case "paused":
        return {
          title: fingersFirst() ? "Paused — tap to go on" : "Paused — press any key",
          actions: [
            button(
              "Go on",
              "resume",
              () => {
                actions.pause(false);
              },
              "main",
            ),
          ],
        };
      case "hidden":
        return { title: "Paused while you look away" };
      case "reconnecting":
        return {
          title: `Connection lost. Trying again (${Math.floor(game.lostSeconds)} s)`,
          busy: true,
          actions: [leave],
        };
      case "elsewhere":
        return {
          title: "Playing in another tab",
          actions: [
            button(
              "Take over here",
              "take-over",
              () => {
                actions.takeOver();
              },
              "main",
            ),
            button("New session", "new-session", actions.chooseAgain),
          ],
        };
      case "ended":
        return {
          title: game.facts.reason === null ? "Closing" : ENDED[game.facts.reason].title,
          actions: [
            button("Play again", "play-again", actions.playAgain, "main"),
            button("Choose another place", "choose", actions.chooseAgain),
            ...(actions.hasClip()
              ? [button("Save the last 15 s", "save-clip-here", actions.saveClip)]
              : []),
          ],
        };
      case "error":
        return {
          title: game.facts.trouble?.sentence ?? "",
          actions: [this.#errorAction(game)],
          details: true,
        };
    }
  }

  /** A sound when it is one's turn, for who wants one. */
  #chime(): HTMLElement[] {
    const { chime, setChime } = this.#actions;
    if (chime === null) return [];
    const box = el("input", { type: "checkbox", testid: "chime" });
    box.checked = chime;
    box.addEventListener("change", () => {
      setChime(box.checked);
    });
    return [el("label", { class: "setting" }, box, " A sound when it is my turn")];
  }

  #errorAction(game: Game): HTMLElement {
    return game.facts.trouble?.action === "reload"
      ? button("Load the page again", "retry", () => { location.reload(); }, "main")
      : button("Try again", "retry", this.#actions.chooseAgain, "main");
  }

  #details(game: Game): HTMLElement {
    const { trouble } = game.facts;
    const text = [
      `code: ${trouble?.code ?? ""}`,
      `detail: ${trouble?.detail ?? ""}`,
      `session: ${trouble?.session ?? "none"}`,
    ].join("\n");
    return el(
      "details",
      {},
      el("summary", {}, "Details"),
      el("pre", { testid: "error-details" }, text),
      button("Copy", "error-copy", () => {
        void this.#actions.copier.copy(text, "Copied");
      }),
    );
  }
}

/** What a start point is called on the page. */
function titleOf({ world }: Game, start: string | null): string {
  return world?.start_points.find(({ name }) => name === start)?.title ?? "the start";
}

function sentenceOf(face: Face, game: Game): string {
  switch (face) {
    case "ended":
      return game.facts.reason === null ? "" : ENDED[game.facts.reason].sentence;
    case "crossroads":
      return game.facts.state === "queued"
        ? "This tab is in line for another place than the link leads to."
        : "This tab plays another place than the link leads to.";
    case "waiting":
      return game.line === null ? "" : waitWords(game.line);
    case "elsewhere":
      return "This world is open in another tab or window, and only one can hold the keys.";
    default:
      return "";
  }
}

function moreOf(face: Face, game: Game): string {
  switch (face) {
    case "connecting":
    case "reconnecting":
      return game.note ?? "";
    case "crossroads":
      return game.facts.state === "queued"
        ? "Whoever begins elsewhere gives up the place in line."
        : "Whoever begins elsewhere ends the world that is played now.";
    case "waiting":
      return "You can switch tabs; we keep your place.";
    case "starting":
      return game.stage ?? "";
    case "ended":
      return game.playedSeconds < 1 ? "" : `You played for ${duration(game.playedSeconds)}.`;
    default:
      return "";
  }
}
