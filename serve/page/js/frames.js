import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { frameName, framePlace } from "./looks.js";
import { FrameLine, OpenSource } from "./parts.js";
import { SourceLines } from "./source.js";
import { Locals } from "./locals.js";
function fold(frames) {
    const out = [];
    frames.forEach((frame, depth) => {
        const last = out.at(-1);
        if (last && last.frame.name === frame.name && last.frame.file === frame.file && last.frame.line === frame.line)
            last.times++;
        else
            out.push({ frame, times: 1, depth });
    });
    return out;
}
export const fits = (frame, words) => `${frameName(frame)} ${framePlace(frame)}`.toLowerCase().includes(words);
export function FrameList({ frames, target, q, locals }) {
    const [open, setOpen] = useState(-1);
    return (h("ol", { class: "frames" }, fold(frames).map(({ frame, times, depth }) => (h("li", { class: q && fits(frame, q) ? "found" : undefined },
        h("button", { type: "button", class: "bare", "aria-expanded": open === depth, onClick: () => setOpen(open === depth ? -1 : depth) },
            h(FrameLine, { frame: frame, times: times })),
        " ",
        h(OpenSource, { target: target, frame: frame }),
        open === depth && h(SourceLines, { target: target, frame: frame }),
        locals && h(Locals, { values: locals[depth] ?? [] }))))));
}
