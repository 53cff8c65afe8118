/*
 * Draws the tensor view.  Runs in the panel's page: tells the extension which part is wanted, and
 * draws what it answers (src/tensor/ask.ts has the shapes).
 */
interface Code {
  postMessage(message: unknown): void;
}
declare function acquireVsCodeApi(): Code;

interface PanelPart {
  index: number[];
  row: number;
  column: number;
  rows: number;
  columns: number;
}
interface PanelView {
  dtype: string;
  device: string;
  grad: boolean;
  shape: number[];
  elements: number;
  rows: number;
  columns: number;
  row: number;
  column: number;
  table: string[][];
  picture: { rows: number; columns: number; low: number | null; high: number | null; cells: string };
  statistics: {
    sampled: number;
    nan: number;
    infinite: number;
    low: number | null;
    high: number | null;
    mean: number | null;
    deviation: number | null;
    bins: number[];
  };
}

// stops of the colour scale: dark blue, blue-green, yellow
const SCALE: readonly (readonly [number, number, number])[] = [
  [26, 28, 84],
  [38, 110, 142],
  [60, 178, 122],
  [246, 226, 60],
];

const code = acquireVsCodeApi();
let part: PanelPart = { index: [], row: 0, column: 0, rows: 24, columns: 12 };
let view: PanelView | undefined;

function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`no ${id}`);
  return found;
}

function want(change: Partial<PanelPart>): void {
  part = { ...part, ...change };
  code.postMessage(part);
}

function short(value: number | null): string {
  return value === null ? '–' : Number(value.toPrecision(6)).toString();
}

function colour(level: number): readonly [number, number, number] {
  if (level === 255) return [200, 30, 30];
  const at = (level / 254) * (SCALE.length - 1);
  const from = SCALE[Math.floor(at)] ?? [0, 0, 0];
  const to = SCALE[Math.ceil(at)] ?? from;
  const share = at - Math.floor(at);
  const mix = (i: 0 | 1 | 2) => Math.round(from[i] + (to[i] - from[i]) * share);
  return [mix(0), mix(1), mix(2)];
}

function drawHeat(picture: PanelView['picture']): void {
  const canvas = element('heat', HTMLCanvasElement);
  canvas.width = Math.max(1, picture.columns);
  canvas.height = Math.max(1, picture.rows);
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const image = pen.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < picture.rows * picture.columns; i++)
    image.data.set([...colour(parseInt(picture.cells.slice(2 * i, 2 * i + 2), 16)), 255], 4 * i);
  pen.putImageData(image, 0, 0);
  const steps = view && (picture.rows < view.rows || picture.columns < view.columns) ? ' (every few rows or columns)' : '';
  element('scale', HTMLElement).textContent = `${short(picture.low)} dark to ${short(picture.high)} bright; red: not finite${steps}`;
}

function drawHistogram(numbers: PanelView['statistics']): void {
  const canvas = element('histogram', HTMLCanvasElement);
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const most = Math.max(1, ...numbers.bins);
  const width = canvas.width / Math.max(1, numbers.bins.length);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = getComputedStyle(document.body).getPropertyValue('--vscode-charts-blue') || '#3794ff';
  numbers.bins.forEach((count, i) => {
    const height = (count / most) * canvas.height;
    pen.fillRect(i * width, canvas.height - height, width - 1, height);
  });
  const all = view?.elements === numbers.sampled ? `all ${numbers.sampled}` : `${numbers.sampled} sampled of ${view?.elements ?? 0}`;
  element('statistics', HTMLElement).textContent =
    `${short(numbers.low)} to ${short(numbers.high)}, mean ${short(numbers.mean)}, std ${short(numbers.deviation)}, ` +
    `${numbers.nan} NaN, ${numbers.infinite} Inf (${all})`;
}

function cells(tag: 'th' | 'td', texts: readonly string[]): HTMLTableRowElement {
  const row = document.createElement('tr');
  for (const text of texts) row.appendChild(document.createElement(tag)).textContent = text;
  return row;
}

function drawTable(now: PanelView): void {
  const width = now.table[0]?.length ?? 0;
  const heads = Array.from({ length: width }, (_, i) => String(now.column + i));
  const rows = now.table.map((line, i) => {
    const row = cells('td', line);
    row.prepend(Object.assign(document.createElement('th'), { textContent: String(now.row + i) }));
    return row;
  });
  element('table', HTMLTableElement).replaceChildren(cells('th', ['', ...heads]), ...rows);
  const last = (from: number, count: number) => (count ? `${from}–${from + count - 1}` : 'none');
  element('window', HTMLElement).textContent =
    `rows ${last(now.row, now.table.length)} of ${now.rows}, columns ${last(now.column, width)} of ${now.columns}`;
  const able = (id: string, on: boolean) => (element(id, HTMLButtonElement).disabled = !on);
  able('up', now.row > 0);
  able('left', now.column > 0);
  able('down', now.row + part.rows < now.rows);
  able('right', now.column + part.columns < now.columns);
}

/** One field for each dimension before the last two. */
function drawIndex(shape: readonly number[]): void {
  const form = element('index', HTMLFormElement);
  const lead = shape.slice(0, -2);
  form.hidden = !lead.length;
  if (form.childElementCount === lead.length) return;
  form.replaceChildren(
    ...lead.map((side, dimension) => {
      const label = document.createElement('label');
      label.textContent = `dim ${dimension} `;
      const input = Object.assign(document.createElement('input'), { type: 'number', min: '0', max: String(side - 1) });
      input.value = String(part.index[dimension] ?? 0);
      input.addEventListener('change', () => {
        const index = lead.map((_, i) => part.index[i] ?? 0);
        index[dimension] = Math.min(Math.max(0, Math.trunc(Number(input.value)) || 0), Math.max(0, side - 1));
        want({ index });
      });
      label.append(input);
      return label;
    }),
  );
}

function draw(now: PanelView): void {
  view = now;
  element('facts', HTMLElement).textContent =
    `${now.dtype} [${now.shape.join(', ')}] ${now.device}${now.grad ? ' grad' : ''}, ${now.elements} elements`;
  drawIndex(now.shape);
  drawTable(now);
  drawHeat(now.picture);
  drawHistogram(now.statistics);
}

const MOVES: Readonly<Record<string, () => Partial<PanelPart>>> = {
  up: () => ({ row: Math.max(0, part.row - part.rows) }),
  down: () => ({ row: part.row + part.rows }),
  left: () => ({ column: Math.max(0, part.column - part.columns) }),
  right: () => ({ column: part.column + part.columns }),
};
for (const [id, move] of Object.entries(MOVES))
  element(id, HTMLButtonElement).addEventListener('click', () => want(move()));
element('index', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault());

window.addEventListener('message', (event: MessageEvent<{ view?: PanelView; problem?: string }>) => {
  const problem = element('problem', HTMLElement);
  problem.textContent = event.data.problem ?? '';
  problem.hidden = !event.data.problem;
  if (event.data.view) draw(event.data.view);
});
want({});
