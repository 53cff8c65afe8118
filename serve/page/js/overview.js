import { h, Fragment } from "./preact.js";
import { bytes, count, duration, percent, plain } from "./format.js";
import { link } from "./place.js";
import { frameName, framePlace, sameStack } from "./looks.js";
import { isStuck, reason, stands, state, STUCK } from "./watch.js";
import { FrameLine, Table, Trouble } from "./parts.js";
import { useCrashes, crashFindings } from "./crash_list.js";
function shortCommand(command) {
    const words = command.split(" ");
    const base = (word) => word.slice(word.lastIndexOf("/") + 1);
    if (words.length > 1 && /^python[\d.]*$/.test(base(words[0])))
        words.shift();
    const program = words.findIndex((one) => !one.startsWith("-"));
    return words.map((one, i) => (i === program ? base(one) || one : one)).join(" ");
}
export function processName(process) {
    const rank = process.rank === null ? "" : `rank ${process.rank} · `;
    return `${process.pid} · ${rank}${process.command ? shortCommand(process.command) : (process.name ?? "?")}`;
}
const who = (process) => (process.rank === null ? `process ${process.pid}` : `rank ${process.rank} (process ${process.pid})`);
const chain = (one) => one.main
    .slice(0, 4)
    .map((frame) => plain(frameName(frame), 40))
    .join(" ← ");
function standing(one) {
    const frame = one.main[0];
    const busy = (one.share ?? 0) > 0.5;
    const why = reason(one);
    return {
        severity: why ? "info" : busy ? "medium" : "high",
        finding: `${who(one.process)}: main thread ${why || "unchanged"} for ${duration(one.since)} in ${plain(frameName(frame), 60)}${busy ? ", using the CPU" : ""}`,
        where: plain(framePlace(frame), 120),
        next: chain(one),
        link: link({ target: one.process.id, screen: "stacks" }),
    };
}
function growing(one) {
    return {
        severity: "medium",
        finding: `${who(one.process)}: memory +${bytes(one.grew)} in ${duration(one.watched)}`,
        where: `now ${bytes(one.process.rss)}`,
        link: link({ target: one.process.id, screen: "memory" }),
    };
}
const leaks = (one) => one.watched > 30 && one.grew > 50e6 && one.grew > 0.1 * (one.process.rss - one.grew);
const order = ["high", "medium", "low", "info"];
function findings(crashes) {
    const all = state.processes.flatMap((one) => [
        ...one.skills.map((finding) => ({
            ...finding,
            finding: `${who(one.process)}: ${plain(finding.finding)}`,
            link: link({ target: one.process.id, screen: "stacks" }),
        })),
        ...(stands(one) ? [standing(one)] : []),
        ...(leaks(one) ? [growing(one)] : []),
    ]);
    return [...all, ...crashes].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}
function Findings({ all }) {
    return (h("ul", { class: "findings" }, all.slice(0, 12).map((one) => (h("li", { class: one.severity },
        h("span", { class: "severity" }, one.severity),
        h("a", { href: one.link ?? "#/overview" }, one.finding),
        one.where && h("span", { class: "fplace" }, plain(one.where)),
        one.next && h("span", { class: "quiet" }, plain(one.next)))))));
}
function verdict(all) {
    const stuck = state.processes.filter(isStuck);
    const total = count(state.processes.length, "process", "processes");
    if (!state.processes.length)
        return "No Python process is running";
    if (stuck.length)
        return `${stuck.length} of ${total} ${stuck.length === 1 ? "stands" : "stand"} still`;
    const serious = all.filter((one) => one.severity !== "info").length;
    if (serious)
        return `${total}: ${count(serious, "finding")}`;
    const seen = state.processes.filter((one) => one.main.length).length;
    return seen ? `${total}: nothing stands still` : `${total}: looking`;
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
    const ranks = state.processes.filter((one) => one.process.rank !== null).sort((a, b) => a.process.rank - b.process.rank);
    if (ranks.length < 2)
        return null;
    const colour = colours(ranks);
    return (h(Fragment, null,
        h("h2", null, "Ranks"),
        h("ul", { class: "ranks" }, ranks.map((one) => (h("li", { class: `group${colour.get(one)}` + (isStuck(one) ? " standing" : "") },
            h("a", { href: link({ target: one.process.id, screen: "stacks" }), title: chain(one) },
                h("b", null, one.process.rank),
                h("span", null, one.process.step ?? (one.main[0] ? plain(frameName(one.main[0]), 14) : "")),
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
        cell: ({ one }) => one.trouble ? h("span", { class: "quiet" }, plain(one.trouble, 80)) : one.main[0] ? h(FrameLine, { frame: one.main[0] }) : h("span", { class: "quiet" }, "looking"),
    },
    {
        name: "since",
        right: true,
        cell: ({ one }) => (one.main.length ? h("span", { class: isStuck(one) ? "bad" : "" }, one.since < 1 || (one.since >= STUCK && !stands(one)) ? "moving" : duration(one.since)) : ""),
    },
    { name: "CPU", right: true, cell: ({ one }) => (one.share === null ? "" : percent(one.share)) },
    { name: "Memory", right: true, cell: ({ one }) => bytes(one.process.rss) },
    { name: "Threads", right: true, cell: ({ one }) => one.process.threads },
    { name: "Python", cell: ({ one }) => one.process.python ?? "" },
    { name: "Probe", cell: ({ one }) => (one.process.has_probe ? "loaded" : "") },
];
export function Overview() {
    const crashes = useCrashes();
    const all = findings(crashFindings(crashes.value ?? []));
    return (h(Fragment, null,
        h("h1", { class: state.processes.some(isStuck) ? "bad" : "" }, verdict(all)),
        h(Trouble, { error: state.refused }),
        h(Findings, { all: all }),
        h(Ranks, null),
        h("h2", null, "Processes"),
        h(Table, { label: "Processes", columns: columns, rows: tree(), row: ({ one }) => (isStuck(one) ? "standing" : "") }),
        h("p", { class: "quiet" },
            "Red: the main thread's stack has not changed for ",
            STUCK,
            " s. The page looks once a second; nothing in a process is stopped or changed."),
        state.ended.length > 0 && (h(Fragment, null,
            h("h2", null, "Ended while you looked"),
            h("ul", { class: "plainlist" }, state.ended.map(({ process, at }) => (h("li", null,
                plain(processName(process), 90),
                ", at ",
                new Date(at * 1000).toLocaleTimeString()))))))));
}
