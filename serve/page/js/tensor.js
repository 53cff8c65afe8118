import { h } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Chart } from "./chart.js";
import { Trouble } from "./parts.js";
function Picture({ target, address }) {
    const [source, setSource] = useState("");
    const [error, setError] = useState(null);
    useEffect(() => {
        ask(at(target, `tensor/${address}/image`), { accept: "*/*" }).then(async (answer) => {
            const reader = new FileReader();
            reader.onload = () => setSource(String(reader.result));
            reader.readAsDataURL(await answer.blob());
        }, (failed) => setError(failed));
    }, [target, address]);
    if (error)
        return h(Trouble, { error: error });
    return source ? h("img", { src: source, alt: "the values of a slice, as colours", width: 384 }) : null;
}
function Histogram({ told }) {
    const bins = told.counts.length;
    const least = told.edges?.[0] ?? told.least ?? 0;
    const width = ((told.edges?.at(-1) ?? told.most ?? 1) - least) / bins;
    const names = told.counts.map((_, i) => number(least + width * (i + 0.5)));
    return h(Chart, { label: "Histogram", bars: true, names: names, x: names.map((_, i) => i), lines: [{ label: "values", values: told.counts }], height: 160 });
}
export function OneTensor({ target, address, name, close }) {
    const asked = usePolled(`${target} ${address}`, 0, (signal) => askJson(at(target, `tensor/${address}`), { signal }));
    const simple = Object.entries(asked.value ?? {}).filter(([, value]) => value !== null && typeof value !== "object");
    return (h("section", { class: "empty", "aria-label": "Tensor " + name },
        h("h2", null, plain(name, 80)),
        h(Trouble, { error: asked.error }),
        h("dl", { class: "locals" }, simple.map(([key, value]) => (h("div", null,
            h("dt", null, plain(key, 40)),
            h("dd", null, typeof value === "number" ? number(value) : plain(String(value), 200)))))),
        asked.value?.histogram && h(Histogram, { told: asked.value.histogram }),
        has("/p/{}/tensor/{}/image") && h(Picture, { target: target, address: address }),
        h("p", null,
            h("button", { type: "button", onClick: close }, "Close"))));
}
