// Crash dumps, as the server lists them; a server without that route has none to show.
import { askJson, has } from "./net.js";
import { usePolled, type Answered } from "./polled.js";
import { duration, plain } from "./format.js";
import { link } from "./place.js";
import type { Finding } from "./watch.js";

export interface Crash {
  file: string;
  time: number | null;
  title: string;
  where: string;
  pid: number | null;
  rank: number | null;
  count: number;
  bytes: number;
  ranks: string;
}

type Raw = Record<string, unknown>;

const text = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "" : String(value));
const numeric = (value: unknown): number | null => (typeof value === "number" ? value : null);

function crash(raw: Raw): Crash {
  return {
    file: text(raw["file"] ?? raw["id"] ?? raw["name"]).replace(/^file:/, ""),
    time: numeric(raw["time"] ?? raw["written"]),
    title: text(raw["title"] ?? raw["what"]),
    where: text(raw["where"]),
    pid: numeric(raw["pid"]),
    rank: numeric(raw["rank"]),
    ranks: text(raw["ranks"]),
    count: numeric(raw["count"]) ?? 1,
    bytes: numeric(raw["bytes"] ?? raw["size"]) ?? 0,
  };
}

export function useCrashes(): Answered<Crash[]> {
  return usePolled(has("/crashes") ? "crashes" : "", 10, async (signal) => {
    const told = await askJson<{ crashes: Raw[] } | Raw[]>("api/v1/crashes", { signal });
    const all = (Array.isArray(told) ? told : told.crashes).map(crash);
    return all.sort((a, b) => (b.time ?? 0) - (a.time ?? 0));
  });
}

/** Crashes of the last hour. */
export function crashFindings(crashes: Crash[]): Finding[] {
  const now = Date.now() / 1000;
  return crashes
    .filter((one) => one.time !== null && now - one.time < 3600)
    .slice(0, 3)
    .map((one) => ({
      severity: "high",
      finding: `crashed ${duration(now - one.time!)} ago: ${plain(one.title, 120)}`,
      where: plain(one.where, 120),
      link: link({ target: "file:" + one.file, screen: "stacks" }),
    }));
}
