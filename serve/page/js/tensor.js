import { h } from "./preact.js";
import { askJson, at, has } from "./net.js";
import { number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Chart } from "./chart.js";
import { HeatMap } from "./heat.js";
import { Trouble } from "./parts.js";
function Histogram({ told }) {
    const counts = told.histogram ?? [];
    const least = told.low ?? 0;
    const width = ((told.high ?? 1) - least) / counts.length;
    const names = counts.map((_, i) => number(least + width * (i + 0.5)));
    return h(Chart, { label: "Histogram", bars: true, names: names, x: names.map((_, i) => i), lines: [{ label: "values", values: counts }], height: 160 });
}
function simple(told) {
    return Object.entries(told).flatMap(([key, value]) => {
        if (typeof value === "number")
            return [[key, number(value)]];
        if (typeof value === "string" || typeof value === "boolean")
            return [[key, plain(String(value), 600)]];
        return Array.isArray(value) && key !== "histogram" ? [[key, `[${value.join(", ")}]`]] : [];
    });
}
export function OneTensor({ target, address, name, close }) {
    const asked = usePolled(`${target} ${address}`, 0, (signal) => askJson(at(target, `tensor/${address}`, { statistics: "1", bins: "40", count: "24" }), { signal }));
    const told = [...simple(asked.value ?? {}), ...simple(asked.value?.statistics ?? {})];
    return (h("section", { class: "tensor", "aria-label": "Tensor " + name },
        h("h2", null, plain(name, 80)),
        h(Trouble, { error: asked.error }),
        asked.value?.unreadable && h("p", { class: "banner" },
            "Its values cannot be read: ",
            plain(asked.value.unreadable, 200),
            "."),
        asked.value?.shape && !asked.value.unreadable && has("/p/{}/tensor/{}/map") && h(HeatMap, { key: address, target: target, address: address, shape: asked.value.shape }),
        h("dl", { class: "locals" }, told.map(([key, value]) => (h("div", null,
            h("dt", null, plain(key, 40)),
            h("dd", null, value))))),
        asked.value?.statistics?.histogram?.length ? h(Histogram, { told: asked.value.statistics }) : null,
        h("p", null,
            h("button", { type: "button", onClick: close }, "Close"))));
}
