// A chart of columns, drawn by uPlot, which is loaded with the first one.
import { h } from "./preact.js";
import { useEffect, useRef } from "./hooks.js";
import type uPlot from "./uPlot.js";
import type { Series } from "./uPlot.js";
import { clock, number } from "./format.js";

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
  span?: [number, number]; // of x, where it is more than that of the values
  together?: string; // charts of that name have their cursors together
  band?: boolean; // the space between the first two lines is filled
  stacked?: boolean; // each line lies on the one before it
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

const STACKED = "b0"; // how much of a colour is left, as the last two digits of it
const BAND = "38";

/** "rgb(1, 2, 3)" with so much of it left. */
const faint = (colour: string, rest: string): string => colour.replace(/^rgb\((.*)\)$/, (_, parts: string) => "#" + parts.split(",").map((one) => Number(one).toString(16).padStart(2, "0")).join("") + rest);

function series(one: Line, i: number, latest: { current: ChartProps }, stroke: string, bars: unknown): Series {
  const { stacked, bars: hasBars } = latest.current;
  const show = one.value ?? number;
  return {
    label: one.label,
    stroke,
    width: one.dots ? 0 : stacked ? 1 : 1.5,
    ...(hasBars ? { fill: stroke, paths: bars } : stacked ? { fill: faint(stroke, STACKED) } : {}),
    points: { show: one.dots ?? false },
    value: (_plot, value, _series, at) => {
      const own = stacked && at !== null ? (latest.current.lines[i]?.values[at] ?? null) : value;
      return own === null || own === undefined ? "–" : show(own);
    },
  };
}

/** Columns as uPlot wants them; stacked ones are sums, the topmost first, so that the lower ones are drawn over it. */
function columns(props: ChartProps): (number | null)[][] {
  if (!props.stacked) return [props.x, ...props.lines.map((one) => one.values)];
  const sums: number[][] = [];
  props.lines.forEach((one, i) => sums.push(one.values.map((value, at) => (value ?? 0) + (sums[i - 1]?.[at] ?? 0))));
  return [props.x, ...sums.reverse()];
}

function make(Plot: typeof uPlot, element: HTMLElement, latest: { current: ChartProps }): uPlot {
  const props = latest.current;
  const paint = colours(element);
  const first = props.lines[0]?.value;
  const axis = { stroke: paint.ink, grid: { stroke: paint.grid, width: 1 }, ticks: { stroke: paint.grid, width: 1 } };
  const bars = Plot.paths.bars({ size: [0.7, 60] });
  const names = props.names;
  const lines = props.lines.map((one, i) => series(one, i, latest, paint.lines[i % 6]!, bars));
  return new Plot(
    {
      width: Math.max(200, element.clientWidth),
      height: props.height ?? 200,
      scales: { x: { time: props.time ?? false, ...(props.span ? { range: (_plot: unknown, low: number, high: number) => latest.current.span ?? [low, high] } : {}) } },
      axes: [
        { ...axis, ...(names ? { values: (_plot: unknown, splits: number[]) => splits.map((at) => names[at] ?? "") } : {}) },
        { ...axis, size: 70, ...(first ? { values: (_plot: unknown, splits: number[]) => splits.map(first) } : {}) },
      ],
      series: [{ ...(props.time ? { value: (_plot: unknown, value: number | null) => (value === null ? "–" : clock(value)) } : {}), ...(names ? { value: (_plot: unknown, value: number | null) => (value === null ? "–" : (names[value] ?? "")) } : {}) }, ...(props.stacked ? lines.reverse() : lines)],
      ...(props.band ? { bands: [{ series: [1, 2] as [number, number], fill: faint(paint.lines[0]!, BAND) }] } : {}),
      cursor: { drag: { x: true, y: false }, ...(props.together ? { sync: { key: props.together } } : {}) },
    },
    columns(props),
    element,
  );
}

/** The legend has the last values, unless the pointer is somewhere. */
function tellLast(plot: uPlot | null, props: ChartProps): void {
  if (plot && props.x.length && (plot.cursor.left ?? -1) < 0) plot.setLegend({ idx: props.x.length - 1 });
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
      plot.current = make(module.default, element, latest);
      tellLast(plot.current, latest.current);
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
  useEffect(() => {
    plot.current?.setData(columns(props));
    tellLast(plot.current, props);
  });
  const last = props.lines.map((one) => `${one.label} ${(one.value ?? number)(one.values.findLast((value) => value !== null) ?? 0)}`).join(", ");
  return <div class="chart" role="img" aria-label={`${props.label}: ${last}`} ref={place} />;
}
