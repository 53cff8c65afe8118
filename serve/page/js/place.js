import { editor } from "./editor.js";
export function parse(hash) {
    const [path = "", words = ""] = hash.replace(/^#\/?/, "").split("?", 2);
    const parts = path.split("/").map(unescapeSafe);
    const params = Object.fromEntries(new URLSearchParams(words));
    if (parts[0] === "p")
        return { target: parts[1] ?? "", screen: parts[2] || "overview", params };
    return { target: "", screen: parts[0] || "overview", params };
}
function unescapeSafe(text) {
    try {
        return decodeURIComponent(text);
    }
    catch {
        return text;
    }
}
export function link(place) {
    const words = new URLSearchParams(Object.entries(place.params ?? {}).filter(([, value]) => value !== "")).toString();
    const path = place.target ? `p/${encodeURIComponent(place.target)}/${place.screen}` : place.screen;
    return `#/${path}${words && "?" + words}`;
}
export const fragment = () => (editor ? editor.place : location.hash);
function move(to) {
    if (editor)
        editor.place = to;
    else
        history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
}
export function go(place) {
    if (editor)
        move(link(place));
    else
        location.hash = link(place);
}
export function set(params, target) {
    const now = parse(fragment());
    move(link({ ...now, target: target ?? now.target, params: { ...now.params, ...params } }));
}
function follow(event) {
    const to = event.target instanceof Element ? event.target.closest('a[href^="#/"]')?.getAttribute("href") : null;
    if (!to || event.defaultPrevented)
        return;
    event.preventDefault();
    event.stopPropagation();
    move(to);
}
if (editor)
    document.documentElement.addEventListener("click", follow);
