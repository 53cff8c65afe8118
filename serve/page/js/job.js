import { h, Fragment } from "./preact.js";
import { askJson, at, has } from "./net.js";
import { plain } from "./format.js";
import { link, set } from "./place.js";
import { usePolled, useWatch } from "./polled.js";
import { state, watched } from "./watch.js";
import { inState, jobOf, jobTarget, ranksIn, sizeOf, STATES } from "./job_list.js";
import { useVerdicts, verdictOf } from "./hang.js";
import { CoverageBar, JobCard } from "./verdict.js";
import { MAIN, RankTree } from "./ranks.js";
import { Empty, Loading, Switch, Trouble } from "./parts.js";
import { JobFindings } from "./job_findings.js";
import { JobProfile } from "./job_profile.js";
import { JobMemory, JobTraining } from "./job_tables.js";
const frameOf = ({ kind, name, file, line }) => ({ kind, name, file: kind === "native" ? null : file, line: line > 0 ? line : null, module: kind === "native" ? file : null });
const merged = (target, native, signal) => askJson(at(target, "stacks", native ? { native: "1" } : {}), { signal });
function mainName(rows) {
    const ranks = new Map();
    for (const one of rows)
        ranks.set(one.thread, (ranks.get(one.thread) ?? 0) + one.count);
    return ranks.has("MainThread") ? "MainThread" : ([...ranks].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "");
}
function walkers(rows, thread) {
    return rows
        .filter((one) => one.thread === thread)
        .flatMap((one) => {
        const frames = one.frames.map(frameOf).reverse();
        return ranksIn(one.ranks).map((rank) => ({ rank, frames, since: null }));
    });
}
function Stacks({ target, place }) {
    const native = place.params["native"] === "1";
    const asked = usePolled(`${target} merged ${native}`, 2, (signal) => merged(target, native, signal));
    const told = asked.value;
    const main = mainName(told?.rows ?? []);
    const all = walkers(told?.rows ?? [], place.params["thread"] || main);
    const answered = told ? inState(told.coverage, "answered") : [];
    const known = new Set(all.map((one) => one.rank));
    const names = [...new Set((told?.rows ?? []).map((one) => one.thread))].filter((one) => one !== main && one !== MAIN).sort();
    return (h(Fragment, null,
        h("h1", null,
            "Stacks of ",
            plain(target, 80)),
        h("div", { class: "tools" },
            h(Switch, { label: "native", on: native, set: (on) => set({ native: on ? "1" : "" }), hint: "C and C++ frames, too; stops single threads for about 0.1 ms" })),
        h(Trouble, { error: asked.error }),
        !told && !asked.error && h(Loading, null),
        told && h(CoverageBar, { told: told.coverage }),
        told && h(RankTree, { walkers: all, expected: told.coverage.expected, missing: answered.filter((rank) => !known.has(rank)), why: "it has no such thread", names: names.slice(0, 60), place: place })));
}
const CELLS = 2048;
function cells(told) {
    const rows = told?.rows ?? [];
    const main = mainName(rows);
    const mine = rows.filter((one) => one.thread === main);
    return new Map(mine.flatMap((one, i) => ranksIn(one.ranks).map((rank) => [rank, { colour: i % 8, text: one.frames[0]?.name ?? "" }])));
}
function stateOf(rank, told) {
    return told ? (STATES.find((state) => inState(told, state).includes(rank)) ?? "") : "";
}
function RankCell({ job, one, cell, told, blamed }) {
    const here = one.target ? watched(one.target) : undefined;
    const gone = cell ? "" : stateOf(one.rank, told);
    const to = one.target ?? jobTarget(job, String(one.rank));
    return (h("li", { class: `group${cell?.colour ?? 7}` + (blamed || (gone && gone !== "answered") ? " standing" : "") },
        h("a", { href: link({ target: to, screen: "stacks" }), title: plain(one.refused ?? `process ${one.pid ?? "?"} on ${one.host ?? "?"}`, 120) },
            h("b", null, one.rank),
            h("span", null, cell ? plain(cell.text, 20) : gone || " "),
            here && h("meter", { "aria-label": `CPU of rank ${one.rank}`, min: 0, max: 1, value: Math.min(1, here.share ?? 0) }))));
}
function RankGrid({ job, told }) {
    const known = new Map(job.ranks.map((one) => [one.rank, one]));
    const size = Math.min(CELLS, sizeOf(job));
    const all = Array.from({ length: size }, (_, rank) => known.get(rank) ?? { rank, local_rank: null, pid: null, host: null, target: null, silent: false, gone: false, refused: "nobody reports this rank" });
    const hosts = [...new Set(all.map((one) => one.host))].sort((a, b) => Number(a === null) - Number(b === null));
    const where = cells(told);
    const blamed = new Set((verdictOf(job).hang?.cause ?? []).flatMap((part) => ranksIn(part.ranks)));
    return (h(Fragment, null,
        h("h2", null,
            "Ranks ",
            h("a", { href: link({ target: jobTarget(job), screen: "stacks" }) }, "their stacks in one tree")),
        h("div", { class: "hosts" }, hosts.map((host) => (h("section", null,
            hosts.length > 1 && h("h3", null, host === null ? "on no host that is known" : plain(host, 60)),
            h("ul", { class: "ranks" }, all
                .filter((one) => one.host === host)
                .map((one) => (h(RankCell, { key: one.rank, job: job, one: one, cell: where.get(one.rank), told: told?.coverage, blamed: blamed.has(one.rank) })))))))),
        sizeOf(job) > CELLS && h("p", { class: "quiet" },
            "The first ",
            CELLS,
            " of ",
            sizeOf(job),
            " ranks.")));
}
function Overview({ target, job }) {
    useVerdicts(jobTarget(job));
    const asked = usePolled(`${target} merged`, 2, (signal) => merged(target, false, signal));
    const { hang } = verdictOf(job);
    const hung = hang?.hung;
    const fresh = asked.value?.coverage;
    return (h(Fragment, null,
        h("h1", { class: hung ? "bad" : "" },
            plain(jobTarget(job), 80),
            " ",
            hung === undefined ? "" : hung ? "hangs" : "goes on"),
        h(JobCard, { job: job }),
        h(Trouble, { error: asked.error }),
        fresh && fresh.answered !== hang?.coverage.answered && h(CoverageBar, { told: fresh }),
        has("/jobs/{}/skills/{}") && h(JobFindings, { job: job, target: target, shown: hang?.coverage ?? fresh }),
        h(RankGrid, { job: job, told: asked.value })));
}
function listed(job) {
    const seen = new Set(job.ranks.map((one) => one.rank));
    const stateOf = (one) => (one.refused ? "failed" : one.gone ? "gone" : one.silent ? "silent" : "answered");
    const allIn = (wanted) => job.ranks.filter((one) => stateOf(one) === wanted);
    const ranksOf = (wanted) => allIn(wanted).map((one) => one.rank).join();
    return {
        expected: sizeOf(job),
        answered: ranksOf("answered"),
        failed: allIn("failed").map((one) => ({ rank: one.rank, reason: one.refused })),
        missing: Array.from({ length: sizeOf(job) }, (_, rank) => rank).filter((rank) => !seen.has(rank)).join(),
        silent: ranksOf("silent"),
        gone: ranksOf("gone"),
        late: "",
        truncated: "",
    };
}
function OfOneRank({ job, place }) {
    return (h(Fragment, null,
        h("h1", null,
            "Which rank of ",
            plain(jobTarget(job), 80),
            "?"),
        h(CoverageBar, { told: listed(job) }),
        h("p", null, "This screen is of one rank:"),
        h("ul", { class: "plainlist" }, job.ranks.slice(0, CELLS).map((one) => (h("li", null,
            one.target ? h("a", { href: link({ target: one.target, screen: place.screen }) },
                "rank ",
                one.rank) : `rank ${one.rank}`,
            " ",
            h("span", { class: "quiet" },
                plain(`process ${one.pid ?? "?"} on ${one.host ?? "?"}`, 100),
                !one.target && ", which a server on that machine shows")))))));
}
export function JobScreen({ target, place }) {
    useWatch();
    const job = jobOf(state.jobs, target);
    if (!job)
        return h(Empty, null,
            "No job ",
            plain(target, 80),
            " is seen; when one of its ranks begins, it is here.");
    if (place.screen === "overview")
        return h(Overview, { target: target, job: job });
    if (place.screen === "stacks")
        return h(Stacks, { target: target, place: place });
    if (place.screen === "profile" && has("/jobs/{}/profile"))
        return h(JobProfile, { target: target, place: place });
    if (place.screen === "training" && has("/jobs/{}/query"))
        return h(JobTraining, { target: target, job: job, place: place });
    if (place.screen === "memory" && has("/jobs/{}/query"))
        return h(JobMemory, { target: target, job: job, place: place });
    return h(OfOneRank, { job: job, place: place });
}
