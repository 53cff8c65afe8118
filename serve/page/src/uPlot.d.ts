// What the page uses of uPlot (vendor/uPlot.js).
export interface Series {
  label?: string;
  stroke?: string;
  width?: number;
  fill?: string;
  points?: { show: boolean };
  paths?: unknown;
  value?: (plot: unknown, value: number | null) => string;
}
export interface Options {
  width: number;
  height: number;
  series: Series[];
  scales?: Record<string, { time?: boolean }>;
  axes?: { stroke?: string; grid?: { stroke: string }; size?: number; values?: (plot: unknown, splits: number[]) => string[] }[];
  legend?: { show?: boolean; live?: boolean };
  cursor?: { drag?: { x: boolean; y: boolean } };
}
export default class uPlot {
  static readonly paths: { bars: (options: { size: [number, number] }) => unknown };
  constructor(options: Options, data: (number | null)[][], parent: HTMLElement);
  setData(data: (number | null)[][]): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}
