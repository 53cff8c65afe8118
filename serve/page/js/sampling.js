import { useEffect, useRef, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { Flame } from "./flame.js";
import { hasLive, subscribe } from "./live.js";
import { state } from "./watch.js";
import { hidden } from "./editor.js";
const SECONDS = 300;
export function add(flame, told) {
    flame.frames.length = told.first_frame;
    flame.frames.push(...told.frames);
    flame.threads.length = told.first_thread ?? flame.threads.length;
    flame.threads.push(...told.threads);
    told.nodes.forEach(([parent, frame], i) => {
        if (told.first_node + i === flame.count)
            flame.addNode(parent, frame);
    });
    for (const [thread, node, samples] of told.weights)
        if (node < flame.count)
            flame.setWeight(thread, node, samples);
}
export function addCollapsed(flame, known, text) {
    let all = 0;
    for (const line of text.split("\n")) {
        const cut = line.lastIndexOf(" ");
        const weight = Number(line.slice(cut + 1));
        if (cut < 1 || !Number.isFinite(weight))
            continue;
        let node = 0;
        for (const name of line.slice(0, cut).split(";")) {
            const key = `${node};${name}`;
            let next = known.get(key);
            if (next === undefined) {
                const [, func = name, file = "", line = ""] = /^(.*) \(([^()]*?)(?::(\d+))?\)$/.exec(name) ?? [];
                next = flame.addNode(node, flame.frames.push({ name: func, file, line: Number(line) || null, kind: line ? "python" : "native" }) - 1);
                known.set(key, next);
            }
            node = next;
        }
        flame.setWeight(0, node, flame.weightOf(0, node) + weight);
        all += weight;
    }
    return all;
}
function byIncrements(flame, target, native, mode, tell) {
    let stop = () => { };
    let gone = false;
    const take = (value) => {
        const told = value;
        add(flame, told);
        tell({ samples: told.samples, seconds: told.seconds, error: null });
    };
    const failed = (error) => tell({ samples: 0, seconds: 0, error });
    const listen = (words) => {
        if (!gone)
            stop = subscribe({ topic: "flame", every: 1, ...words }, { value: take, failed, pieces: true });
    };
    if (!has("/profiles")) {
        listen({ target, rate: 100, mode, native });
    }
    else {
        askJson("api/v1/profiles", { method: "POST", body: { target, seconds: SECONDS, rate: 100, mode, native } }).then((made) => {
            if (gone)
                void ask(`api/v1/profiles/${made.id}`, { method: "DELETE" }).catch(() => { });
            tell({ samples: 0, seconds: 0, id: made.id });
            listen({ profile: made.id });
        }, failed);
    }
    return () => {
        gone = true;
        stop();
    };
}
function byFiles(flame, target, native, mode, tell) {
    const abort = new AbortController();
    const known = new Map();
    const words = { seconds: "2", format: "collapsed", ...(native ? { native: "1" } : {}), ...(mode === "wall" ? { idle: "1" } : {}) };
    const loop = async () => {
        for (let samples = 0, seconds = 0; !abort.signal.aborted;) {
            if (hidden() || state.frozen) {
                await new Promise((done) => setTimeout(done, 500));
                continue;
            }
            try {
                const text = await (await ask(at(target, "profile", words), { signal: abort.signal, accept: "*/*" })).text();
                samples += addCollapsed(flame, known, text);
                seconds += 2;
                tell({ samples, seconds, error: null });
            }
            catch (error) {
                if (!abort.signal.aborted)
                    tell({ samples, seconds, error: error });
                return;
            }
        }
    };
    void loop();
    return () => abort.abort();
}
export function useFlame(target, native, mode) {
    const [round, setRound] = useState(0);
    const [paused, setPaused] = useState(false);
    const [told, setTold] = useState({ samples: 0, seconds: 0 });
    const flame = useRef(new Flame());
    const held = useRef(false);
    held.current = paused;
    const live = hasLive();
    useEffect(() => {
        const mine = new Flame();
        flame.current = mine;
        setTold({ samples: 0, seconds: 0 });
        if (target.startsWith("file:"))
            return;
        const tell = (change) => {
            if (!(held.current || state.frozen) || change.error)
                setTold((old) => ({ ...old, ...change }));
        };
        return (live ? byIncrements : byFiles)(mine, target, native, mode, tell);
    }, [target, native, mode, round]);
    return {
        flame: flame.current,
        samples: told.samples,
        seconds: told.seconds,
        error: told.error ?? null,
        id: told.id ?? "",
        paused,
        live,
        native,
        pause: () => setPaused(!paused),
        restart: () => (setPaused(false), setRound((n) => n + 1)),
    };
}
