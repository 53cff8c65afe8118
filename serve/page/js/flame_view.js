import { h } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { number, percent, plain } from "./format.js";
import { nodeAt, Painter, ROW, step } from "./canvas.js";
function paintOf(element) {
    const style = getComputedStyle(element);
    const ink = style.color;
    const light = (/\d+/.exec(ink)?.[0] ?? "0") > "99" || Number(/\d+/.exec(ink)?.[0]) > 127;
    return { ink, paper: style.backgroundColor, mark: style.outlineColor || ink, dark: light };
}
function words(flame, node, unit) {
    if (node < 0 || node >= flame.count)
        return "";
    const frame = flame.frames[flame.frame[node]];
    const place = frame?.file ? ` ${frame.file}${frame.line ? ":" + frame.line : ""}` : "";
    const all = flame.total[0] || 1;
    return `${plain(flame.name(node), 160)}${plain(place, 160)}: ${number(flame.total[node])} ${unit}, ${percent(flame.total[node] / all)}, itself ${percent(flame.self[node] / all)}`;
}
export function FlameView({ flame, changes, q, tint, unit }) {
    const canvas = useRef(null);
    const painter = useRef(new Painter());
    const [zoom, setZoom] = useState(0);
    const [chosen, setChosen] = useState(-1);
    const [size, setSize] = useState(0);
    const [, themed] = useState(0);
    const words_ = q.toLowerCase();
    const top = zoom < flame.count ? zoom : 0;
    const view = {
        zoom: top,
        chosen,
        searching: q !== "",
        found: (node) => flame.name(node).toLowerCase().includes(words_),
        tint,
    };
    const height = Math.min(3000, (flame.deepest + 1) * ROW + 4);
    useEffect(() => {
        const element = canvas.current;
        const resized = new ResizeObserver(() => setSize(element.clientWidth));
        const again = () => themed((n) => n + 1);
        const theme = matchMedia("(prefers-color-scheme: dark)");
        resized.observe(element);
        theme.addEventListener("change", again);
        addEventListener("theme", again);
        return () => {
            resized.disconnect();
            theme.removeEventListener("change", again);
            removeEventListener("theme", again);
        };
    }, []);
    useEffect(() => {
        const element = canvas.current;
        const context = element.getContext("2d");
        if (!size || !context)
            return;
        const ratio = devicePixelRatio || 1;
        element.width = size * ratio;
        element.height = height * ratio;
        element.style.height = `${height}px`;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        painter.current.draw(context, size, height, flame, view, paintOf(element));
    });
    const under = (event) => nodeAt(flame, view, size, event.offsetX, event.offsetY);
    const press = (event) => {
        if (event.key.startsWith("Arrow"))
            setChosen(step(flame, chosen, event.key));
        else if (event.key === "Enter" && chosen >= 0)
            setZoom(chosen);
        else if (event.key === "Escape")
            setZoom(0);
        else
            return;
        event.preventDefault();
        event.stopPropagation();
    };
    const found = q ? share(flame, view) : 0;
    return (h("div", { "data-changes": changes },
        h("canvas", { ref: canvas, class: "flame", tabIndex: 0, role: "img", "aria-label": "Flame graph. Arrows walk, Enter zooms, Escape shows all; the table below has the same.", onMouseMove: (event) => setChosen(under(event)), onClick: (event) => setZoom(Math.max(0, under(event))), onKeyDown: press }),
        h("p", { class: "told", "aria-live": "polite" }, words(flame, chosen, unit) || (q ? `found: ${percent(found)}` : "\u00a0"))));
}
function share(flame, view) {
    const inside = new Uint8Array(flame.count);
    let sum = 0;
    for (let i = 1; i < flame.count; i++) {
        const above = inside[flame.parent[i]];
        inside[i] = above || view.found(i) ? 1 : 0;
        if (inside[i] && !above)
            sum += flame.total[i];
    }
    return sum / (flame.total[0] || 1);
}
