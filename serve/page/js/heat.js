import { h, Fragment } from "./preact.js";
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import { askJson, at } from "./net.js";
import { count, number, percent, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Loading, Switch, Trouble } from "./parts.js";
const WIDTH = 560;
const HEIGHT = 420;
const LARGEST = 28;
const MARKED = 7;
const ENDS = { low: [29, 91, 178], middle: [244, 244, 242], high: [188, 86, 8], dark: [36, 39, 45] };
const NAN = "#d0008f";
const INF = "#f2c400";
function scaleOf(grid) {
    let low = Infinity;
    let high = -Infinity;
    for (const value of grid.mean)
        if (value !== null) {
            low = Math.min(low, value);
            high = Math.max(high, value);
        }
    if (low > high)
        return { low: 0, high: 1, zero: false, known: false };
    const most = Math.max(-low, high);
    return low < 0 && high > 0 ? { low: -most, high: most, zero: true, known: true } : { low, high, zero: false, known: true };
}
function colour(value, scale, dark) {
    const part = scale.high > scale.low ? (value - scale.low) / (scale.high - scale.low) : 0.5;
    const middle = dark ? ENDS.dark : ENDS.middle;
    const [from, to, share] = scale.zero ? (part < 0.5 ? [middle, ENDS.low, 1 - 2 * part] : [middle, ENDS.high, 2 * part - 1]) : [middle, ENDS.low, part];
    return `rgb(${from.map((one, i) => Math.round(one + (to[i] - one) * share)).join(" ")})`;
}
const sizeOf = (grid) => Math.max(1, Math.min(LARGEST, Math.floor(Math.min(WIDTH / grid.across, HEIGHT / grid.down))));
function draw(context, grid, scale, chosen, dark) {
    const size = sizeOf(grid);
    const x = (cell) => (cell % grid.across) * size;
    const y = (cell) => Math.floor(cell / grid.across) * size;
    grid.mean.forEach((value, cell) => {
        context.fillStyle = value === null ? (dark ? "#000" : "#fff") : colour(value, scale, dark);
        context.fillRect(x(cell), y(cell), size, size);
    });
    const mark = (cells, paint, sign) => {
        for (const [cell] of cells) {
            context.fillStyle = paint;
            context.fillRect(x(cell), y(cell), size, size);
            if (size < MARKED)
                continue;
            context.fillStyle = sign === "∞" ? "#000" : "#fff";
            context.font = `bold ${Math.round(size * 0.8)}px sans-serif`;
            context.textAlign = "center";
            context.textBaseline = "middle";
            context.fillText(sign, x(cell) + size / 2, y(cell) + size / 2 + 1);
        }
    };
    mark(grid.inf, INF, "∞");
    mark(grid.nan, NAN, "×");
    if (chosen < 0)
        return;
    context.lineWidth = 2;
    context.strokeStyle = dark ? "#fff" : "#000";
    context.strokeRect(x(chosen) + 1, y(chosen) + 1, Math.max(2, size - 2), Math.max(2, size - 2));
}
function part(cell, cells, length) {
    const from = Math.ceil((cell * length) / cells);
    const until = Math.ceil(((cell + 1) * length) / cells) - 1;
    return until > from ? `${from}–${until}` : `${from}`;
}
function words(grid, cell) {
    if (cell < 0)
        return "";
    const row = Math.floor(cell / grid.across);
    const place = `[${grid.rows === 1 ? "" : part(row, grid.down, grid.rows) + ", "}${part(cell % grid.across, grid.across, grid.columns)}]`;
    const nan = grid.nan.find(([at]) => at === cell)?.[1] ?? 0;
    const inf = grid.inf.find(([at]) => at === cell)?.[1] ?? 0;
    const mean = grid.mean[cell];
    const one = grid.down === grid.rows && grid.across === grid.columns;
    if (one && (nan || inf))
        return `${place} = ${nan ? "NaN" : "infinite"}`;
    if (one)
        return `${place} = ${mean === null || mean === undefined ? "not read" : number(mean)}`;
    const more = [nan && `${number(nan)} NaN`, inf && `${number(inf)} infinite`].filter(Boolean).join(", ");
    return `${place} mean ${mean === null || mean === undefined ? "of nothing finite" : number(mean)}${more && ", " + more}`;
}
function Legend({ scale, grid }) {
    const dark = useDark();
    const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => colour(scale.low + share * (scale.high - scale.low), scale, dark));
    return (h("p", { class: "heatlegend" },
        scale.known && (h(Fragment, null,
            h("span", null, number(scale.low)),
            stops.map((stop) => (h("i", { style: { background: stop } }))),
            h("span", null, number(scale.high)))),
        grid.nan.length > 0 && (h("span", null,
            h("i", { style: { background: NAN } }, "\u00D7"),
            " NaN")),
        grid.inf.length > 0 && (h("span", null,
            h("i", { style: { background: INF, color: "#000" } }, "\u221E"),
            " infinite"))));
}
function useDark() {
    const read = () => getComputedStyle(document.documentElement).colorScheme === "dark" || (document.documentElement.dataset["theme"] !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    const [dark, setDark] = useState(read);
    useEffect(() => {
        const again = () => setDark(read());
        const theme = matchMedia("(prefers-color-scheme: dark)");
        theme.addEventListener("change", again);
        addEventListener("theme", again);
        return () => {
            theme.removeEventListener("change", again);
            removeEventListener("theme", again);
        };
    }, []);
    return dark;
}
function Picture({ grid }) {
    const canvas = useRef(null);
    const [chosen, setChosen] = useState(-1);
    const dark = useDark();
    const scale = useMemo(() => scaleOf(grid), [grid]);
    const size = sizeOf(grid);
    const cells = grid.down * grid.across;
    useEffect(() => {
        const element = canvas.current;
        const context = element.getContext("2d");
        if (!context)
            return;
        const ratio = devicePixelRatio || 1;
        element.width = grid.across * size * ratio;
        element.height = grid.down * size * ratio;
        element.style.aspectRatio = `${grid.across} / ${grid.down}`;
        element.style.width = `${grid.across * size}px`;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        draw(context, grid, scale, chosen, dark);
    });
    const under = (event) => {
        const box = canvas.current.getBoundingClientRect();
        const column = Math.floor(((event.clientX - box.left) / box.width) * grid.across);
        const row = Math.floor(((event.clientY - box.top) / box.height) * grid.down);
        return Math.max(0, Math.min(cells - 1, row * grid.across + Math.min(grid.across - 1, Math.max(0, column))));
    };
    const press = (event) => {
        const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.across, ArrowDown: grid.across };
        const step = steps[event.key];
        if (step === undefined)
            return;
        event.preventDefault();
        const next = chosen < 0 ? 0 : chosen + step;
        if (next >= 0 && next < cells)
            setChosen(next);
    };
    const bad = [...grid.nan, ...grid.inf].sort(([a], [b]) => a - b);
    return (h(Fragment, null,
        h("canvas", { ref: canvas, class: "heat", tabIndex: 0, role: "img", "aria-label": `Heat map of ${grid.rows} by ${grid.columns} values. Arrows walk over its cells.`, onMouseMove: (event) => setChosen(under(event)), onKeyDown: press }),
        h("p", { class: "told", "aria-live": "polite" }, words(grid, chosen) || "\u00a0"),
        h(Legend, { scale: scale, grid: grid }),
        bad.length > 0 && (h("p", null,
            h("button", { type: "button", onClick: () => (setChosen(bad.find(([cell]) => cell > chosen)?.[0] ?? bad[0][0]), canvas.current?.focus({ preventScroll: true })) }, "Next NaN or infinity"),
            " ",
            h("span", { class: "quiet" },
                "in ",
                count(bad.length, "cell"))))));
}
export function HeatMap({ target, address, shape }) {
    const leading = shape.slice(0, -2);
    const [index, setIndex] = useState(leading.map(() => 0));
    const [live, setLive] = useState(false);
    const slice = [...index, "..."].join(",");
    const asked = usePolled(`${target} ${address} ${slice}`, live ? 1 : 0, (signal) => askJson(at(target, `tensor/${address}/map`, { slice }), { signal }));
    const last = useRef(null);
    last.current = asked.value ?? (asked.error ? null : last.current);
    const grid = last.current;
    return (h("section", { "aria-label": "Heat map" },
        h("h2", null, "Values"),
        h("div", { class: "tools" },
            leading.map((length, i) => (h("label", { class: "switch" },
                "dimension ",
                i,
                " ",
                h("input", { type: "number", min: 0, max: length - 1, value: index[i] ?? 0, onInput: (event) => {
                        const value = Math.max(0, Math.min(length - 1, Math.trunc(Number(event.currentTarget.value))));
                        setIndex(index.map((old, k) => (k === i ? value : old)));
                    } }),
                h("span", { class: "quiet" },
                    "of ",
                    number(length))))),
            h(Switch, { label: "live", on: live, set: setLive, hint: "read anew each second" }),
            grid && (h("span", { class: "quiet" },
                number(grid.rows),
                " \u00D7 ",
                number(grid.columns),
                grid.down * grid.across < grid.elements && `, a cell is the mean of up to ${Math.ceil(grid.rows / grid.down)} × ${Math.ceil(grid.columns / grid.across)}`,
                grid.read < grid.elements && `; ${percent(grid.read / grid.elements)} of them were read`))),
        h(Trouble, { error: asked.error }),
        !grid && !asked.error && h(Loading, null),
        grid && grid.elements > 0 && h(Picture, { key: `${grid.rows} ${grid.columns}`, grid: grid }),
        grid && grid.elements === 0 && h("p", { class: "quiet" }, plain("It has no elements."))));
}
