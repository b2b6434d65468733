import { button, el } from "./dom";

/** Copies text; where the browser does not let the page do that, it is shown to be copied by hand. */
export class Copier {
  readonly element: HTMLDialogElement;
  readonly #say: (words: string) => void;
  readonly #field = el("textarea", {
    class: "by-hand",
    testid: "copy-field",
    readonly: true,
    "aria-labelledby": "copy-title",
    spellcheck: "false",
  });

  constructor(say: (words: string) => void) {
    this.#say = say;
    this.element = el(
      "dialog",
      { class: "help glass", testid: "copy-by-hand", "aria-labelledby": "copy-title" },
      el("h2", { id: "copy-title" }, "Copy it by hand"),
      el(
        "div",
        { class: "help-parts" },
        el(
          "p",
          { class: "devices" },
          "This browser does not let the page copy. The text below is marked: " +
            "press Ctrl+C (⌘C on a Mac), or hold a finger on it.",
        ),
        this.#field,
        el(
          "div",
          { class: "actions" },
          button("Close", "copy-close", () => { this.element.close(); }, "main"),
        ),
      ),
    );
  }

  /** @param done what to say once it is on the clipboard. */
  async copy(text: string, done: string): Promise<void> {
    if ((await copiedByApi(text)) || copiedTheOldWay(text)) this.#say(done);
    else this.#show(text);
  }

  #show(text: string): void {
    this.#field.value = text;
    this.#field.rows = Math.min(10, text.split("\n").length + 1);
    if (!this.element.open) this.element.showModal();
    this.#field.focus();
    this.#field.select();
  }
}

async function copiedByApi(text: string): Promise<boolean> {
  if (!("clipboard" in navigator)) return false; // as over plain http
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // not allowed here
  }
}

function copiedTheOldWay(text: string): boolean {
  const before = document.activeElement;
  const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without https
  const done = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return done;
}
