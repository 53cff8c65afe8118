import { ranges } from "./names.js";
const MOST = 100000;
export function ranksIn(text) {
    const all = [];
    for (const part of text.split(",").filter(Boolean)) {
        const [first = 0, last = first] = part.split("-").map(Number);
        for (let rank = first; rank <= last && all.length < MOST; rank++)
            all.push(rank);
    }
    return all;
}
export const shownRanks = (text) => ranges(ranksIn(text));
export const isJob = (target) => target.startsWith("@");
const named = (job) => (isJob(job.id) ? job.id : "@" + job.id);
export const sizeOf = (job) => job.world_size ?? Math.max(0, ...job.ranks.map((one) => one.rank + 1));
export const jobTarget = (job, ranks = "") => named(job) + (ranks && ":" + ranks);
export function jobOf(jobs, target) {
    const whole = target.replace(/:[\d,-]+$/, "");
    return jobs.find((one) => named(one) === target) ?? jobs.find((one) => named(one) === whole);
}
export const STATES = ["answered", "failed", "silent", "gone", "missing"];
export const inState = (told, state) => (state === "failed" ? told.failed.map((one) => one.rank) : ranksIn(told[state]));
