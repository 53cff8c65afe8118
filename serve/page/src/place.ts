// Where the page is, all of it in the address's fragment: a link shows a colleague the same.  A panel of an editor has no address:
// the editor keeps the fragment, and links are followed here.
import { editor } from "./editor.js";

export interface Place {
  target: string; // "": none was chosen
  screen: string;
  params: Record<string, string>;
}

export function parse(hash: string): Place {
  const [path = "", words = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").map(unescapeSafe);
  const params = Object.fromEntries(new URLSearchParams(words));
  if (parts[0] === "p") return { target: parts[1] ?? "", screen: parts[2] || "overview", params };
  return { target: "", screen: parts[0] || "overview", params };
}

function unescapeSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function link(place: { target?: string; screen: string; params?: Record<string, string> }): string {
  const words = new URLSearchParams(Object.entries(place.params ?? {}).filter(([, value]) => value !== "")).toString();
  const path = place.target ? `p/${encodeURIComponent(place.target)}/${place.screen}` : place.screen;
  return `#/${path}${words && "?" + words}`;
}

/** The fragment: "#/p/4711/stacks". */
export const fragment = (): string => (editor ? editor.place : location.hash);

function move(to: string): void {
  if (editor) editor.place = to;
  else history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function go(place: { target?: string; screen: string; params?: Record<string, string> }): void {
  if (editor) move(link(place));
  else location.hash = link(place);
}

/** Change words of the address without a step in the browser's history. */
export function set(params: Record<string, string>, target?: string): void {
  const now = parse(fragment());
  move(link({ ...now, target: target ?? now.target, params: { ...now.params, ...params } }));
}

/** Links of the page where no browser follows them: before the panel's own listener, which scrolls to what they name. */
function follow(event: MouseEvent): void {
  const to = event.target instanceof Element ? event.target.closest('a[href^="#/"]')?.getAttribute("href") : null;
  if (!to || event.defaultPrevented) return;
  event.preventDefault();
  event.stopPropagation();
  move(to);
}

if (editor) document.documentElement.addEventListener("click", follow);
