const PLACE = "probing.theme";
export function theme() {
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
