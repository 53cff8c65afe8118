// What the page uses of uPlot (vendor/uPlot.js).
export interface Series {
  label?: string;
  stroke?: string;
  width?: number;
  fill?: string;
  points?: { show: boolean };
  paths?: unknown;
  value?: (plot: unknown, value: number | null, series: number, at: number | null) => string;
}
export interface Options {
  width: number;
  height: number;
  series: Series[];
  scales?: Record<string, { time?: boolean; range?: (plot: unknown, low: number, high: number) => [number, number] }>;
  bands?: { series: [number, number]; fill: string }[];
  axes?: { stroke?: string; grid?: { stroke: string; width: number }; ticks?: { stroke: string; width: number }; size?: number; values?: (plot: unknown, splits: number[]) => string[] }[];
  legend?: { show?: boolean; live?: boolean };
  cursor?: { drag?: { x: boolean; y: boolean }; sync?: { key: string } };
}
export default class uPlot {
  static readonly paths: { bars: (options: { size: [number, number] }) => unknown };
  constructor(options: Options, data: (number | null)[][], parent: HTMLElement);
  readonly cursor: { left?: number };
  setLegend(options: { idx: number }): void;
  setData(data: (number | null)[][]): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}
