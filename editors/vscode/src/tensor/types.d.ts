/* What the tensor view's frame (src/webview/tensor.ts) asks for, and what it draws. */

/** The visible part of an array: the index of the dimensions before the last two, then a window of cells. */
export interface Part {
  readonly index: readonly number[];
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

export interface Picture {
  readonly rows: number;
  readonly columns: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly cells: string; // two hexadecimal digits each; ff: not finite
}

export interface Statistics {
  readonly sampled: number;
  readonly nan: number;
  readonly infinite: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly mean: number | null;
  readonly deviation: number | null;
  readonly bins: readonly number[];
}

export interface View {
  readonly dtype: string;
  readonly device: string;
  readonly grad: boolean;
  readonly shape: readonly number[];
  readonly elements: number;
  readonly rows: number;
  readonly columns: number;
  readonly row: number;
  readonly column: number;
  readonly table: readonly (readonly string[])[];
  readonly picture: Picture;
  readonly statistics: Statistics;
}
