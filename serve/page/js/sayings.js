import { bytes, clock, duration, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { frameName, framePlace, ownFrame } from "./looks.js";
import { ranges, title } from "./names.js";
import { isStuck, STUCK } from "./watch.js";
import { diagnosisOf, isHang, seenSince, severity } from "./diagnosis.js";
export const chain = (one) => one.main
    .slice(0, 4)
    .map((frame) => plain(frameName(frame), 40))
    .join(" ← ");
const screens = {
    slow: { screen: "profile", params: { mode: "wall" } },
    leak: { screen: "memory" },
    nan: { screen: "tensors", params: { statistics: "1" } },
    overhead: { screen: "settings" },
    comm: { screen: "stacks", params: { ranks: "1" } },
    crash: { screen: "stacks", params: { locals: "1" } },
};
export const screenOf = (skill) => screens[skill] ?? { screen: "stacks" };
export const evidence = (one, finding) => link({ target: one.process.id, ...screenOf(finding.skill) });
function standing(one) {
    const busy = (one.share ?? 0) > 0.5;
    const frame = ownFrame(one.main);
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
function growing(one) {
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
const grows = (one) => one.watched > 30 && one.grew > 50e6 && one.grew > 0.1 * (one.process.rss - one.grew);
function said(one, finding) {
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
export function sayings(one) {
    const { findings } = diagnosisOf(one);
    const bad = findings.filter((finding) => finding.severity !== "info");
    const told = bad.map((finding) => said(one, finding));
    const known = findings.some((finding) => finding.skill === "hang") || one.since < 2 * STUCK;
    if (isStuck(one) && !known)
        told.push(standing(one));
    if (grows(one) && !bad.some((finding) => finding.skill === "leak"))
        told.push(growing(one));
    const rank = (one) => severity(one) + (one.skill === "slow" && bad.some(isHang) ? 10 : 0);
    return { bad: told.sort((a, b) => rank(a) - rank(b)), good: findings.filter((finding) => finding.severity === "info") };
}
function ofProcess(one) {
    const { name, more } = title(one.process);
    return { key: one.process.id, name: plain(name, 80), more: plain(more, 90), link: link({ target: one.process.id, screen: "stacks" }), said: sayings(one).bad, ids: [one.process.id], since: isStuck(one) ? one.since : 0, crash: false };
}
export function ofCrash(one) {
    const opened = link({ target: "file:" + one.file, screen: "crashes" });
    const who = one.ranks ? `rank ${one.ranks}` : `process ${one.pid ?? ""}`;
    const said = { skill: "crash", severity: "high", finding: plain(one.title, 160), where: plainPlace(one.where), next: "", link: opened, since: `at ${clock(one.time)}` };
    return { key: one.file, name: `${who} crashed`, more: one.count > 1 ? `${one.count} times alike` : one.ranks ? `process ${one.pid}` : "", link: opened, said: [said], ids: [], since: 0, crash: true };
}
export function togetherAsRanks(processes) {
    const alike = new Map();
    for (const one of processes) {
        const job = ofProcess(one);
        const said = job.said[0];
        const key = said && one.process.job !== null ? `${one.process.job} ${said.finding.replace(/[\d.]+ (s|min|h|days)/g, "#")} ${said.where}` : job.key;
        const known = alike.get(key) ?? { job, ranks: [], ids: [] };
        known.ids.push(one.process.id);
        if (one.process.rank !== null)
            known.ranks.push(one.process.rank);
        alike.set(key, known);
    }
    return [...alike.values()].map(({ job, ranks, ids }) => (ids.length === 1 ? job : { ...job, ids, name: `ranks ${ranges(ranks)}`, link: link({ target: ids[0], screen: "stacks", params: { ranks: "1" } }) }));
}
export const worst = (job) => severity(job.said[0]);
export function withoutEchoes(jobs) {
    const seen = new Set();
    const fresh = (one) => {
        if (!/^(rank \d|all \d+ ranks)/.test(one.finding))
            return true;
        const key = one.finding.replace(/\d+ %/g, "#");
        return !seen.has(key) && Boolean(seen.add(key));
    };
    return jobs.map((job) => ({ ...job, said: job.said.filter(fresh) })).filter((job) => job.said.length);
}
