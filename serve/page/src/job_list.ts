// Jobs of several ranks as the server knows them, of this machine and, with a bus, of others.  A job is a target: "@NAME", or some of
// its ranks, "@NAME:0-3,7".
import { ranges } from "./names.js";

export interface JobRank {
  rank: number;
  local_rank: number | null;
  pid: number | null;
  host: string | null;
  target: string | null; // the process, where it is on the server's machine
  silent: boolean; // its host does not answer
  gone: boolean; // its host saw it end
  refused: string | null; // why it cannot be looked at
}

export interface RankedJob {
  id: string;
  world_size: number | null; // null: no rank says it
  ranks: JobRank[];
}

/** In which state each rank is that was asked for; ranks as "0-3,7". */
export interface Coverage {
  expected: number;
  answered: string;
  failed: { rank: number; reason: string | null }[];
  silent: string;
  gone: string;
  missing: string;
  late: string;
  truncated: string;
}

const MOST = 100000; // ranks

/** "0-3,7" as numbers. */
export function ranksIn(text: string): number[] {
  const all: number[] = [];
  for (const part of text.split(",").filter(Boolean)) {
    const [first = 0, last = first] = part.split("-").map(Number);
    for (let rank = first; rank <= last && all.length < MOST; rank++) all.push(rank);
  }
  return all;
}

/** "0-3,7" as people read it. */
export const shownRanks = (text: string): string => ranges(ranksIn(text));

export const isJob = (target: string): boolean => target.startsWith("@");

const named = (job: RankedJob): string => (isJob(job.id) ? job.id : "@" + job.id);

export const sizeOf = (job: RankedJob): number => job.world_size ?? Math.max(0, ...job.ranks.map((one) => one.rank + 1));

/** The target that a job is, or some of its ranks. */
export const jobTarget = (job: RankedJob, ranks = ""): string => named(job) + (ranks && ":" + ranks);

export function jobOf(jobs: RankedJob[], target: string): RankedJob | undefined {
  const whole = target.replace(/:[\d,-]+$/, "");
  return jobs.find((one) => named(one) === target) ?? jobs.find((one) => named(one) === whole);
}

export const STATES = ["answered", "failed", "silent", "gone", "missing"] as const;
export type State = (typeof STATES)[number];

export const inState = (told: Coverage, state: State): number[] => (state === "failed" ? told.failed.map((one) => one.rank) : ranksIn(told[state]));
