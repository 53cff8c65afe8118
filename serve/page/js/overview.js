import { h, Fragment } from "./preact.js";
import { bytes, count, duration, percent, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { frameName, ownFrame } from "./looks.js";
import { processName, title } from "./names.js";
import { isStuck, reason, stands, state, STUCK } from "./watch.js";
import { diagnoseAgain, diagnosisOf, useDiagnoses } from "./diagnosis.js";
import { evidence, ofCrash, sayings, togetherAsRanks, withoutEchoes, worst } from "./sayings.js";
import { Ranks } from "./rank_grid.js";
import { hungJobs, useVerdicts } from "./hang.js";
import { jobTarget } from "./job_list.js";
import { JobCards } from "./verdict.js";
import { FrameLine, OpenSource, Table, Trouble } from "./parts.js";
import { lately, useCrashes } from "./crash_list.js";
const SHOWN = 12;
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
                    h("span", { class: "fplace" }, plainPlace(finding.where ?? ""))))),
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
    const hung = hungJobs().map((one) => plain(jobTarget(one), 40));
    const told = ofProcesses(jobs);
    return hung.length ? `${hung.join(", ")} ${hung.length === 1 ? "hangs" : "hang"}; ${told}` : told;
}
function ofProcesses(jobs) {
    const total = count(state.processes.length, "process", "processes");
    const bad = jobs.filter((job) => worst(job) === 0);
    const crashed = bad.filter((job) => job.crash).length;
    const troubled = bad.reduce((sum, job) => sum + job.ids.length, 0);
    if (bad.length)
        return [troubled && `${troubled} of ${total} ${troubled === 1 ? "is" : "are"} in trouble`, crashed && count(crashed, "crash", "crashes")].filter(Boolean).join(", ");
    if (!state.processes.length)
        return state.jobs.length ? "no Python process runs on the server's machine" : "No Python process is running";
    if (jobs.length)
        return `${total}, ${jobs.length} with something to look at`;
    const asked = state.processes.filter((one) => !one.trouble);
    return asked.every((one) => diagnosisOf(one).whole || reason(one)) ? `Nothing is wrong with ${total}` : `${total}: nothing wrong so far`;
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
    useVerdicts("");
    const crashes = useCrashes();
    const processes = togetherAsRanks(state.processes);
    const jobs = withoutEchoes([...processes, ...lately(crashes.value ?? []).map(ofCrash)].filter((job) => job.said.length)).sort((a, b) => worst(a) - worst(b) || Number(b.since > 0) - Number(a.since > 0) || a.ids.length - b.ids.length || b.since - a.since);
    const troubled = new Set(jobs.flatMap((job) => job.ids));
    return (h(Fragment, null,
        h("h1", { class: hungJobs().length || jobs.some((job) => worst(job) === 0) ? "bad" : jobs.length ? "" : "good" }, verdict(jobs)),
        h(Trouble, { error: state.refused }),
        h(JobCards, { jobs: state.jobs }),
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
            " s. The page looks once a second, the skills every two minutes and when something changes; nothing in a process is changed or stopped, but single threads of a job that seems to hang, for some 0.1 ms."),
        state.ended.length > 0 && (h(Fragment, null,
            h("h2", null, "Ended while you looked"),
            h("ul", { class: "plainlist" }, state.ended.map(({ process, at }) => (h("li", null,
                plain(processName(process), 90),
                ", at ",
                new Date(at * 1000).toLocaleTimeString()))))))));
}
