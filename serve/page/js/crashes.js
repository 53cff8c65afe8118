import { h, Fragment } from "./preact.js";
import { askJson, at, has, query, records } from "./net.js";
import { bytes, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { usePolled } from "./polled.js";
import { state } from "./watch.js";
import { useCrashes } from "./crash_list.js";
import { framesOf } from "./looks.js";
import { FrameList } from "./frames.js";
import { localsOf } from "./locals.js";
import { CoverageBar } from "./verdict.js";
import { isJob } from "./job_list.js";
import { Empty, Loading, Table, Trouble } from "./parts.js";
const columns = [
    { name: "When", cell: (one) => h("span", { title: new Date(one.time * 1000).toISOString() }, new Date(one.time * 1000).toLocaleString()) },
    { name: "What", cell: (one) => h("a", { href: link({ target: "file:" + one.file, screen: "crashes" }) }, plain(one.title || one.file, 120)) },
    { name: "Where", cell: (one) => h("span", { class: "fplace" }, plainPlace(one.where, 120)) },
    { name: "Process", right: true, cell: (one) => one.pid ?? "" },
    { name: "Ranks", cell: (one) => one.ranks },
    { name: "Alike", right: true, cell: (one) => (one.count > 1 ? one.count : "") },
    { name: "Size", right: true, cell: (one) => (one.bytes ? bytes(one.bytes) : "") },
];
const GROUPS = `SELECT crash_group, count(*) AS crashes, group_concat(DISTINCT rank) AS ranks, max(time) AS last, title, place, kind
FROM system.crashes GROUP BY coalesce(crash_group, file) ORDER BY last DESC`;
const text = (value) => (value === null || value === undefined ? "" : String(value));
function value(name, told) {
    const one = told[name];
    if (name === "time")
        return new Date(Number(one) * 1000).toLocaleString();
    return name === "address" ? "0x" + Number(one).toString(16) : plain(text(one), 400);
}
function Chain({ rows }) {
    if (!rows.length)
        return null;
    return (h(Fragment, null,
        h("h2", null, "Exceptions"),
        h("ul", { class: "plainlist" }, rows.map((one) => (h("li", null,
            one["link"] ? h("span", { class: "quiet" },
                plain(text(one["link"]), 40),
                ": ") : null,
            h("b", null, plain(text(one["type"]), 80)),
            ": ",
            plain(text(one["message"]), 400),
            " ",
            h("span", { class: "fplace" },
                plain(text(one["func"]), 80),
                " ",
                plain(text(one["file"]), 120),
                ":",
                one["lineno"])))))));
}
function Fallen({ target, thread }) {
    const stacks = usePolled(target + " stacks", 0, (signal) => askJson(at(target, "stacks"), { signal }));
    const locals = usePolled(target + " locals", 0, (signal) => localsOf(target, false, signal));
    const fallen = stacks.value?.threads.find((one) => one.id === thread) ?? stacks.value?.threads[0];
    if (!stacks.value || !fallen)
        return h(Trouble, { error: stacks.error });
    return (h(Fragment, null,
        h("h2", null,
            "Stack of ",
            plain(fallen.name ?? `thread ${fallen.id}`, 60),
            ", which crashed"),
        h(FrameList, { frames: framesOf(stacks.value, fallen), target: target, q: "", locals: locals.value?.get(fallen.id) ?? null })));
}
function One({ target }) {
    const crash = usePolled(target, 0, async (signal) => records(await query(target, "SELECT * FROM system.crash", signal))[0] ?? null);
    const chain = usePolled(target, 0, async (signal) => records(await query(target, "SELECT type, message, func, file, lineno, link, thread_name FROM python.exception WHERE state <> 'handled' ORDER BY os_thread_id, depth", signal)));
    const told = crash.value;
    return (h(Fragment, null,
        h("h1", { class: told ? "bad" : "" }, told ? plain(text(told["title"]), 200) : "A dump"),
        told && (h("p", null,
            value("time", told),
            ", process ",
            told["pid"],
            told["rank"] !== null && `, rank ${told["rank"]} of ${told["world_size"]}`,
            told["file"] && h("span", { class: "fplace" },
                " ",
                plain(`${told["func"]} ${told["file"]}:${told["lineno"]}`, 200)))),
        h("p", null,
            h("a", { href: link({ target, screen: "stacks", params: { locals: "1" } }) }, "All stacks and variables"),
            " \u00B7 ",
            h("a", { href: link({ target, screen: "tensors" }) }, "Tensors"),
            " \u00B7",
            " ",
            h("a", { href: link({ target, screen: "sql" }) }, "SQL"),
            " \u00B7 ",
            h("a", { href: link({ screen: "crashes" }) }, "all crashes")),
        h(Trouble, { error: crash.error ?? chain.error }),
        !told && !crash.error && h(Loading, null),
        h(Chain, { rows: chain.value ?? [] }),
        told && h(Fallen, { target: target, thread: Number(told["os_thread_id"]) }),
        told && (h("details", { class: "bare" },
            h("summary", null, "Signal, thread, group"),
            h("dl", { class: "locals" }, ["file_name", ...Object.keys(told)]
                .filter((name) => name === "file_name" || (told[name] !== null && name !== "title"))
                .map((name) => (h("div", null,
                h("dt", null, name === "file_name" ? "dump" : name),
                h("dd", null, name === "file_name" ? plain(target.replace(/^file:/, ""), 160) : value(name, told))))))))));
}
const jobColumns = [
    { name: "First (UTC)", cell: (one) => one.first },
    { name: "What", cell: (one) => plain(one.title || one.path, 120) },
    { name: "Where", cell: (one) => h("span", { class: "fplace" }, plainPlace(one.place, 120)) },
    { name: "Ranks", cell: (one) => one.ranks },
    { name: "Host", cell: (one) => plain(one.host, 60) },
    { name: "Dump", cell: (one) => h("span", { class: "fplace" }, plainPlace(one.path, 120)) },
    { name: "Size", right: true, cell: (one) => bytes(one.bytes) },
];
function OfJob({ target }) {
    const asked = usePolled(`${target} crashes`, 10, (signal) => askJson(at(target, "crashes"), { signal }));
    const told = asked.value;
    return (h(Fragment, null,
        h("h1", null,
            "Crashes of ",
            plain(target, 80)),
        h(Trouble, { error: asked.error }),
        told && h(CoverageBar, { told: told.coverage }),
        !told && !asked.error && h(Loading, null),
        told && (told.rows.length ? h(Table, { label: "Crash dumps of the job", columns: jobColumns, rows: told.rows }) : h(Empty, null, "No rank has left a crash dump.")),
        told && told.rows.length > 0 && (h("p", { class: "quiet" },
            h("code", null,
                "probing -t ",
                plain(target, 80),
                " crash list --pull DIR"),
            " fetches them"))));
}
export function CrashesScreen({ place }) {
    const crashes = useCrashes();
    if (place.target.startsWith("file:"))
        return h(One, { target: place.target });
    if (isJob(place.target) && has("/jobs/{}/crashes"))
        return h(OfJob, { target: place.target });
    return (h(Fragment, null,
        h("h1", null, "Crashes"),
        h(Trouble, { error: crashes.error }),
        crashes.value && crashes.value.length > 0 && h(Table, { label: "Crash dumps", columns: columns, rows: crashes.value }),
        crashes.value && crashes.value.length > 0 && state.processes[0] && (h("p", null,
            h("a", { href: link({ target: state.processes[0].process.id, screen: "sql", params: { sql: GROUPS } }) }, "Ask in SQL"),
            " ",
            h("span", { class: "quiet" }, "system.crashes, also of processes that could write no dump"))),
        !has("/crashes") && h(Empty, null, "This server does not list crash dumps; `probing crash list` does."),
        crashes.value?.length === 0 && (h(Empty, null,
            h("p", null, "No crash dump is there. A process leaves one when it crashes, if it was started so:"),
            h("pre", null, "PROBING_CRASH=1 python train.py"),
            h("p", null, "or, for one that runs already:"),
            h("pre", null, "probing PID inject -c")))));
}
