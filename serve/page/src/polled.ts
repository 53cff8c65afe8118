// Hooks of the screens: the page's state, and answers that are asked for again and again.
import { useEffect, useLayoutEffect, useState } from "./hooks.js";
import { net } from "./net.js";
import { state } from "./watch.js";
import { fragment, parse, type Place } from "./place.js";
import { hidden } from "./editor.js";

/** Draw again when the watched processes, the server's state or the freeze change. */
export function useWatch(): void {
  const [, again] = useState(0);
  useLayoutEffect(() => {
    const listener = (): void => again((n) => n + 1);
    state.listeners.add(listener);
    return () => void state.listeners.delete(listener);
  }, []);
}

/** The address that is shown.  It listens before any other event: one between the first picture and an effect would be lost. */
export function usePlace(): Place {
  const [place, setPlace] = useState(() => parse(fragment()));
  useLayoutEffect(() => {
    const listener = (): void => setPlace(parse(fragment()));
    addEventListener("hashchange", listener);
    return () => removeEventListener("hashchange", listener);
  }, []);
  return place;
}

export interface Answered<T> {
  value: T | null;
  error: Error | null;
  millis: number;
  at: number; // s since the epoch
}

/**
 * What `load` gives, each `every` seconds (0: once), while the page is seen and not frozen; anew when `key` changes.
 * key "": nothing is asked.
 */
export function usePolled<T>(key: string, every: number, load: (signal: AbortSignal) => Promise<T>): Answered<T> & { again: () => void } {
  const [answered, setAnswered] = useState<Answered<T> & { key: string }>({ key: "", value: null, error: null, millis: 0, at: 0 });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!key) return;
    const abort = new AbortController();
    let timer = 0;
    const turn = async (): Promise<void> => {
      if (!hidden() && !state.frozen) {
        const begin = performance.now();
        try {
          const value = await load(abort.signal);
          if (abort.signal.aborted) return;
          setAnswered({ key, value, error: null, millis: performance.now() - begin, at: Date.now() / 1000 });
        } catch (error) {
          if (abort.signal.aborted) return;
          if (!net.lostAt || !every)
            setAnswered((old) => ({ ...old, key, value: old.key === key ? old.value : null, error: error as Error }));
        }
      }
      if (every) timer = setTimeout(() => void turn(), every * 1000);
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
