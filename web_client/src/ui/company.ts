import type { Company } from "../connection/link";
import { button, el } from "./dom";

export interface CompanyHandlers {
  readonly invite: () => void;
  readonly grant: (to: string) => void;
}

/** In the menu: who watches, a link for more of them, and who has the controls. */
export class CompanyPanel {
  readonly element = el("section", { class: "company", hidden: true, "aria-label": "Spectators" });
  readonly #handlers: CompanyHandlers;
  #shown = "";

  constructor(handlers: CompanyHandlers) {
    this.#handlers = handlers;
  }

  /** @param company null where nobody can watch. @param given who has the controls, if not this page. */
  render(company: Company | null, given: string | null): void {
    this.element.hidden = company === null;
    const key = JSON.stringify([company, given]);
    if (company === null || key === this.#shown) return;
    this.#shown = key;
    const { invite, grant } = this.#handlers;
    const rows = company.spectators.map((who, index) =>
      el(
        "li",
        {},
        `Spectator ${index + 1} `,
        given === who
          ? button("Take the controls back", "take-back", () => { grant(company.me); })
          : button("Give the controls", "grant", () => { grant(who); }),
      ),
    );
    this.element.replaceChildren(
      el("h3", {}, "Spectators"),
      el("ul", { testid: "spectators" }, ...rows),
      el("div", { class: "actions" }, button("Copy a link to watch", "invite", invite)),
    );
  }
}
