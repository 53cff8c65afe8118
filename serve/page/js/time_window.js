import { h } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import { clock, duration } from "./format.js";
import { state } from "./watch.js";
const WIDTHS = [60, 600, 3600, 86400, 604800];
const STEPS = 1000;
export function useTimeWindow() {
    const [width, setWidth] = useState(600);
    const [end, setEnd] = useState(null);
    const now = useRef(0);
    if (!state.frozen || !now.current)
        now.current = Date.now() / 1000;
    const until = end ?? now.current;
    return { from: until - width, until, live: end === null, width, setWidth, setEnd };
}
export function TimeSlider({ window, first }) {
    const now = Date.now() / 1000;
    const oldest = Math.min(first, now - 1);
    const latest = oldest + Math.min(window.width, (now - oldest) / 10);
    const place = window.live ? STEPS : Math.round((STEPS * (window.until - latest)) / (now - latest));
    const move = (at) => window.setEnd(at >= STEPS ? null : latest + ((now - latest) * at) / STEPS);
    return (h("div", { class: "tools moments" },
        h("label", { class: "switch" },
            "Show",
            " ",
            h("select", { value: window.width, onChange: (event) => window.setWidth(Number(event.currentTarget.value)) }, WIDTHS.map((one) => (h("option", { value: one }, one === 60 ? "1 min" : duration(one)))))),
        h("label", { class: "slider" },
            h("span", null, window.live ? (state.frozen ? "frozen" : "now") : `until ${clock(window.until)}`),
            h("input", { type: "range", min: 0, max: STEPS, value: Math.max(0, Math.min(STEPS, place)), disabled: now - oldest < 3, "aria-label": `End of what is shown, since ${clock(oldest)}`, "aria-valuetext": window.live ? "now" : clock(window.until), onInput: (event) => move(Number(event.currentTarget.value)) }),
            h("span", { class: "quiet" },
                "recorded since ",
                clock(oldest))),
        !window.live && (h("button", { type: "button", onClick: () => window.setEnd(null) }, "Back to now"))));
}
