import { codeOf, endsEverything, type KeyMeaning, meaningOf, scrolls, type Shortcut } from "./keyboard";

export interface KeyboardHandlers {
  readonly legend: (code: string) => boolean;
  /** Whether keys go to the world now. */
  readonly playing: () => boolean;
  readonly pressed: (code: string, atMs: number) => void;
  readonly released: (code: string) => void;
  readonly releaseAll: () => void;
  /** @returns whether it did anything; then the browser is not to do something of its own. */
  readonly shortcut: (shortcut: Shortcut) => boolean;
  /** A key without a meaning of its own: it wakes a paused world. */
  readonly other: () => void;
}

/** Listen to the keyboard of a window. @returns the way out. */
export function listenToKeyboard(window: Window, handlers: KeyboardHandlers): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  const { document } = window;

  const down = (event: KeyboardEvent): void => {
    const meaning: KeyMeaning = meaningOf(
      {
        code: codeOf(event),
        key: event.key,
        repeat: event.repeat,
        ctrlKey: event.ctrlKey,
        metaKey: event.metaKey,
        altGraph: event.getModifierState("AltGraph"),
        isComposing: event.isComposing,
        inTextField: isTextField(event.target),
      },
      handlers.legend,
    );
    switch (meaning.kind) {
      case "press":
      case "repeat":
        if (!handlers.playing()) return;
        if (scrolls(meaning.code) && !event.altKey) event.preventDefault();
        if (meaning.kind === "press") handlers.pressed(meaning.code, event.timeStamp);
        return;
      case "shortcut":
        if (!event.altKey && handlers.shortcut(meaning.shortcut)) event.preventDefault();
        return;
      case "alt":
        if (handlers.playing()) event.preventDefault();
        return;
      case "other":
        handlers.other();
        return;
      case "none":
        return;
    }
  };
  const up = (event: KeyboardEvent): void => {
    if (event.key === "Alt" && handlers.playing()) event.preventDefault();
    const code = codeOf(event);
    if (endsEverything(code)) handlers.releaseAll();
    else handlers.released(code);
  };

  window.addEventListener("keydown", down, { signal });
  window.addEventListener("keyup", up, { signal });
  window.addEventListener("blur", handlers.releaseAll, { signal });
  window.addEventListener("pagehide", handlers.releaseAll, { signal });
  document.addEventListener(
    "visibilitychange",
    () => {
      if (document.visibilityState === "hidden") handlers.releaseAll();
    },
    { signal },
  );
  document.addEventListener(
    "focusin",
    (event) => {
      if (isTextField(event.target)) handlers.releaseAll();
    },
    { signal },
  );
  return () => {
    ending.abort();
  };
}

const TYPING = "textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])";

function isTextField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPING) !== null;
}
