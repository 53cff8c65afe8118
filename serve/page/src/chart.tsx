// A chart of columns, drawn by uPlot, which is loaded with the first one.
import { h } from "./preact.js";
import { useEffect, useRef } from "./hooks.js";
import type uPlot from "./uPlot.js";
import type { Series } from "./uPlot.js";
import { number } from "./format.js";

export interface Line {
  label: string;
  values: (number | null)[];
  value?: (value: number) => string;
  dots?: boolean;
}

interface ChartProps {
  label: string;
  x: number[];
  lines: Line[];
  time?: boolean; // x is seconds since the epoch
  bars?: boolean;
  height?: number;
  names?: string[]; // of x, for bars
}

let library: Promise<typeof import("./uPlot.js")> | null = null;

function load(): Promise<typeof import("./uPlot.js")> {
  if (!library) {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = new URL("uPlot.css", import.meta.url).href;
    document.head.append(sheet);
    library = import("./uPlot.js");
  }
  return library;
}

/** The colours of the page, as the canvas needs them. */
function colours(element: HTMLElement): { ink: string; grid: string; lines: string[] } {
  const made = document.createElement("i");
  element.append(made);
  const read = (name: string): string => {
    made.style.color = `var(${name})`;
    return getComputedStyle(made).color;
  };
  const found = { ink: read("--ink"), grid: read("--line"), lines: [1, 2, 3, 4, 5, 6].map((n) => read(`--c${n}`)) };
  made.remove();
  return found;
}

function series(one: Line, i: number, props: ChartProps, stroke: string, bars: unknown): Series {
  return {
    label: one.label,
    stroke,
    width: one.dots ? 0 : 1.5,
    ...(props.bars ? { fill: stroke, paths: bars } : {}),
    points: { show: one.dots ?? false },
    value: (_plot, value) => (value === null || value === undefined ? "–" : (props.lines[i]?.value ?? number)(value)),
  };
}

function make(Plot: typeof uPlot, element: HTMLElement, props: ChartProps): uPlot {
  const paint = colours(element);
  const first = props.lines[0]?.value;
  const axis = { stroke: paint.ink, grid: { stroke: paint.grid } };
  const bars = Plot.paths.bars({ size: [0.7, 60] });
  const names = props.names;
  return new Plot(
    {
      width: Math.max(200, element.clientWidth),
      height: props.height ?? 200,
      scales: { x: { time: props.time ?? false } },
      axes: [
        { ...axis, ...(names ? { values: (_plot: unknown, splits: number[]) => splits.map((at) => names[at] ?? "") } : {}) },
        { ...axis, size: 70, ...(first ? { values: (_plot: unknown, splits: number[]) => splits.map(first) } : {}) },
      ],
      series: [{ ...(names ? { value: (_plot: unknown, value: number | null) => (value === null ? "–" : (names[value] ?? "")) } : {}) }, ...props.lines.map((one, i) => series(one, i, props, paint.lines[i % 6]!, bars))],
      cursor: { drag: { x: true, y: false } },
    },
    [props.x, ...props.lines.map((one) => one.values)],
    element,
  );
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement | null>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shape = props.lines.map((one) => one.label).join("\n");
  useEffect(() => {
    let gone = false;
    const element = place.current!;
    const build = (module: typeof import("./uPlot.js")): void => {
      if (gone) return;
      plot.current?.destroy();
      plot.current = make(module.default, element, latest.current);
    };
    void load().then(build);
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, element.clientWidth), height: latest.current.height ?? 200 }));
    resized.observe(element);
    const themed = (): void => void load().then(build);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", themed);
    addEventListener("theme", themed);
    return () => {
      gone = true;
      resized.disconnect();
      theme.removeEventListener("change", themed);
      removeEventListener("theme", themed);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData([props.x, ...props.lines.map((one) => one.values)]));
  const last = props.lines.map((one) => `${one.label} ${(one.value ?? number)(one.values.findLast((value) => value !== null) ?? 0)}`).join(", ");
  return <div class="chart" role="img" aria-label={`${props.label}: ${last}`} ref={place} />;
}
