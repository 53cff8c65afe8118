import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { editor } from "./editor.js";
import { net, Refused } from "./net.js";
import { plain } from "./format.js";
import { frameName, framePlace } from "./looks.js";
export function Trouble({ error }) {
    if (!error)
        return null;
    return (h("div", { class: "trouble", role: "alert" },
        h("b", null, plain(error.message)),
        error instanceof Refused && error.remedy && h("p", null, plain(error.remedy))));
}
export function Empty({ children }) {
    return h("div", { class: "empty" }, children);
}
export function Loading() {
    return h("p", { class: "empty" }, "looking \u2026");
}
export function Switch({ label, on, set, hint }) {
    return (h("label", { class: "switch", title: hint },
        h("input", { type: "checkbox", checked: on, onChange: (event) => set(event.currentTarget.checked) }),
        label));
}
export function Filter({ value, set, label }) {
    return (h("input", { type: "search", class: "filter", placeholder: label + "  /", "aria-label": label, value: value, onInput: (event) => set(event.currentTarget.value) }));
}
export function FrameLine({ frame, times = 1 }) {
    return (h(Fragment, null,
        h("span", { class: "fname " + frame.kind }, plain(frameName(frame), 120)),
        times > 1 && h("span", { class: "times" },
            " \u00D7",
            times),
        h("span", { class: "fplace" },
            " ",
            plain(framePlace(frame), 160))));
}
export function OpenSource({ target, frame }) {
    const { line } = frame;
    const file = frame.path ?? frame.file;
    if (!editor || frame.kind !== "python" || !file || !line)
        return null;
    const title = `Open in ${editor.name}: ${plain(file, 120)}:${line}`;
    return (h("button", { type: "button", class: "bare opens", title: title, "aria-label": title, onClick: () => editor?.openSource(target, file, line) }, "\u2197"));
}
export function Allow() {
    const [asking, setAsking] = useState(false);
    if (!editor || net.facts?.grants.includes("eval"))
        return null;
    const ask = async () => {
        setAsking(true);
        if (await editor?.allow())
            net.facts = null;
        setAsking(false);
    };
    return (h("p", null,
        h("button", { type: "button", disabled: asking, onClick: () => void ask() }, "Let this panel change settings and run code \u2026")));
}
export function Table({ columns, rows, label, row }) {
    return (h("div", { class: "scroll", role: "region", "aria-label": label, tabIndex: 0 },
        h("table", { class: "cards" },
            h("thead", null,
                h("tr", null, columns.map((one) => (h("th", { scope: "col", class: one.right ? "right" : undefined }, one.name))))),
            h("tbody", null, rows.map((value) => (h("tr", { class: row?.(value) }, columns.map((one) => (h("td", { class: one.right ? "right" : undefined, "data-name": one.name }, one.cell(value)))))))))));
}
export function save(name, type, text) {
    const blob = typeof text === "string" ? new Blob([text], { type }) : text;
    if (editor) {
        editor.save(name, blob);
        return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
