/** What the keys that are no part of a world do, and the buttons that stand for them. */
import { toggleFullscreen } from "./browser";
import type { Shortcut } from "./input/keyboard";
import type { Keepsakes } from "./keepsakes";
import type { Game } from "./play/game";
import { takesKeys } from "./session/face";
import { dialogOpen } from "./ui/dom";
import type { Help } from "./ui/help";
import type { HudPanel } from "./ui/hudPanel";
import type { Preferences } from "./ui/preferences";
import type { Stage } from "./ui/stage";

export interface ShortcutParts {
  readonly game: Game;
  readonly help: Help;
  readonly hud: HudPanel;
  readonly keepsakes: Keepsakes;
  readonly preferences: Preferences;
  readonly stage: Stage;
  readonly say: (words: string) => void;
  readonly layout: () => ReadonlyMap<string, string> | undefined;
}

export class Shortcuts {
  readonly #parts: ShortcutParts;

  constructor(parts: ShortcutParts) {
    this.#parts = parts;
  }

  /** @returns whether it did anything. */
  do(shortcut: Shortcut): boolean {
    const { game, help, hud, keepsakes, preferences, stage, say, layout } = this.#parts;
    switch (shortcut) {
      case "menu":
      case "help":
        if (dialogOpen()) return false; // it closes itself
        help.show({
          controls: game.world?.controls ?? [],
          inSession: takesKeys(game.face),
          layout: layout(),
        });
        return true;
      case "hud":
        hud.open = !hud.open;
        preferences.set("hud", hud.open ? "on" : "off");
        return true;
      case "fullscreen":
        void toggleFullscreen().then((done) => {
          if (!done) say("This browser does not let the page fill the screen.");
        });
        return true;
      case "clip":
        if (!keepsakes.hasClip && !takesKeys(game.face)) return false;
        void keepsakes.saveClip(game.start ?? "world");
        return true;
      case "picture": {
        if (!takesKeys(game.face)) return false;
        const { shown, width, height } = stage.picture;
        void keepsakes.savePicture(game.start ?? "world", shown, width, height);
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
}
