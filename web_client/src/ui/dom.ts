/** Making elements, without a template language. */

type Child = Node | string | null;

interface Attributes {
  readonly class?: string;
  readonly testid?: string;
  readonly onclick?: () => void;
  readonly [name: string]: string | boolean | (() => void) | undefined;
}

export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "testid") element.dataset["testid"] = String(value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function button(
  text: string,
  testid: string,
  onclick: () => void,
  look: "main" | "quiet" = "quiet",
): HTMLButtonElement {
  return el("button", { type: "button", class: `button ${look}`, testid, onclick }, text);
}

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>>,
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A line drawing of 24 × 24, in the colour of the text. */
export function icon(path: string): SVGSVGElement {
  const drawing = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" });
  drawing.append(svg("path", { d: path }));
  return drawing;
}

/** The element that the page is known to have. */
export function must(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}

/** Change the text only where it differs: screen readers speak every change. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Whether something lies over the page that wants all keys. */
export function dialogOpen(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
