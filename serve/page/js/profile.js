import { h, Fragment } from "./preact.js";
import { useMemo, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { set } from "./place.js";
import { count, duration, number, percent, plain } from "./format.js";
import { around, Flame, functions, inverted } from "./flame.js";
import { useFlame } from "./sampling.js";
import { FlameView } from "./flame_view.js";
import { usePolled } from "./polled.js";
import { Empty, Filter, save, Switch, Table, Trouble } from "./parts.js";
const FORMATS = ["speedscope", "flamegraph", "collapsed", "pprof", "perfetto", "chrome", "firefox", "heatmap"];
const ENDS = { flamegraph: "svg", collapsed: "txt", pprof: "pb.gz", perfetto: "pftrace", heatmap: "html" };
function columns(total, open) {
    return [
        { name: "Own", right: true, cell: (one) => percent(one.own / total) },
        { name: "Total", right: true, cell: (one) => percent(one.total / total) },
        {
            name: "Function",
            cell: (one) => (h("button", { type: "button", class: "bare fname", onClick: () => open(one) }, plain(one.name, 100))),
        },
        { name: "File", cell: (one) => h("span", { class: "fplace" }, plain(one.place, 120)) },
    ];
}
function Side({ title, rows, total, open }) {
    return (h("section", null,
        h("h2", null, title),
        rows.length ? h(Table, { label: title, columns: columns(total, open).slice(1), rows: rows }) : h("p", { class: "quiet" }, "none")));
}
export function Functions({ flame, samples, q }) {
    const [open, setOpen] = useState(null);
    const total = flame.total[0] || 1;
    const rows = useMemo(() => functions(flame), [flame, samples, flame.only]).filter((one) => one.name.toLowerCase().includes(q));
    const sides = open && around(flame, open.key);
    return (h(Fragment, null,
        open && sides && (h("section", { "aria-label": "Callers and callees" },
            h("h2", null,
                plain(open.name, 100),
                " ",
                h("button", { type: "button", onClick: () => setOpen(null) }, "Close")),
            h("div", { class: "cells" },
                h(Side, { title: "Called by", rows: sides.callers, total: total, open: setOpen }),
                h(Side, { title: "Calls", rows: sides.callees, total: total, open: setOpen })))),
        h("h2", null, "Functions"),
        h(Table, { label: "Functions", columns: columns(total, setOpen), rows: rows.slice(0, 40) })));
}
export function SaveAs({ words, formats, name, load }) {
    const [error, setError] = useState(null);
    const [busy, setBusy] = useState("");
    const take = async (format) => {
        setBusy(format);
        setError(null);
        try {
            save(`${name}.${ENDS[format] ?? "json"}`, "", await (await load(format)).blob());
        }
        catch (failed) {
            setError(failed);
        }
        setBusy("");
    };
    return (h(Fragment, null,
        h("label", { class: "switch" },
            busy ? `making ${busy} …` : words,
            " ",
            h("select", { value: "", disabled: busy !== "", onChange: (event) => void take(event.currentTarget.value) },
                h("option", { value: "" }, "choose"),
                formats.map((one) => (h("option", { value: one }, one))))),
        h(Trouble, { error: error })));
}
function Files({ target, sampling }) {
    const load = (format) => {
        const fresh = at(target, "profile", { seconds: "5", format, ...(sampling.native ? { native: "1" } : {}) });
        return ask(sampling.id ? `api/v1/profiles/${sampling.id}?format=${format}` : fresh, { accept: "*/*" });
    };
    return h(SaveAs, { words: sampling.id ? "Save as" : "Save 5 s as", formats: FORMATS, name: `profile-${target.split(".")[0]}`, load: load });
}
function compared(told) {
    const flame = new Flame();
    const before = new Flame();
    flame.frames = told.frames;
    told.nodes.forEach(([parent, frame], i) => {
        if (i)
            [flame, before].forEach((one) => one.addNode(parent, frame));
        flame.setWeight(0, i, told.after[i] ?? 0);
        before.setWeight(0, i, told.before[i] ?? 0);
    });
    flame.layOut();
    before.layOut();
    const share = (one, node, all) => one.total[node] / (all || 1);
    return { flame, tint: (node) => 4 * (share(flame, node, told.after_total) - share(before, node, told.before_total)) };
}
function Compare({ id }) {
    const saved = usePolled(has("/profiles") ? "profiles" : "", 5, async (signal) => (await askJson("api/v1/profiles", { signal })).profiles);
    const [other, setOther] = useState("");
    const told = usePolled(other && id ? `${id} ${other}` : "", 0, (signal) => askJson(`api/v1/profiles/${other}/diff/${id}`, { signal }));
    const made = useMemo(() => told.value && compared(told.value), [told.value]);
    const others = saved.value?.filter((one) => one.id !== id) ?? [];
    if (!id || !others.length)
        return null;
    return (h(Fragment, null,
        h("div", { class: "tools" },
            h("label", { class: "switch" },
                "Compare with",
                " ",
                h("select", { value: other, onChange: (event) => setOther(event.currentTarget.value) },
                    h("option", { value: "" }, "no other"),
                    others.map((one) => (h("option", { value: one.id },
                        new Date(one.started * 1000).toLocaleTimeString(),
                        " \u00B7 ",
                        plain(one.command ?? one.target, 50),
                        " \u00B7 ",
                        one.samples,
                        " samples")))))),
        h(Trouble, { error: told.error }),
        made && (h(Fragment, null,
            h("p", { class: "quiet" }, "Widths: now. Red: a larger share than in the other profile; blue: a smaller one."),
            h(FlameView, { flame: made.flame, changes: 0, q: "", tint: made.tint, unit: "samples" })))));
}
function Threads({ flame, only, choose }) {
    if (flame.threads.length < 2)
        return null;
    return (h("label", { class: "switch" },
        "Thread",
        " ",
        h("select", { value: only, onChange: (event) => choose(Number(event.currentTarget.value)) },
            h("option", { value: -1 },
                "all ",
                flame.threads.length),
            flame.threads.map((one, i) => (h("option", { value: i },
                plain(one.name ?? "thread", 40),
                " ",
                one.id))))));
}
export function ProfileScreen({ target, place }) {
    const native = place.params["native"] === "1";
    const mode = place.params["mode"] ?? "active";
    const q = place.params["q"] ?? "";
    const sampling = useFlame(target, native, mode);
    const [invert, setInvert] = useState(false);
    const [sorted, setSorted] = useState(false);
    const [only, setOnly] = useState(-1);
    const { flame, samples } = sampling;
    useMemo(() => {
        flame.show(only);
        flame.unsort();
        if (sorted || sampling.paused)
            flame.sort();
        flame.layOut();
    }, [flame, samples, only, sorted, sampling.paused]);
    const shown = useMemo(() => {
        if (!invert)
            return flame;
        const made = inverted(flame);
        made.sort();
        made.layOut();
        return made;
    }, [flame, invert, samples, only]);
    if (target.startsWith("file:"))
        return h(Empty, null, "A dump is one moment: there is nothing to sample. Its stacks are under Stacks.");
    return (h(Fragment, null,
        h("h1", null, "Profile"),
        h("div", { class: "tools" },
            h("button", { type: "button", class: "main", onClick: sampling.pause }, sampling.paused ? "Go on" : "Pause"),
            h("button", { type: "button", onClick: sampling.restart }, "Begin anew"),
            h(Filter, { label: "Function", value: q, set: (q) => set({ q }) }),
            h("label", { class: "switch" },
                "Time",
                " ",
                h("select", { value: mode, onChange: (event) => set({ mode: event.currentTarget.value }) },
                    h("option", { value: "active" }, "threads that do something"),
                    h("option", { value: "wall" }, "all, waiting ones too"),
                    sampling.live && h("option", { value: "cpu" }, "on a CPU"),
                    sampling.live && h("option", { value: "gil" }, "with the GIL"))),
            h(Switch, { label: "native", on: native, set: (on) => set({ native: on ? "1" : "" }), hint: "C and C++ frames, too" }),
            h(Switch, { label: "innermost first", on: invert, set: setInvert }),
            h(Switch, { label: "by weight", on: sorted, set: setSorted, hint: "else in the order of first appearance, so that nothing moves under the pointer" }),
            h(Threads, { flame: flame, only: only, choose: setOnly }),
            h(Files, { target: target, sampling: sampling })),
        h(Trouble, { error: sampling.error }),
        h("p", { class: "quiet", role: "status" },
            samples ? `${count(samples, "sample")} in ${duration(sampling.seconds)}, ${number(flame.count - 1)} nodes` : "sampling …",
            sampling.paused && ", paused"),
        h(FlameView, { flame: shown, changes: samples, q: q, tint: null, unit: "samples" }),
        h(Compare, { id: sampling.id }),
        samples > 0 && h(Functions, { flame: flame, samples: samples, q: q.toLowerCase() })));
}
