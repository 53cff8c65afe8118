// Which time the charts of a screen show: the last minutes, live, or minutes of the past by a slider.
import { h } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import { clock, duration } from "./format.js";
import { state } from "./watch.js";

export interface Span {
  from: number; // s since the epoch
  until: number;
  live: boolean;
}

const WIDTHS = [60, 600, 3600, 86400, 604800];
const STEPS = 1000;

export interface TimeWindow extends Span {
  width: number;
  setWidth: (seconds: number) => void;
  setEnd: (end: number | null) => void;
}

export function useTimeWindow(): TimeWindow {
  const [width, setWidth] = useState(600);
  const [end, setEnd] = useState<number | null>(null);
  const now = useRef(0);
  if (!state.frozen || !now.current) now.current = Date.now() / 1000;
  const until = end ?? now.current;
  return { from: until - width, until, live: end === null, width, setWidth, setEnd };
}

/** first: the earliest that there is, s since the epoch. */
export function TimeSlider({ window, first }: { window: TimeWindow; first: number }) {
  const now = Date.now() / 1000;
  const oldest = Math.min(first, now - 1);
  const latest = oldest + Math.min(window.width, (now - oldest) / 10); // where the first window ends
  const place = window.live ? STEPS : Math.round((STEPS * (window.until - latest)) / (now - latest));
  const move = (at: number): void => window.setEnd(at >= STEPS ? null : latest + ((now - latest) * at) / STEPS);
  return (
    <div class="tools moments">
      <label class="switch">
        Show{" "}
        <select value={window.width} onChange={(event: { currentTarget: HTMLSelectElement }) => window.setWidth(Number(event.currentTarget.value))}>
          {WIDTHS.map((one) => (
            <option value={one}>{one === 60 ? "1 min" : duration(one)}</option>
          ))}
        </select>
      </label>
      <label class="slider">
        <span>{window.live ? (state.frozen ? "frozen" : "now") : `until ${clock(window.until)}`}</span>
        <input
          type="range"
          min={0}
          max={STEPS}
          value={Math.max(0, Math.min(STEPS, place))}
          disabled={now - oldest < 3}
          aria-label={`End of what is shown, since ${clock(oldest)}`}
          aria-valuetext={window.live ? "now" : clock(window.until)}
          onInput={(event: { currentTarget: HTMLInputElement }) => move(Number(event.currentTarget.value))}
        />
        <span class="quiet">recorded since {clock(oldest)}</span>
      </label>
      {!window.live && (
        <button type="button" onClick={() => window.setEnd(null)}>
          Back to now
        </button>
      )}
    </div>
  );
}
