// Where the page is, all of it in the address's fragment: a link shows a colleague the same.

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

export function go(place: { target?: string; screen: string; params?: Record<string, string> }): void {
  location.hash = link(place);
}

/** Change words of the address without a step in the browser's history. */
export function set(params: Record<string, string>, target?: string): void {
  const now = parse(location.hash);
  history.replaceState(null, "", link({ ...now, target: target ?? now.target, params: { ...now.params, ...params } }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
