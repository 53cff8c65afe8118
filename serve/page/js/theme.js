import { editor } from "./editor.js";
const PLACE = "probing.theme";
export function theme() {
    if (editor)
        return "";
    try {
        return localStorage.getItem(PLACE) ?? "";
    }
    catch {
        return "";
    }
}
export function applyTheme(name) {
    if (name)
        document.documentElement.dataset["theme"] = name;
    else
        delete document.documentElement.dataset["theme"];
    try {
        localStorage.setItem(PLACE, name);
    }
    catch {
    }
    dispatchEvent(new Event("theme"));
}
