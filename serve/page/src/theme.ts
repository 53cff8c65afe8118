// Light or dark, where somebody chose it: before the first paint.  In a panel it is the editor's.
import { editor } from "./editor.js";

const PLACE = "probing.theme";

export function theme(): string {
  if (editor) return "";
  try {
    return localStorage.getItem(PLACE) ?? "";
  } catch {
    return ""; // a private window may forbid it
  }
}

export function applyTheme(name: string): void {
  if (name) document.documentElement.dataset["theme"] = name;
  else delete document.documentElement.dataset["theme"];
  try {
    localStorage.setItem(PLACE, name);
  } catch {
    /* as above */
  }
  dispatchEvent(new Event("theme"));
}
