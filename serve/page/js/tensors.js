import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { has, query, records } from "./net.js";
import { set } from "./place.js";
import { bytes, count, duration, number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Empty, Filter, Loading, Switch, Table, Trouble } from "./parts.js";
import { OneTensor } from "./tensor.js";
const broken = (one) => Number(one["nan"] ?? 0) + Number(one["inf"] ?? 0) + Number(one["grad_nan"] ?? 0) > 0;
const value = (one, name) => (one[name] === null || one[name] === undefined ? "" : number(Number(one[name])));
function columns(statistics, open) {
    const first = [
        {
            name: "Parameter",
            cell: (one) => has("/p/{}/tensor/{}") ? (h("button", { type: "button", class: "bare fname", onClick: () => open(one) }, plain(String(one["name"]), 80))) : (h("code", null, plain(String(one["name"]), 80))),
        },
        { name: "Shape", cell: (one) => h("code", null, plain(String(one["shape"] ?? ""), 40)) },
        { name: "Type", cell: (one) => plain(`${one["dtype"] ?? ""} ${one["device"] ?? ""}`, 40) },
        { name: "Bytes", right: true, cell: (one) => bytes(Number(one["bytes"] ?? 0)) },
    ];
    const more = [
        {
            name: "NaN, Inf",
            right: true,
            cell: (one) => (broken(one) ? h("b", { class: "bad" }, `${value(one, "nan") || 0}, ${value(one, "inf") || 0}${Number(one["grad_nan"] ?? 0) ? "; gradient " + value(one, "grad_nan") : ""}`) : ""),
        },
        { name: "Least", right: true, cell: (one) => value(one, "min") },
        { name: "Most", right: true, cell: (one) => value(one, "max") },
        { name: "Mean", right: true, cell: (one) => value(one, "mean") },
        { name: "Deviation", right: true, cell: (one) => value(one, "std") },
        { name: "Gradient norm", right: true, cell: (one) => value(one, "grad_norm") },
        { name: "", cell: (one) => h("span", { class: "quiet" }, plain(String(one["error"] ?? ""), 80)) },
    ];
    return statistics ? [...first, ...more] : first;
}
const VARIABLES = `SELECT thread_name, func, name, type, value, address FROM python.locals
WHERE (type LIKE '%ndarray' OR type LIKE '%Tensor' OR type LIKE '%.Parameter') AND address IS NOT NULL ORDER BY os_thread_id, depth, name LIMIT 60`;
function Variables({ target, q, open }) {
    const asked = usePolled(target + " variables", 0, async (signal) => records(await query(target, VARIABLES, signal)));
    const rows = asked.value?.filter((one) => `${one["name"]} ${one["func"]}`.toLowerCase().includes(q.toLowerCase())) ?? [];
    const columns = [
        {
            name: "Variable",
            cell: (one) => (h("button", { type: "button", class: "bare fname", onClick: () => open({ address: Number(one["address"]), name: `${one["name"]} of ${one["func"]}` }) }, plain(String(one["name"]), 60))),
        },
        { name: "Function", cell: (one) => h("code", null, plain(String(one["func"]), 60)) },
        { name: "Value", cell: (one) => h("span", { class: "fplace" }, plain(String(one["value"] ?? ""), 120)) },
    ];
    if (!rows.length)
        return null;
    return (h("section", null,
        h("h2", null, "In variables"),
        h(Table, { label: "Arrays and tensors in variables", columns: columns, rows: rows })));
}
function Models({ target }) {
    const models = usePolled(target + " models", 0, async (signal) => records(await query(target, "SELECT type, parameters_total AS parameters, bytes_total AS bytes, dtype, device FROM torch.modules WHERE depth = 0 ORDER BY parameters DESC LIMIT 12", signal)));
    return (h("ul", { class: "plainlist" }, models.value?.map((one) => (h("li", null,
        h("code", null, plain(String(one["type"]), 80)),
        " ",
        count(Number(one["parameters"] ?? 0), "parameter"),
        ", ",
        bytes(Number(one["bytes"] ?? 0)),
        " ",
        h("span", { class: "quiet" },
            plain(String(one["dtype"] ?? ""), 20),
            " ",
            plain(String(one["device"] ?? ""), 20)))))));
}
export function TensorsScreen({ target, place }) {
    const statistics = place.params["statistics"] === "1";
    const q = place.params["q"] ?? "";
    const [open, setOpen] = useState(null);
    const from = statistics ? "torch.parameters(1)" : "torch.parameters";
    const asked = usePolled(target + from, statistics ? 5 : 0, async (signal) => records(await query(target, `SELECT * FROM ${from} LIMIT 4000`, signal)));
    const rows = asked.value?.filter((one) => String(one["name"]).toLowerCase().includes(q.toLowerCase())) ?? [];
    const bad = asked.value?.filter(broken) ?? [];
    const openRow = (one) => setOpen({ address: Number(one["address"]), name: String(one["name"]) });
    return (h(Fragment, null,
        h("h1", null, "Tensors"),
        h("div", { class: "tools" },
            h(Filter, { label: "Parameter", value: q, set: (q) => set({ q }) }),
            h(Switch, { label: "statistics", on: statistics, set: (on) => set({ statistics: on ? "1" : "" }), hint: "reads every value of every parameter, each 5 s" }),
            h("button", { type: "button", onClick: asked.again }, "Look again"),
            asked.value && (h("span", { class: "quiet" },
                count(asked.value.length, "parameter"),
                ", read in ",
                duration(asked.millis / 1000)))),
        h(Trouble, { error: asked.error }),
        bad.length > 0 && (h("p", { class: "trouble", role: "alert" },
            h("b", null,
                count(bad.length, "parameter"),
                " with NaN or Inf; the first is ",
                plain(String(bad[0]["name"]), 80),
                "."),
            " ",
            h("button", { type: "button", onClick: () => openRow(bad[0]) }, "Show where"))),
        !asked.value && !asked.error && h(Loading, null),
        asked.value?.length === 0 && h(Empty, null, "No PyTorch module is held by the Python code of this process."),
        asked.value && asked.value.length > 0 && h(Models, { target: target }),
        open && h(OneTensor, { key: open.address, target: target, address: open.address, name: open.name, close: () => setOpen(null) }),
        rows.length > 0 && h(Table, { label: "Parameters", columns: columns(statistics, openRow), rows: rows.slice(0, 600), row: (one) => (broken(one) ? "standing" : "") }),
        rows.length > 0 && rows.length <= 600 && h("p", { class: "quiet" }, "A name opens its values."),
        rows.length > 600 && h("p", { class: "quiet" },
            "The first 600 of ",
            number(rows.length),
            ": filter for others, or ask in SQL."),
        has("/p/{}/tensor/{}") && h(Variables, { target: target, q: q, open: setOpen })));
}
