import { useEffect, useLayoutEffect, useState } from "./hooks.js";
import { net } from "./net.js";
import { state } from "./watch.js";
import { fragment, parse } from "./place.js";
import { hidden } from "./editor.js";
export function useWatch() {
    const [, again] = useState(0);
    useLayoutEffect(() => {
        const listener = () => again((n) => n + 1);
        state.listeners.add(listener);
        return () => void state.listeners.delete(listener);
    }, []);
}
export function usePlace() {
    const [place, setPlace] = useState(() => parse(fragment()));
    useLayoutEffect(() => {
        const listener = () => setPlace(parse(fragment()));
        addEventListener("hashchange", listener);
        return () => removeEventListener("hashchange", listener);
    }, []);
    return place;
}
export function usePolled(key, every, load) {
    const [answered, setAnswered] = useState({ key: "", value: null, error: null, millis: 0, at: 0 });
    const [round, setRound] = useState(0);
    useEffect(() => {
        if (!key)
            return;
        const abort = new AbortController();
        let timer = 0;
        const turn = async () => {
            if (!hidden() && !state.frozen) {
                const begin = performance.now();
                try {
                    const value = await load(abort.signal);
                    if (abort.signal.aborted)
                        return;
                    setAnswered({ key, value, error: null, millis: performance.now() - begin, at: Date.now() / 1000 });
                }
                catch (error) {
                    if (abort.signal.aborted)
                        return;
                    if (!net.lostAt || !every)
                        setAnswered((old) => ({ ...old, key, value: old.key === key ? old.value : null, error: error }));
                }
            }
            if (every)
                timer = setTimeout(() => void turn(), every * 1000);
        };
        void turn();
        return () => {
            abort.abort();
            clearTimeout(timer);
        };
    }, [key, round]);
    const fits = answered.key === key;
    return {
        value: fits ? answered.value : null,
        error: fits ? answered.error : null,
        millis: answered.millis,
        at: answered.at,
        again: () => setRound((n) => n + 1),
    };
}
