import { h } from "./preact.js";
import { useEffect, useRef } from "./hooks.js";
import { clock, number } from "./format.js";
let library = null;
function load() {
    if (!library) {
        const sheet = document.createElement("link");
        sheet.rel = "stylesheet";
        sheet.href = new URL("uPlot.css", import.meta.url).href;
        document.head.append(sheet);
        library = import("./uPlot.js");
    }
    return library;
}
function colours(element) {
    const made = document.createElement("i");
    element.append(made);
    const read = (name) => {
        made.style.color = `var(${name})`;
        return getComputedStyle(made).color;
    };
    const found = { ink: read("--ink"), grid: read("--line"), lines: [1, 2, 3, 4, 5, 6].map((n) => read(`--c${n}`)) };
    made.remove();
    return found;
}
const STACKED = "b0";
const BAND = "38";
const faint = (colour, rest) => colour.replace(/^rgb\((.*)\)$/, (_, parts) => "#" + parts.split(",").map((one) => Number(one).toString(16).padStart(2, "0")).join("") + rest);
function series(one, i, latest, stroke, bars) {
    const { stacked, bars: hasBars } = latest.current;
    const show = one.value ?? number;
    return {
        label: one.label,
        stroke,
        width: one.dots ? 0 : stacked ? 1 : 1.5,
        ...(hasBars ? { fill: stroke, paths: bars } : stacked ? { fill: faint(stroke, STACKED) } : {}),
        points: { show: one.dots ?? false },
        value: (_plot, value, _series, at) => {
            const own = stacked && at !== null ? (latest.current.lines[i]?.values[at] ?? null) : value;
            return own === null || own === undefined ? "–" : show(own);
        },
    };
}
function columns(props) {
    if (!props.stacked)
        return [props.x, ...props.lines.map((one) => one.values)];
    const sums = [];
    props.lines.forEach((one, i) => sums.push(one.values.map((value, at) => (value ?? 0) + (sums[i - 1]?.[at] ?? 0))));
    return [props.x, ...sums.reverse()];
}
function make(Plot, element, latest) {
    const props = latest.current;
    const paint = colours(element);
    const first = props.lines[0]?.value;
    const axis = { stroke: paint.ink, grid: { stroke: paint.grid, width: 1 }, ticks: { stroke: paint.grid, width: 1 } };
    const bars = Plot.paths.bars({ size: [0.7, 60] });
    const names = props.names;
    const lines = props.lines.map((one, i) => series(one, i, latest, paint.lines[i % 6], bars));
    return new Plot({
        width: Math.max(200, element.clientWidth),
        height: props.height ?? 200,
        scales: { x: { time: props.time ?? false, ...(props.span ? { range: (_plot, low, high) => latest.current.span ?? [low, high] } : {}) } },
        axes: [
            { ...axis, ...(names ? { values: (_plot, splits) => splits.map((at) => names[at] ?? "") } : {}) },
            { ...axis, size: 70, ...(first ? { values: (_plot, splits) => splits.map(first) } : {}) },
        ],
        series: [{ ...(props.time ? { value: (_plot, value) => (value === null ? "–" : clock(value)) } : {}), ...(names ? { value: (_plot, value) => (value === null ? "–" : (names[value] ?? "")) } : {}) }, ...(props.stacked ? lines.reverse() : lines)],
        ...(props.band ? { bands: [{ series: [1, 2], fill: faint(paint.lines[0], BAND) }] } : {}),
        cursor: { drag: { x: true, y: false }, ...(props.together ? { sync: { key: props.together } } : {}) },
    }, columns(props), element);
}
function tellLast(plot, props) {
    if (plot && props.x.length && (plot.cursor.left ?? -1) < 0)
        plot.setLegend({ idx: props.x.length - 1 });
}
export function Chart(props) {
    const place = useRef(null);
    const plot = useRef(null);
    const latest = useRef(props);
    latest.current = props;
    const shape = props.lines.map((one) => one.label).join("\n");
    useEffect(() => {
        let gone = false;
        const element = place.current;
        const build = (module) => {
            if (gone)
                return;
            plot.current?.destroy();
            plot.current = make(module.default, element, latest);
            tellLast(plot.current, latest.current);
        };
        void load().then(build);
        const resized = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, element.clientWidth), height: latest.current.height ?? 200 }));
        resized.observe(element);
        const themed = () => void load().then(build);
        const theme = matchMedia("(prefers-color-scheme: dark)");
        theme.addEventListener("change", themed);
        addEventListener("theme", themed);
        return () => {
            gone = true;
            resized.disconnect();
            theme.removeEventListener("change", themed);
            removeEventListener("theme", themed);
            plot.current?.destroy();
            plot.current = null;
        };
    }, [shape]);
    useEffect(() => {
        plot.current?.setData(columns(props));
        tellLast(plot.current, props);
    });
    const last = props.lines.map((one) => `${one.label} ${(one.value ?? number)(one.values.findLast((value) => value !== null) ?? 0)}`).join(", ");
    return h("div", { class: "chart", role: "img", "aria-label": `${props.label}: ${last}`, ref: place });
}
