import { h } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import { number, plain } from "./format.js";
const ROW = 26;
const BEYOND = 12;
function shown(value) {
    if (value === null)
        return "NULL";
    return typeof value === "number" ? number(value) : plain(value, 200);
}
function less(a, b) {
    if (a === null || b === null)
        return Number(b === null) - Number(a === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : Number(a !== b);
}
export function Grid({ rows }) {
    const [top, setTop] = useState(0);
    const [sort, setSort] = useState(null);
    const box = useRef(null);
    const sorted = sort ? [...rows.rows].sort((a, b) => less(a[sort.column] ?? null, b[sort.column] ?? null) * (sort.down ? -1 : 1)) : rows.rows;
    const height = box.current?.clientHeight ?? 600;
    const from = Math.max(0, Math.floor(top / ROW) - BEYOND);
    const some = sorted.slice(from, from + Math.ceil(height / ROW) + 2 * BEYOND);
    const after = Math.max(0, sorted.length - from - some.length);
    return (h("div", { class: "scroll grid", role: "region", "aria-label": "Rows", tabIndex: 0, ref: box, onScroll: () => setTop(box.current?.scrollTop ?? 0) },
        h("table", null,
            h("thead", null,
                h("tr", null, rows.columns.map((name, i) => (h("th", { scope: "col", "aria-sort": sort?.column === i ? (sort.down ? "descending" : "ascending") : "none" },
                    h("button", { type: "button", class: "bare", onClick: () => setSort({ column: i, down: sort?.column === i && !sort.down }) },
                        plain(name, 60),
                        sort?.column === i && (sort.down ? " ↓" : " ↑"))))))),
            h("tbody", null,
                from > 0 && (h("tr", { "aria-hidden": "true" },
                    h("td", { colSpan: rows.columns.length, style: { height: `${from * ROW}px`, padding: 0 } }))),
                some.map((row, i) => (h("tr", { key: from + i }, row.map((value) => (h("td", { class: value === null ? "quiet" : typeof value === "number" ? "right" : undefined, title: typeof value === "string" && value.length > 60 ? plain(value, 2000) : undefined }, shown(value))))))),
                after > 0 && (h("tr", { "aria-hidden": "true" },
                    h("td", { colSpan: rows.columns.length, style: { height: `${after * ROW}px`, padding: 0 } })))))));
}
