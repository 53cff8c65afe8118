import { h, Fragment } from "./preact.js";
import { bytes, clock, count, duration, percent, plain } from "./format.js";
import { link } from "./place.js";
import { frameName, framePlace, ownFrame, sameStack } from "./looks.js";
import { processName, ranges, title } from "./names.js";
import { isStuck, reason, stands, state, STUCK } from "./watch.js";
import { diagnoseAgain, diagnosisOf, isHang, seenSince, severity, useDiagnoses } from "./diagnosis.js";
import { FrameLine, OpenSource, Table, Trouble } from "./parts.js";
import { lately, useCrashes } from "./crash_list.js";
const SHOWN = 12;
const chain = (one) => one.main
    .slice(0, 4)
    .map((frame) => plain(frameName(frame), 40))
    .join(" ← ");
function evidence(one, finding) {
    const target = one.process.id;
    const screens = {
        slow: { screen: "profile", params: { mode: "wall" } },
        leak: { screen: "memory" },
        nan: { screen: "tensors", params: { statistics: "1" } },
        overhead: { screen: "settings" },
        comm: { screen: "stacks", params: { ranks: "1" } },
        crash: { screen: "stacks", params: { locals: "1" } },
    };
    return link({ target, ...(screens[finding.skill] ?? { screen: "stacks" }) });
}
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
        where: plain(finding.where ?? "", 200),
        next: plain(finding.next ?? "", 200),
        link: evidence(one, finding),
        since: `since ${clock(isHang(finding) ? Date.now() / 1000 - one.since : seenSince(one, finding))}`,
    };
}
function sayings(one) {
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
function ofCrash(one) {
    const opened = link({ target: "file:" + one.file, screen: "crashes" });
    const who = one.ranks ? `rank ${one.ranks}` : `process ${one.pid ?? ""}`;
    const said = { skill: "crash", severity: "high", finding: plain(one.title, 160), where: plain(one.where, 160), next: "", link: opened, since: `at ${clock(one.time)}` };
    return { key: one.file, name: `${who} crashed`, more: one.count > 1 ? `${one.count} times alike` : one.ranks ? `process ${one.pid}` : "", link: opened, said: [said], ids: [], since: 0, crash: true };
}
function togetherAsRanks(processes) {
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
const worst = (job) => severity(job.said[0]);
function withoutEchoes(jobs) {
    const seen = new Set();
    const fresh = (one) => {
        if (!/^(rank \d|all \d+ ranks)/.test(one.finding))
            return true;
        const key = one.finding.replace(/\d+ %/g, "#");
        return !seen.has(key) && Boolean(seen.add(key));
    };
    return jobs.map((job) => ({ ...job, said: job.said.filter(fresh) })).filter((job) => job.said.length);
}
const FIRST = 2;
function Findings({ all }) {
    const more = all.slice(FIRST, SHOWN);
    return (h(Fragment, null,
        h(List, { all: all.slice(0, FIRST) }),
        more.length > 0 && (h("details", { class: "bare" },
            h("summary", null,
                count(more.length, "more finding"),
                ": ",
                h("span", { class: "quiet" }, more[0].finding)),
            h(List, { all: more })))));
}
function List({ all }) {
    return (h("ul", { class: "findings" }, all.map((one) => (h("li", { class: one.severity },
        h("span", { class: "severity" }, one.severity),
        h("div", null,
            h("a", { href: one.link }, one.finding),
            " ",
            h("span", { class: "since" }, one.since),
            one.where && h("div", { class: "fplace" }, one.where),
            one.next && h("div", { class: "quiet next" }, one.next)))))));
}
function Jobs({ jobs }) {
    return (h(Fragment, null,
        jobs.slice(0, SHOWN).map((job) => (h("section", { key: job.key, class: "job " + job.said[0].severity, "aria-label": job.name },
            h("h2", null,
                h("a", { href: job.link }, job.name),
                " ",
                h("span", { class: "quiet" }, job.more)),
            h(Findings, { all: job.said })))),
        jobs.length > SHOWN && h("p", { class: "quiet" },
            "and ",
            count(jobs.length - SHOWN, "more", "more"),
            " below")));
}
function how(one) {
    const mine = ownFrame(one.main);
    const where = mine ? plain(frameName(mine), 40) : "";
    if (one.trouble)
        return plain(one.trouble, 120);
    if (!one.main.length)
        return "the first look is under way";
    const why = reason(one);
    if (stands(one))
        return why ? `${why}, for ${duration(one.since)}` : `in ${where} for ${duration(one.since)}`;
    return `moves, now in ${where}`;
}
function Well({ one }) {
    const { at, whole, asking } = diagnosisOf(one);
    const { good } = sayings(one);
    const { name, more } = title(one.process);
    const ago = Date.now() / 1000 - at;
    const checked = whole && at ? `nothing found ${duration(ago)} ago` : asking || at ? "the skills look …" : "";
    return (h("li", null,
        h("details", { class: "bare" },
            h("summary", null,
                h("span", { class: whole && !one.trouble ? "tick" : "tick quiet", "aria-hidden": "true" }, one.trouble ? "–" : whole ? "✓" : "…"),
                " ",
                h("b", null, plain(name, 60)),
                " ",
                h("span", { class: "quiet" }, plain(more, 80)),
                " ",
                how(one),
                " ",
                h("span", { class: "quiet" }, checked)),
            h("ul", { class: "plainlist" },
                good.map((finding) => (h("li", null,
                    h("a", { href: evidence(one, finding) }, plain(finding.finding)),
                    " ",
                    h("span", { class: "fplace" }, plain(finding.where ?? "", 160))))),
                !good.length && h("li", { class: "quiet" }, "Nothing was said of it yet.")))));
}
function Others({ all }) {
    const workers = all.filter((one) => reason(one) === "waits for work" && stands(one));
    const shown = all.filter((one) => !workers.includes(one));
    if (!all.length)
        return null;
    return (h("ul", { class: "well", "aria-label": "Processes without a finding" },
        shown.slice(0, SHOWN).map((one) => (h(Well, { key: one.process.id, one: one }))),
        shown.length > SHOWN && h("li", { class: "quiet" },
            "and ",
            shown.length - SHOWN,
            " more, below"),
        workers.length > 0 && h("li", { class: "quiet" },
            count(workers.length, "worker waits", "workers wait"),
            " for work")));
}
function verdict(jobs) {
    const total = count(state.processes.length, "process", "processes");
    const bad = jobs.filter((job) => worst(job) === 0);
    const crashed = bad.filter((job) => job.crash).length;
    const troubled = bad.reduce((sum, job) => sum + job.ids.length, 0);
    if (bad.length)
        return [troubled && `${troubled} of ${total} ${troubled === 1 ? "is" : "are"} in trouble`, crashed && count(crashed, "crash", "crashes")].filter(Boolean).join(", ");
    if (!state.processes.length)
        return "No Python process is running";
    if (jobs.length)
        return `${total}, ${jobs.length} with something to look at`;
    const asked = state.processes.filter((one) => !one.trouble);
    return asked.every((one) => diagnosisOf(one).whole || reason(one)) ? `Nothing is wrong with ${total}` : `${total}: nothing wrong so far`;
}
function colours(ranks) {
    const known = new Map();
    return new Map(ranks.map((one) => {
        const thread = one.stacks?.threads.find((thread) => thread.id === one.process.pid);
        const key = one.stacks && thread ? one.main.map((frame) => frameName(frame)).join() || sameStack(one.stacks, thread.stack) : "";
        if (!known.has(key))
            known.set(key, known.size % 8);
        return [one, known.get(key)];
    }));
}
function Ranks() {
    const ranks = state.processes.filter((one) => one.process.job !== null).sort((a, b) => a.process.job - b.process.job || a.process.rank - b.process.rank);
    const ahead = Math.max(...ranks.map((one) => one.process.step ?? -1));
    if (ranks.length < 2)
        return null;
    const colour = colours(ranks);
    const behind = (one) => one.process.step !== null && one.process.step < ahead - 1;
    return (h(Fragment, null,
        h("h2", null,
            "Ranks ",
            h("a", { href: link({ target: ranks[0].process.id, screen: "stacks", params: { ranks: "1" } }) }, "their stacks in one tree")),
        h("ul", { class: "ranks" }, ranks.map((one) => (h("li", { class: `group${colour.get(one)}` + (isStuck(one) || behind(one) ? " standing" : "") },
            h("a", { href: link({ target: one.process.id, screen: "stacks" }), title: chain(one) },
                h("b", null, one.process.rank),
                h("span", null, one.process.step === null ? (one.main[0] ? plain(frameName(one.main[0]), 14) : "") : `step ${one.process.step}`),
                h("meter", { "aria-label": `CPU of rank ${one.process.rank}`, min: 0, max: 1, value: Math.min(1, one.share ?? 0) }))))))));
}
function tree() {
    const known = new Set(state.processes.map((one) => one.process.pid));
    const out = [];
    const add = (one, depth) => {
        out.push({ one, depth });
        for (const child of state.processes)
            if (child.process.ppid === one.process.pid && child !== one && depth < 20)
                add(child, depth + 1);
    };
    for (const one of state.processes)
        if (!known.has(one.process.ppid))
            add(one, 0);
    return out;
}
const columns = [
    {
        name: "Process",
        cell: ({ one, depth }) => (h("a", { href: link({ target: one.process.id, screen: "stacks" }), class: "depth" + Math.min(depth, 4), title: plain(one.process.command ?? "") }, plain(processName(one.process), 80))),
    },
    {
        name: "Main thread is in",
        cell: ({ one }) => one.trouble ? h("span", { class: "quiet" }, plain(one.trouble, 80)) : one.main[0] ? (h(Fragment, null,
            h(FrameLine, { frame: one.main[0] }),
            " ",
            h(OpenSource, { target: one.process.id, frame: one.main[0] }))) : h("span", { class: "quiet" }, "looking"),
    },
    {
        name: "since",
        right: true,
        cell: ({ one }) => (one.main.length ? h("span", { class: isStuck(one) ? "bad" : "" }, one.since < 1 || (one.since >= STUCK && !stands(one)) ? "moving" : duration(one.since)) : ""),
    },
    { name: "CPU", right: true, cell: ({ one }) => (one.share === null ? "" : percent(one.share)) },
    { name: "Memory", right: true, cell: ({ one }) => bytes(one.process.rss) },
    { name: "Threads", right: true, cell: ({ one }) => one.process.threads },
    { name: "Step", right: true, cell: ({ one }) => one.process.step ?? "" },
    { name: "Python", cell: ({ one }) => one.process.python ?? "" },
    { name: "Probe", cell: ({ one }) => (one.process.has_probe ? "loaded" : "") },
];
export function Overview() {
    useDiagnoses();
    const crashes = useCrashes();
    const processes = togetherAsRanks(state.processes);
    const jobs = withoutEchoes([...processes, ...lately(crashes.value ?? []).map(ofCrash)].filter((job) => job.said.length)).sort((a, b) => worst(a) - worst(b) || Number(b.since > 0) - Number(a.since > 0) || a.ids.length - b.ids.length || b.since - a.since);
    const troubled = new Set(jobs.flatMap((job) => job.ids));
    return (h(Fragment, null,
        h("h1", { class: jobs.some((job) => worst(job) === 0) ? "bad" : jobs.length ? "" : "good" }, verdict(jobs)),
        h(Trouble, { error: state.refused }),
        h(Jobs, { jobs: jobs }),
        h(Others, { all: state.processes.filter((one) => !troubled.has(one.process.id)) }),
        h(Ranks, null),
        h("h2", null,
            "Processes",
            " ",
            h("button", { type: "button", onClick: diagnoseAgain }, "Look again")),
        h(Table, { label: "Processes", columns: columns, rows: tree(), row: ({ one }) => (isStuck(one) ? "standing" : "") }),
        h("p", { class: "quiet" },
            "Red: the main thread's stack has not changed for ",
            STUCK,
            " s. The page looks once a second, the skills every two minutes and when something changes; nothing in a process is stopped or changed."),
        state.ended.length > 0 && (h(Fragment, null,
            h("h2", null, "Ended while you looked"),
            h("ul", { class: "plainlist" }, state.ended.map(({ process, at }) => (h("li", null,
                plain(processName(process), 90),
                ", at ",
                new Date(at * 1000).toLocaleTimeString()))))))));
}
