import { h, Fragment } from "./preact.js";
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import { ask, askJson, at } from "./net.js";
import { count, duration, number, percent, plain } from "./format.js";
import { set } from "./place.js";
import { Flame } from "./flame.js";
import { FlameView } from "./flame_view.js";
import { Functions, SaveAs } from "./profile.js";
import { state } from "./watch.js";
import { hidden } from "./editor.js";
import { CoverageBar } from "./verdict.js";
import { ranksIn } from "./job_list.js";
import { Filter, Loading, Switch, Table, Trouble } from "./parts.js";
const SECONDS = 3;
const FORMATS = ["flamegraph", "collapsed", "pprof"];
class Sum {
    flame = new Flame();
    samples = 0;
    seconds = 0;
    coverage = null;
    frames = new Map();
    nodes = new Map();
    ranks = new Map();
    frameOf(frame) {
        const key = `${frame.kind}\n${frame.name}\n${frame.file}\n${frame.line}`;
        const known = this.frames.get(key);
        if (known !== undefined)
            return known;
        this.frames.set(key, this.flame.frames.length);
        return this.flame.frames.push(frame) - 1;
    }
    nodeOf(parent, frame) {
        const key = `${parent} ${frame}`;
        const known = this.nodes.get(key);
        if (known !== undefined)
            return known;
        const made = this.flame.addNode(parent, frame);
        this.nodes.set(key, made);
        return made;
    }
    rankOf(rank) {
        const known = this.ranks.get(rank);
        if (known !== undefined)
            return known;
        this.ranks.set(rank, this.flame.threads.length);
        return this.flame.threads.push({ id: rank, name: "rank", rank }) - 1;
    }
    add(told) {
        const frames = told.frames.map((frame) => this.frameOf(frame));
        const nodes = [0];
        told.nodes.forEach(([parent, frame], i) => i && nodes.push(this.nodeOf(nodes[parent], frames[frame])));
        const ranks = told.threads.map((thread) => this.rankOf(thread.rank));
        for (const [thread, node, samples] of told.weights) {
            const rank = ranks[thread];
            const to = nodes[node];
            this.flame.setWeight(rank, to, this.flame.weightOf(rank, to) + samples);
        }
        for (const rank of ranksIn(told.coverage.answered))
            this.rankOf(rank);
        this.samples += told.samples;
        this.seconds += told.seconds;
        this.coverage = told.coverage;
    }
}
function useSum(target, native, mode) {
    const [round, setRound] = useState(0);
    const [paused, setPaused] = useState(false);
    const [error, setError] = useState(null);
    const [, again] = useState(0);
    const sum = useRef(new Sum());
    const held = useRef(false);
    held.current = paused;
    useEffect(() => {
        const mine = new Sum();
        const abort = new AbortController();
        sum.current = mine;
        setError(null);
        const words = { seconds: String(SECONDS), mode, ...(native ? { native: "1" } : {}) };
        const loop = async () => {
            while (!abort.signal.aborted) {
                try {
                    if (!hidden() && !state.frozen && !held.current) {
                        mine.add(await askJson(at(target, "profile", words), { signal: abort.signal, watches: true }));
                        setError(null);
                        again((n) => n + 1);
                        continue;
                    }
                }
                catch (failed) {
                    if (abort.signal.aborted)
                        return;
                    setError(failed);
                }
                await new Promise((done) => setTimeout(done, 1000));
            }
        };
        void loop();
        return () => abort.abort();
    }, [target, native, mode, round]);
    return { sum: sum.current, error, paused, pause: () => setPaused(!paused), restart: () => (setPaused(false), setRound((n) => n + 1)) };
}
function middle(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
const FEW = 20;
export function byRank(flame) {
    const inside = flame.threads.map(() => new Map());
    const all = flame.threads.map(() => 0);
    for (let node = 1; node < flame.count; node++) {
        if (!flame.threads.some((_, i) => flame.weightOf(i, node)))
            continue;
        const names = new Set();
        for (let at = node; at > 0; at = flame.parent[at])
            names.add(flame.functionOf(at));
        flame.threads.forEach((_, i) => {
            const weight = flame.weightOf(i, node);
            if (!weight)
                return;
            all[i] += weight;
            for (const name of names)
                inside[i].set(name, (inside[i].get(name) ?? 0) + weight);
        });
    }
    const counted = flame.threads.map((_, i) => i).filter((i) => all[i] >= FEW);
    const share = (i, name) => (inside[i].get(name) ?? 0) / (all[i] || 1);
    const names = [...new Set(inside.flatMap((mine) => [...mine.keys()]))];
    const most = new Map(names.map((name) => [name, middle(counted.map((i) => share(i, name)))]));
    const rows = flame.threads.map((thread, index) => {
        const apart = (name) => share(index, name) - (most.get(name) ?? 0);
        const mine = [...inside[index].keys()];
        const name = mine.reduce((best, one) => (apart(one) > apart(best) + 0.01 ? one : best), mine[0] ?? "");
        return { rank: thread.id, index, samples: all[index], name: name.split("\n")[0], share: share(index, name), most: most.get(name) ?? 0 };
    });
    return rows.sort((a, b) => b.share - b.most - (a.share - a.most) || a.rank - b.rank);
}
const FAR = 0.2;
const isOdd = (one) => one.samples >= FEW && one.share - one.most > FAR;
function Ranks({ rows, only, choose }) {
    const columns = [
        {
            name: "Rank",
            right: true,
            cell: (one) => (h("button", { type: "button", class: "bare", "aria-pressed": only === one.index, onClick: () => choose(only === one.index ? -1 : one.index) }, one.rank)),
        },
        { name: "Samples", right: true, cell: (one) => number(one.samples) },
        { name: "More than most in", cell: (one) => h("span", { class: "fname" }, plain(one.name, 80)) },
        { name: "of its time", right: true, cell: (one) => percent(one.share) },
        { name: "of that of most", right: true, cell: (one) => h("span", { class: isOdd(one) ? "bad" : "quiet" }, percent(one.most)) },
    ];
    const odd = rows.filter(isOdd).length;
    return (h("section", null,
        h("h2", null,
            "Ranks ",
            rows.length > 1 && h("span", { class: "quiet" }, odd ? `${odd} of ${rows.length} elsewhere than most` : "all spend their time alike")),
        h(Table, { label: "Time of the ranks", columns: columns, rows: rows.slice(0, 64) }),
        rows.length > 64 && h("p", { class: "quiet" },
            "The 64 of ",
            rows.length,
            " ranks that differ the most.")));
}
function Files({ target, native, mode }) {
    const load = (format) => ask(at(target, "profile", { seconds: "5", format, mode, ...(native ? { native: "1" } : {}) }), { accept: "*/*", watches: true });
    return h(SaveAs, { words: "Save 5 s as", formats: FORMATS, name: `profile-${target.slice(1)}`, load: load });
}
export function JobProfile({ target, place }) {
    const native = place.params["native"] === "1";
    const mode = place.params["mode"] ?? "active";
    const q = place.params["q"] ?? "";
    const { sum, error, paused, pause, restart } = useSum(target, native, mode);
    const [only, setOnly] = useState(-1);
    const { flame, samples, coverage } = sum;
    useMemo(() => {
        flame.show(only < flame.threads.length ? only : -1);
        flame.unsort();
        if (paused)
            flame.sort();
        flame.layOut();
    }, [flame, samples, only, paused]);
    const rows = useMemo(() => byRank(flame), [flame, samples]);
    const rank = flame.threads[only]?.id;
    const idle = coverage !== null && only < 0 && !flame.total[0];
    return (h(Fragment, null,
        h("h1", null,
            "Profile of ",
            plain(target, 80)),
        h("div", { class: "tools" },
            h("button", { type: "button", class: "main", onClick: pause }, paused ? "Go on" : "Pause"),
            h("button", { type: "button", onClick: restart }, "Begin anew"),
            h(Filter, { label: "Function", value: q, set: (q) => set({ q }) }),
            h("label", { class: "switch" },
                "Time",
                " ",
                h("select", { value: mode, onChange: (event) => set({ mode: event.currentTarget.value }) },
                    h("option", { value: "active" }, "threads that do something"),
                    h("option", { value: "wall" }, "all, waiting ones too"),
                    h("option", { value: "cpu" }, "on a CPU"),
                    h("option", { value: "gil" }, "with the GIL"))),
            h(Switch, { label: "native", on: native, set: (on) => set({ native: on ? "1" : "" }), hint: "C and C++ frames, too" }),
            h(Files, { target: target, native: native, mode: mode })),
        h(Trouble, { error: error }),
        coverage && h(CoverageBar, { told: coverage }),
        !coverage && !error && h(Loading, null),
        h("p", { class: "quiet", role: "status" },
            coverage ? `${count(samples, "sample")} of ${count(flame.threads.length, "rank")} in ${duration(sum.seconds)}` : "sampling …",
            paused && ", paused",
            rank !== undefined && `; shown: rank ${rank}`),
        idle && (h("p", { class: "banner" },
            "All threads of these ranks wait.",
            " ",
            h("button", { type: "button", onClick: () => set({ mode: "wall" }) }, "Show where they wait"))),
        coverage && !idle && h(FlameView, { flame: flame, changes: samples, q: q, tint: null, unit: "samples" }),
        rows.length > 0 && !idle && h(Ranks, { rows: rows, only: only, choose: setOnly }),
        samples > 0 && !idle && h(Functions, { flame: flame, samples: samples, q: q.toLowerCase() })));
}
