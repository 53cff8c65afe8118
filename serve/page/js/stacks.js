import { h, Fragment } from "./preact.js";
import { useMemo, useRef, useState } from "./hooks.js";
import { askJson, at, has } from "./net.js";
import { set } from "./place.js";
import { count, duration, plain } from "./format.js";
import { frameName, framePlace, framesOf, groups, metAgain, sameStack, since, threadState } from "./looks.js";
import { note, STUCK, watched } from "./watch.js";
import { usePolled, useWatch } from "./polled.js";
import { hasLive, useLive } from "./live.js";
import { Empty, Filter, Loading, Switch, Trouble } from "./parts.js";
import { fits, FrameList } from "./frames.js";
import { RankStacks, ranksOf } from "./ranks.js";
import { compare, Difference, Moments } from "./moments.js";
import { useLocals } from "./locals.js";
const KEPT = 600;
function ThreadWords({ target, stacks, thread }) {
    const seconds = since.of(target, stacks, thread);
    return (h(Fragment, null,
        h("b", null, plain(thread.name ?? "thread", 60)),
        " ",
        h("span", { class: "quiet" }, thread.id),
        " ",
        h("span", { class: thread.gil === "holding" ? "chip good" : "chip" }, threadState(thread)),
        thread.unstable && h("span", { class: "chip" }, "unstable"),
        h("span", { class: "since" + (seconds >= STUCK ? " bad" : "") }, seconds < 1 ? "moving" : `unchanged for ${duration(seconds)}`)));
}
function GroupBox({ shown, group, open }) {
    const { stacks, target, id } = shown;
    const first = group.threads[0];
    const frames = framesOf(stacks, first);
    const longest = Math.min(...group.threads.map((one) => since.of(id, stacks, one)));
    return (h("details", { class: "group" + (longest >= STUCK && group.first ? " standing" : ""), open: open },
        h("summary", null,
            group.threads.length === 1 ? (h(ThreadWords, { target: id, stacks: stacks, thread: first })) : (h(Fragment, null,
                h("b", null, count(group.threads.length, "thread")),
                " ",
                h("span", { class: "quiet names" },
                    plain(group.threads
                        .slice(0, 4)
                        .map((one) => one.name ?? one.id)
                        .join(", "), 90),
                    group.threads.length > 4 && " …"),
                h("span", { class: "chip" }, threadState(first)),
                h("span", { class: "since" }, longest < 1 ? "moving" : `all unchanged for ${duration(longest)}`))),
            h("span", { class: "top" }, frames[0] ? plain(frameName(frames[0]), 60) : "no frame")),
        !frames.length && h("p", { class: "quiet" }, "This thread runs no Python now."),
        h(FrameList, { frames: frames, target: target, q: shown.q, locals: shown.locals?.get(first.id) ?? null })));
}
function ThreadBox({ shown, thread, open }) {
    return h(GroupBox, { shown: shown, open: open, group: { stack: thread.stack, threads: [thread], first: thread.id === shown.pid } });
}
function matches(stacks, threads, q) {
    const named = threads.some((one) => `${one.name ?? ""} ${one.id}`.toLowerCase().includes(q));
    return !q || named || framesOf(stacks, threads[0]).some((one) => fits(one, q));
}
function List({ shown, merged }) {
    const { stacks, q, pid } = shown;
    const all = groups(stacks, pid).filter((one) => matches(stacks, one.threads, q));
    const threads = stacks.threads.filter((one) => matches(stacks, [one], q));
    if (!(merged ? all : threads).length)
        return h(Empty, null,
            "No thread fits \u201C",
            plain(q),
            "\u201D.");
    return merged ? (h(Fragment, null, all.map((one, i) => h(GroupBox, { key: sameStack(stacks, one.stack), shown: shown, group: one, open: i < 3 || q !== "" })))) : (h(Fragment, null, threads.map((one, i) => h(ThreadBox, { key: one.id, shown: shown, thread: one, open: i < 3 || q !== "" }))));
}
function asText(stacks, pid) {
    return groups(stacks, pid)
        .map((group) => {
        const who = group.threads.map((one) => `${one.name ?? "thread"} ${one.id} (${threadState(one)})`).join(", ");
        return [who, ...framesOf(stacks, group.threads[0]).map((one) => `    ${frameName(one)} ${framePlace(one)}`)].map((one) => plain(one, 2000)).join("\n");
    })
        .join("\n\n");
}
function useLooks(target, native) {
    const looks = useRef({ key: "", all: [] });
    const [, again] = useState(0);
    const key = `${target} ${native}`;
    if (looks.current.key !== key)
        looks.current = { key, all: [] };
    const live = hasLive();
    const take = (stacks) => {
        note(target, stacks);
        const all = looks.current.all;
        all.push({ time: stacks.time, stacks });
        if (all.length > KEPT)
            all.shift();
        again((n) => n + 1);
    };
    const still = (time) => {
        const last = looks.current.all.at(-1);
        if (last)
            take(metAgain(last.stacks, time));
    };
    const failed = useLive(live ? { topic: "stacks", target, every: 1, ...(native ? { native: true } : {}) } : null, (value) => take(value), still);
    const polled = usePolled(live ? "" : key, 1, async (signal) => {
        const stacks = await askJson(at(target, "stacks", native ? { native: "1" } : {}), { signal });
        take(stacks);
        return stacks;
    });
    return { looks: looks.current.all, error: failed ?? polled.error, millis: polled.millis };
}
function ProcessStacks({ target, place }) {
    useWatch();
    const native = place.params["native"] === "1";
    const merged = place.params["threads"] !== "1";
    const wantsLocals = place.params["locals"] === "1";
    const q = (place.params["q"] ?? "").toLowerCase();
    const { looks, error } = useLooks(target, native);
    const locals = useLocals(wantsLocals ? target : "", native);
    const [then, setThen] = useState(null);
    const [marks, setMarks] = useState({ a: null, b: null });
    const look = then ?? looks.at(-1) ?? null;
    const one = watched(target);
    const difference = useMemo(() => (marks.a && marks.b ? compare(marks.a.stacks, marks.b.stacks) : null), [marks]);
    const shown = look && { target, id: one?.process.id ?? target, pid: one?.process.pid ?? look.stacks.threads[0]?.id ?? 0, stacks: look.stacks, q, locals: then ? null : locals.value };
    return (h(Fragment, null,
        h("div", { class: "tools" },
            h(Filter, { label: "Thread or frame", value: place.params["q"] ?? "", set: (q) => set({ q }) }),
            h(Switch, { label: "each thread", on: !merged, set: (on) => set({ threads: on ? "1" : "" }), hint: "instead of groups of equal stacks" }),
            h(Switch, { label: "native", on: native, set: (on) => set({ native: on ? "1" : "" }), hint: "C and C++ frames, too; stops single threads for about 0.1 ms" }),
            h(Switch, { label: "variables", on: wantsLocals, set: (on) => set({ locals: on ? "1" : "" }) }),
            h("button", { type: "button", disabled: !look, onClick: () => look && void navigator.clipboard.writeText(asText(look.stacks, shown?.pid ?? 0)) }, "Copy as text")),
        h(Moments, { target: has("/p/{}/history") ? target : "", looks: looks, then: then, setThen: setThen, marks: marks, setMarks: setMarks, now: looks.at(-1) ?? null }),
        h(Trouble, { error: error ?? locals.error }),
        look?.stacks.warning && h("p", { class: "banner" }, plain(look.stacks.warning)),
        difference && h(Difference, { changes: difference }),
        !shown && !error && h(Loading, null),
        shown && !difference && h(List, { shown: shown, merged: merged })));
}
export function StacksScreen({ target, place }) {
    useWatch();
    const ranks = ranksOf(target);
    const all = place.params["ranks"] === "1" && ranks.length > 0;
    return (h(Fragment, null,
        h("h1", null, "Stacks"),
        ranks.length > 1 && (h("div", { class: "tools" },
            h(Switch, { label: `all ${ranks.length} ranks in one tree`, on: all, set: (on) => set({ ranks: on ? "1" : "" }), hint: "main threads whose stacks begin alike share their branches" }))),
        all ? h(RankStacks, { ranks: ranks, place: place }) : h(ProcessStacks, { target: target, place: place })));
}
