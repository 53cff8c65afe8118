// Crash dumps, as the server lists them, equal ones together.
import { askJson, has } from "./net.js";
import { ranges } from "./names.js";
import { usePolled, type Answered } from "./polled.js";

export interface Crash {
  file: string; // of the newest of them
  time: number; // s since the epoch
  title: string;
  where: string;
  pid: number | null;
  rank: number | null;
  ranks: string;
  count: number;
  bytes: number;
}

/** A dump that cannot be read has only its file. */
interface Dump {
  file: string;
  bytes: number;
  written: number;
  time?: number;
  title?: string | null;
  where?: string | null;
  group?: string | null;
  pid?: number;
  rank?: number | null;
}

function crash(same: Dump[]): Crash {
  const newest = same[0]!;
  return {
    file: newest.file,
    time: newest.time ?? newest.written,
    title: newest.title ?? "a dump that cannot be read",
    where: newest.where ?? "",
    pid: newest.pid ?? null,
    rank: newest.rank ?? null,
    ranks: ranges(same.map((one) => one.rank).filter((rank) => typeof rank === "number")),
    count: same.length,
    bytes: newest.bytes,
  };
}

/** The newest first; of those that crashed alike the newest stands for all. */
export function together(dumps: Dump[]): Crash[] {
  const alike = new Map<string, Dump[]>();
  for (const one of [...dumps].sort((a, b) => (b.time ?? b.written) - (a.time ?? a.written))) {
    const key = one.group || one.file;
    alike.set(key, [...(alike.get(key) ?? []), one]);
  }
  return [...alike.values()].map(crash);
}

export function useCrashes(): Answered<Crash[]> {
  return usePolled(has("/crashes") ? "crashes" : "", 10, async (signal) => together((await askJson<{ crashes: Dump[] }>("api/v1/crashes", { signal })).crashes));
}

/** Crashes of the last hour. */
export function lately(crashes: Crash[]): Crash[] {
  const now = Date.now() / 1000;
  return crashes.filter((one) => now - one.time < 3600).slice(0, 3);
}
