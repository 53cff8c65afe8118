// What is said of each process: what the skills find, and what the page sees by itself; the ranks of a job of which the same is said
// in one.
import { bytes, clock, duration, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { frameName, framePlace, ownFrame } from "./looks.js";
import { ranges, title } from "./names.js";
import { isStuck, STUCK, type Watched } from "./watch.js";
import { diagnosisOf, isHang, seenSince, severity, type Finding } from "./diagnosis.js";
import type { Crash } from "./crash_list.js";

// ---- what is said of one process ----

/** A finding as it is shown. */
export interface Said {
  skill: string; // "": the page itself
  severity: string;
  finding: string;
  where: string;
  next: string;
  link: string;
  since: string;
}

export const chain = (one: Watched): string =>
  one.main
    .slice(0, 4)
    .map((frame) => plain(frameName(frame), 40))
    .join(" ← ");

const screens: Record<string, { screen: string; params?: Record<string, string> }> = {
  slow: { screen: "profile", params: { mode: "wall" } },
  leak: { screen: "memory" },
  nan: { screen: "tensors", params: { statistics: "1" } },
  overhead: { screen: "settings" },
  comm: { screen: "stacks", params: { ranks: "1" } },
  crash: { screen: "stacks", params: { locals: "1" } },
};

/** Where the page shows what a skill found. */
export const screenOf = (skill: string): { screen: string; params?: Record<string, string> } => screens[skill] ?? { screen: "stacks" };

export const evidence = (one: Watched, finding: Finding): string => link({ target: one.process.id, ...screenOf(finding.skill) });

/** What the page sees by itself before the skills have looked. */
function standing(one: Watched): Said {
  const busy = (one.share ?? 0) > 0.5;
  const frame = ownFrame(one.main)!;
  return {
    skill: "",
    severity: busy ? "medium" : "high",
    finding: `the main thread has not moved for ${duration(one.since)}: it is in ${plain(frameName(frame), 60)}${busy ? ", and uses the CPU" : ""}`,
    where: plain(framePlace(frame), 120),
    next: chain(one),
    link: link({ target: one.process.id, screen: "stacks" }),
    since: `since ${clock(Date.now() / 1000 - one.since)}`,
  };
}

function growing(one: Watched): Said {
  return {
    skill: "",
    severity: "medium",
    finding: `memory grew by ${bytes(one.grew)} in ${duration(one.watched)}`,
    where: `now ${bytes(one.process.rss)}`,
    next: "",
    link: link({ target: one.process.id, screen: "memory" }),
    since: "",
  };
}

const grows = (one: Watched): boolean => one.watched > 30 && one.grew > 50e6 && one.grew > 0.1 * (one.process.rss - one.grew);

function said(one: Watched, finding: Finding): Said {
  return {
    skill: finding.skill,
    severity: finding.severity,
    finding: plain(isHang(finding) ? finding.finding.replace(/ for \d+ s/, ` for ${duration(one.since)}`) : finding.finding),
    where: plainPlace(finding.where ?? ""),
    next: plain(finding.next ?? "", 200),
    link: evidence(one, finding),
    since: `since ${clock(isHang(finding) ? Date.now() / 1000 - one.since : seenSince(one, finding))}`,
  };
}

/** All of it, the worst first; what is only worth knowing apart. */
export function sayings(one: Watched): { bad: Said[]; good: Finding[] } {
  const { findings } = diagnosisOf(one);
  const bad = findings.filter((finding) => finding.severity !== "info");
  const told = bad.map((finding) => said(one, finding));
  const known = findings.some((finding) => finding.skill === "hang") || one.since < 2 * STUCK; // the skill says it better
  if (isStuck(one) && !known) told.push(standing(one));
  if (grows(one) && !bad.some((finding) => finding.skill === "leak")) told.push(growing(one));
  // What stands still spends all of its time at that place: that is no news.
  const rank = (one: Said): number => severity(one) + (one.skill === "slow" && bad.some(isHang) ? 10 : 0);
  return { bad: told.sort((a, b) => rank(a) - rank(b)), good: findings.filter((finding) => finding.severity === "info") };
}

// ---- the jobs with trouble ----

export interface Job {
  key: string;
  name: string;
  more: string;
  link: string;
  said: Said[];
  ids: string[]; // of its processes
  since: number;
  crash: boolean;
}

function ofProcess(one: Watched): Job {
  const { name, more } = title(one.process);
  return { key: one.process.id, name: plain(name, 80), more: plain(more, 90), link: link({ target: one.process.id, screen: "stacks" }), said: sayings(one).bad, ids: [one.process.id], since: isStuck(one) ? one.since : 0, crash: false };
}

export function ofCrash(one: Crash): Job {
  const opened = link({ target: "file:" + one.file, screen: "crashes" });
  const who = one.ranks ? `rank ${one.ranks}` : `process ${one.pid ?? ""}`;
  const said = { skill: "crash", severity: "high", finding: plain(one.title, 160), where: plainPlace(one.where), next: "", link: opened, since: `at ${clock(one.time)}` };
  return { key: one.file, name: `${who} crashed`, more: one.count > 1 ? `${one.count} times alike` : one.ranks ? `process ${one.pid}` : "", link: opened, said: [said], ids: [], since: 0, crash: true };
}

/** Ranks of one job of which the same is said, at the same place, in one. */
export function togetherAsRanks(processes: Watched[]): Job[] {
  const alike = new Map<string, { job: Job; ranks: number[]; ids: string[] }>();
  for (const one of processes) {
    const job = ofProcess(one);
    const said = job.said[0];
    const key = said && one.process.job !== null ? `${one.process.job} ${said.finding.replace(/[\d.]+ (s|min|h|days)/g, "#")} ${said.where}` : job.key;
    const known = alike.get(key) ?? { job, ranks: [], ids: [] };
    known.ids.push(one.process.id);
    if (one.process.rank !== null) known.ranks.push(one.process.rank);
    alike.set(key, known);
  }
  return [...alike.values()].map(({ job, ranks, ids }) => (ids.length === 1 ? job : { ...job, ids, name: `ranks ${ranges(ranks)}`, link: link({ target: ids[0]!, screen: "stacks", params: { ranks: "1" } }) }));
}

export const worst = (job: Job): number => severity(job.said[0]!);

/** Ranks that say the same (which of them is late) say it once. */
export function withoutEchoes(jobs: Job[]): Job[] {
  const seen = new Set<string>();
  const fresh = (one: Said): boolean => {
    if (!/^(rank \d|all \d+ ranks)/.test(one.finding)) return true;
    const key = one.finding.replace(/\d+ %/g, "#");
    return !seen.has(key) && Boolean(seen.add(key));
  };
  return jobs.map((job) => ({ ...job, said: job.said.filter(fresh) })).filter((job) => job.said.length);
}
