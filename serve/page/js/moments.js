import { h, Fragment } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { askJson, at } from "./net.js";
import { clock, count, duration } from "./format.js";
import { framesOf } from "./looks.js";
import { FrameLine } from "./parts.js";
export function unroll(kept) {
    const now = new Map();
    return kept.moments.map((moment) => {
        for (const [thread, stack] of moment.stacks)
            if (stack < 0)
                now.delete(thread);
        for (const [thread, stack] of moment.stacks)
            if (stack >= 0)
                now.set(thread, stack);
        const threads = [...now].map(([thread, stack]) => {
            const known = kept.threads[thread] ?? { id: 0, name: null };
            return { id: known.id, name: known.name, state: null, stack, active: false, gil: null, unstable: false, since: null };
        });
        const stacks = { time: moment.time, frames: kept.frames, stacks: kept.stacks, threads, warning: null };
        return { time: moment.time, stacks };
    });
}
export function Moments({ target, looks, now, then, setThen, marks, setMarks }) {
    const [kept, setKept] = useState([]);
    useEffect(() => {
        if (!target)
            return;
        const abort = new AbortController();
        askJson(at(target, "history", { after: "-600" }), { signal: abort.signal }).then((history) => setKept(unroll(history)), () => setKept([]));
        return () => abort.abort();
    }, [target, then === null]);
    const begun = kept.at(-1)?.time ?? 0;
    const all = [...kept, ...looks.filter((one) => one.time > begun)];
    const shown = then ?? now;
    const position = then ? Math.max(0, all.findIndex((one) => one.time >= then.time)) : all.length - 1;
    const choose = (index) => setThen(index >= all.length - 1 ? null : (all[index] ?? null));
    const span = all.length > 1 ? all.at(-1).time - all[0].time : 0;
    return (h("div", { class: "tools moments" },
        h("label", { class: "slider" },
            h("span", null, then ? clock(then.time) : "now"),
            h("input", { type: "range", min: 0, max: Math.max(0, all.length - 1), value: position, "aria-label": `Moment, of the last ${duration(span)}`, onInput: (event) => choose(Number(event.currentTarget.value)) }),
            h("span", { class: "quiet" },
                "last ",
                duration(span))),
        h("button", { type: "button", disabled: !shown, onClick: () => setMarks({ a: shown, b: null }) },
            "Mark A",
            marks.a && " " + clock(marks.a.time)),
        h("button", { type: "button", disabled: !shown || !marks.a, onClick: () => setMarks({ ...marks, b: shown }) }, "Compare with A"),
        (then || marks.b) && (h("button", { type: "button", onClick: () => (setThen(null), setMarks({ a: null, b: null })) }, "Back to now"))));
}
function sizes(stacks) {
    const out = new Map();
    for (const thread of stacks.threads) {
        const frames = framesOf(stacks, thread);
        const key = frames.map((one) => `${one.name} ${one.file} ${one.line}`).join("\n");
        const group = out.get(key) ?? { frames, ids: new Set() };
        group.ids.add(thread.id);
        out.set(key, group);
    }
    return out;
}
const text = (frame) => (frame ? `${frame.name} ${frame.file} ${frame.line}` : "");
function against(frames, other) {
    let same = 0;
    while (same < frames.length && text(frames.at(-1 - same)) === text(other.at(-1 - same)))
        same++;
    return frames.map((frame, i) => ({ frame, same: i >= frames.length - same }));
}
export function compare(a, b) {
    const before = sizes(a);
    const after = sizes(b);
    const changes = [];
    const where = (ids, all) => [...all.values()].find((one) => [...one.ids].some((id) => ids.has(id)))?.frames ?? [];
    for (const [key, group] of after) {
        const old = before.get(key)?.ids.size ?? 0;
        if (!old)
            changes.push({ what: "appeared", threads: group.ids.size, frames: against(group.frames, where(group.ids, before)) });
        else if (old !== group.ids.size)
            changes.push({ what: `${old} → ${group.ids.size}`, threads: group.ids.size, frames: group.frames.map((frame) => ({ frame, same: true })) });
    }
    for (const [key, group] of before)
        if (!after.has(key))
            changes.push({ what: "vanished", threads: group.ids.size, frames: against(group.frames, where(group.ids, after)) });
    return changes;
}
export function Difference({ changes }) {
    if (!changes.length)
        return h("p", { class: "banner" }, "Between A and B no stack has changed.");
    return (h(Fragment, null, changes.map((one) => (h("details", { class: "group " + (one.what === "appeared" ? "appeared" : one.what === "vanished" ? "vanished" : ""), open: true },
        h("summary", null,
            h("b", null, one.what),
            " ",
            count(one.threads, "thread")),
        h("ol", { class: "frames" }, one.frames.map(({ frame, same }) => (h("li", { class: same ? "same" : "differs" },
            h("span", { class: "bare" },
                h(FrameLine, { frame: frame })))))))))));
}
