/** What a key event means to the page. Pure: the adapter below it only passes events in. */

export type Shortcut =
  | "reset"
  | "pause"
  | "fullscreen"
  | "hud"
  | "clip"
  | "picture"
  | "help"
  | "menu";

export type KeyMeaning =
  | { kind: "press"; code: string } // a key of the legend
  | { kind: "repeat"; code: string } // the same, by auto-repeat: nothing new
  | { kind: "shortcut"; shortcut: Shortcut }
  | { kind: "alt" } // a lone Alt must not move the focus to the browser's menu
  | { kind: "other" } // a key that means nothing by itself
  | { kind: "none" }; // not ours

/** The part of a KeyboardEvent that counts. */
export interface KeyDown {
  readonly code: string;
  readonly key: string;
  readonly repeat: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altGraph: boolean;
  readonly isComposing: boolean; // an input method makes a character of it
  readonly inTextField: boolean;
}

/** By place on the keyboard, as the keys of a world are; Escape and ? are by meaning. */
export const SHORTCUTS: Readonly<Record<string, Shortcut>> = {
  KeyR: "reset",
  KeyP: "pause",
  KeyF: "fullscreen",
  KeyH: "hud",
  KeyC: "clip",
  KeyG: "picture",
  Escape: "menu",
};
/** Keys that would scroll the page or press a focused button. */
const SCROLLING = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Space"]);

/** Keys by which people move about a page, that are held for others, or that are the machine's own. */
const NOT_OURS =
  /^(Tab|Enter|Shift|Control|Meta|OS|AltGraph|(Caps|Num|Scroll)Lock|ContextMenu|PrintScreen|F\d+|Fn.*|(Audio|Media|Browser|Launch|Brightness).*|Power|WakeUp|Unidentified|)$/;

/**
 * Where a key is. Keyboards on glass and some remote ones do not say it; then a letter counts as
 * the key that it is on most keyboards.
 */
export function codeOf({ code, key }: Pick<KeyDown, "code" | "key">): string {
  if (code !== "" && code !== "Unidentified") return code;
  if (/^[a-z]$/i.test(key)) return `Key${key.toUpperCase()}`;
  if (/^[0-9]$/.test(key)) return `Digit${key}`;
  if (key === " ") return "Space";
  return /^(Arrow\w+|Escape|Enter)$/.test(key) ? key : "";
}

export function meaningOf(event: KeyDown, legend: (code: string) => boolean): KeyMeaning {
  if (event.inTextField || event.isComposing) return { kind: "none" };
  if (event.key === "Alt") return { kind: "alt" };
  // Ctrl+R, ⌘W and their like belong to the browser. AltGr says Ctrl too.
  if (event.metaKey || (event.ctrlKey && !event.altGraph)) return { kind: "none" };
  if (legend(event.code)) {
    return { kind: event.repeat ? "repeat" : "press", code: event.code };
  }
  if (event.repeat) return { kind: "none" };
  if (event.key === "?") return { kind: "shortcut", shortcut: "help" };
  const shortcut = SHORTCUTS[event.code];
  if (shortcut !== undefined) return { kind: "shortcut", shortcut };
  return { kind: NOT_OURS.test(event.key) ? "none" : "other" };
}

/** Whether the browser must not do its own thing with a key of the legend while playing. */
export function scrolls(code: string): boolean {
  return SCROLLING.has(code);
}

/** macOS swallows the key-ups of everything that goes up under ⌘, so its end ends them all. */
export function endsEverything(code: string): boolean {
  return code === "MetaLeft" || code === "MetaRight" || code === "OSLeft" || code === "OSRight";
}
