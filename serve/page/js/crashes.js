import { h, Fragment } from "./preact.js";
import { has, query, records } from "./net.js";
import { bytes, plain } from "./format.js";
import { link } from "./place.js";
import { usePolled } from "./polled.js";
import { useCrashes } from "./crash_list.js";
import { Empty, Loading, Table, Trouble } from "./parts.js";
const columns = [
    { name: "When", cell: (one) => (one.time === null ? "" : h("span", { title: new Date(one.time * 1000).toISOString() }, new Date(one.time * 1000).toLocaleString())) },
    { name: "What", cell: (one) => h("a", { href: link({ target: "file:" + one.file, screen: "crashes" }) }, plain(one.title || one.file, 120)) },
    { name: "Where", cell: (one) => h("span", { class: "fplace" }, plain(one.where, 120)) },
    { name: "Process", right: true, cell: (one) => one.pid ?? "" },
    { name: "Ranks", cell: (one) => plain(one.ranks || (one.rank === null ? "" : String(one.rank)), 40) },
    { name: "Equal ones", right: true, cell: (one) => (one.count > 1 ? one.count : "") },
    { name: "Size", right: true, cell: (one) => (one.bytes ? bytes(one.bytes) : "") },
];
function One({ target }) {
    const crash = usePolled(target, 0, async (signal) => records(await query(target, "SELECT * FROM system.crash", signal))[0] ?? null);
    const chain = usePolled(target, 0, async (signal) => records(await query(target, "SELECT type, message, func, file, lineno, link, thread_name FROM python.exception ORDER BY os_thread_id, depth", signal)));
    const told = crash.value;
    return (h(Fragment, null,
        h("h1", null, told ? plain(String(told["title"] ?? "A dump"), 160) : "A dump"),
        h("p", { class: "quiet" }, plain(target.replace(/^file:/, ""), 160)),
        h(Trouble, { error: crash.error ?? chain.error }),
        !told && !crash.error && h(Loading, null),
        told && (h("dl", { class: "locals" }, Object.entries(told)
            .filter(([name, value]) => value !== null && name !== "title")
            .map(([name, value]) => (h("div", null,
            h("dt", null, name),
            h("dd", null, name === "time" ? new Date(Number(value) * 1000).toLocaleString() : name === "address" ? "0x" + Number(value).toString(16) : plain(String(value), 400))))))),
        chain.value && chain.value.length > 0 && (h(Fragment, null,
            h("h2", null, "Exceptions"),
            h("ul", { class: "plainlist" }, chain.value.map((one) => (h("li", null,
                one["link"] ? h("span", { class: "quiet" },
                    plain(String(one["link"]), 40),
                    ": ") : null,
                h("b", null, plain(String(one["type"]), 80)),
                ": ",
                plain(String(one["message"] ?? ""), 400),
                " ",
                h("span", { class: "fplace" },
                    plain(String(one["func"] ?? ""), 80),
                    " ",
                    plain(String(one["file"] ?? ""), 120),
                    ":",
                    one["lineno"]))))))),
        h("p", null,
            h("a", { href: link({ target, screen: "stacks", params: { locals: "1" } }) }, "Stacks and variables"),
            " \u00B7 ",
            h("a", { href: link({ target, screen: "tensors" }) }, "Tensors"),
            " \u00B7",
            " ",
            h("a", { href: link({ target, screen: "sql" }) }, "SQL"),
            " \u00B7 ",
            h("a", { href: link({ screen: "crashes" }) }, "all crashes"))));
}
export function CrashesScreen({ place }) {
    const crashes = useCrashes();
    if (place.target.startsWith("file:"))
        return h(One, { target: place.target });
    return (h(Fragment, null,
        h("h1", null, "Crashes"),
        h(Trouble, { error: crashes.error }),
        crashes.value && crashes.value.length > 0 && h(Table, { label: "Crash dumps", columns: columns, rows: crashes.value }),
        !has("/crashes") && h(Empty, null, "This server does not list crash dumps; `probing crash list` does."),
        crashes.value?.length === 0 && (h(Empty, null,
            h("p", null, "No crash dump is there. A process leaves one when it crashes, if it was started so:"),
            h("pre", null, "PROBING_CRASH=1 python train.py"),
            h("p", null, "or, for one that runs already:"),
            h("pre", null, "probing PID inject -c")))));
}
