import type { WorldView } from "../protocol/messages";
import { button, el, setText } from "./dom";
import { fingersFirst, TOUCH_WORDS } from "./hint";
import { labelOf } from "./labels";

export interface ArrivingHandlers {
  readonly chosen: (start: string | null) => void;
  readonly play: (start: string | null) => void;
  readonly withdraw: () => void;
}

/** Where a player chooses a place to begin. */
export class Arriving {
  readonly element: HTMLElement;
  readonly #handlers: ArrivingHandlers;
  readonly #title = el("h1", {}, "veldt");
  readonly #about = el("p", { class: "about" });
  readonly #invitation = el("h2", { id: "invitation" });
  readonly #cards = el("div", {
    class: "cards",
    role: "radiogroup",
    "aria-labelledby": "invitation",
  });
  readonly #legend = el("p", { class: "legend" });
  readonly #play: HTMLButtonElement;
  readonly #withdraw: HTMLButtonElement;
  #world: WorldView | null = null;
  #layout: ReadonlyMap<string, string> | undefined;
  #choice = 0;

  constructor(handlers: ArrivingHandlers) {
    this.#handlers = handlers;
    this.#play = button("Play", "play", () => {
      handlers.play(this.choice);
    }, "main");
    this.#withdraw = button("Not now", "withdraw", handlers.withdraw);
    this.#withdraw.hidden = true;
    this.element = el(
      "section",
      { class: "arriving" },
      el("div", { class: "greeting" }, this.#title, this.#about),
      this.#invitation,
      this.#cards,
      el("div", { class: "begin" }, this.#play, this.#withdraw, this.#legend),
    );
    this.#cards.addEventListener("keydown", (event) => {
      this.#keyed(event);
    });
  }

  /** The name of the chosen start point; null where the world has none. */
  get choice(): string | null {
    return this.#world?.start_points[this.#choice]?.name ?? null;
  }

  /** @param asking whether the service is being asked for a session: then one can think better. */
  busy(busy: boolean, asking: boolean): void {
    this.#play.disabled = busy;
    this.#withdraw.hidden = !asking;
    setText(this.#play, busy ? "One moment" : "Play");
  }

  /** @param wanted the start point that a link asked for, or that was played last. */
  use(
    world: WorldView | null,
    wanted: string | null,
    layout?: ReadonlyMap<string, string>,
  ): void {
    if (world === null || (world === this.#world && layout === this.#layout)) return;
    const same = world === this.#world;
    this.#world = world;
    this.#layout = layout;
    setText(this.#title, world.title);
    setText(this.#about, world.about);
    const legend = world.controls.map(({ code, label }) =>
      el("span", { class: "hint" }, el("kbd", {}, labelOf(code, layout)), ` ${label}`),
    );
    this.#legend.replaceChildren(...(fingersFirst() ? [TOUCH_WORDS] : legend));
    if (same) return;
    const unfocused = document.activeElement === document.body;
    const places = world.start_points.length;
    setText(this.#invitation, invitation(places));
    this.#invitation.hidden = this.#cards.hidden = places === 0;
    this.#cards.replaceChildren(
      ...world.start_points.map((start, index) => {
        const picture = el("img", { src: start.picture, alt: "", draggable: "false" });
        const card = el(
          "button",
          { type: "button", class: "card", role: "radio", testid: `start-${start.name}` },
          picture,
          el("span", { class: "name" }, start.title),
        );
        card.addEventListener("click", () => {
          this.#choose(index);
        });
        card.addEventListener("focus", () => {
          if (index !== this.#choice) this.#choose(index);
        });
        card.addEventListener("dblclick", () => {
          this.#handlers.play(this.choice);
        });
        return card;
      }),
    );
    const index = world.start_points.findIndex(({ name }) => name === wanted);
    this.#choose(Math.max(0, index));
    if (unfocused && !this.element.hidden) this.focus();
  }

  /** Focus the chosen card, so that Enter plays. */
  focus(): void {
    const card = this.#cards.children[this.#choice];
    if (card instanceof HTMLElement) card.focus({ preventScroll: true });
    else this.#play.focus({ preventScroll: true });
  }

  #choose(index: number): void {
    this.#choice = index;
    [...this.#cards.children].forEach((card, at) => {
      card.setAttribute("aria-checked", String(at === index));
      card.setAttribute("tabindex", at === index ? "0" : "-1");
    });
    this.#handlers.chosen(this.choice);
  }

  #keyed(event: KeyboardEvent): void {
    const count = this.#cards.children.length;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step !== undefined && count > 0) {
      event.preventDefault();
      this.#choose((this.#choice + step + count) % count);
      this.focus();
      this.#cards.children[this.#choice]?.scrollIntoView({ block: "nearest", inline: "center" });
    } else if (event.key === "Enter" && !event.repeat) {
      event.preventDefault();
      this.#handlers.play(this.choice);
    }
  }
}

/** A world with one place or none has nothing to be chosen. */
function invitation(places: number): string {
  return places > 1 ? "Choose where to begin" : "Where you begin";
}
