/*
 * Draws the tensor view.  Runs in the page of the panel: requests a part of the array from the
 * extension, and draws the answer.
 */
import type { Part, View } from '../tensor/types';

interface Code {
  postMessage(message: unknown): void;
}
declare function acquireVsCodeApi(): Code;

// stops of the colour scale: dark blue, blue-green, yellow
const SCALE: readonly (readonly [number, number, number])[] = [
  [26, 28, 84],
  [38, 110, 142],
  [60, 178, 122],
  [246, 226, 60],
];

const code = acquireVsCodeApi();
// the number of columns that fit the panel
const COLUMN_WIDTH = 92; // pixels
const WIDE = Math.min(32, Math.max(4, Math.floor((window.innerWidth - COLUMN_WIDTH) / COLUMN_WIDTH)));
let part: Part = { index: [], row: 0, column: 0, rows: 16, columns: WIDE };
let view: View | undefined;

function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`no ${id}`);
  return found;
}

function want(change: Partial<Part>): void {
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

function say(id: string, text: string): void {
  element(id, HTMLElement).textContent = text;
}

function rgb(level: number): string {
  return `rgb(${colour(level).join(' ')})`;
}

/** The heat map has one cell for this many rows and columns. */
function steps(now: View): { rows: number; columns: number } {
  const each = (side: number, drawn: number) => Math.max(1, Math.ceil(side / Math.max(1, drawn)));
  return { rows: each(now.rows, now.picture.rows), columns: each(now.columns, now.picture.columns) };
}

function drawHeat(now: View): void {
  const picture = now.picture;
  const canvas = element('heat', HTMLCanvasElement);
  canvas.width = Math.max(1, picture.columns);
  canvas.height = Math.max(1, picture.rows);
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const image = pen.createImageData(canvas.width, canvas.height);
  let odd = 0;
  for (let i = 0; i < picture.rows * picture.columns; i++) {
    const level = parseInt(picture.cells.slice(2 * i, 2 * i + 2), 16);
    odd += level === 255 ? 1 : 0;
    image.data.set([...colour(level), 255], 4 * i);
  }
  pen.putImageData(image, 0, 0);
  const { rows, columns } = steps(now);
  const skipped = [rows > 1 ? `${rows} rows` : '', columns > 1 ? `${columns} columns` : ''].filter(Boolean);
  const lead = now.shape.slice(0, -2).map((_, i) => String(part.index[i] ?? 0));
  const where = lead.length ? ` of [${[...lead, ':', ':'].join(', ')}]` : '';
  say('plane', `Heat map${where}${skipped.length ? `, every ${skipped.join(' and ')}` : ''}`);
  say('low', short(picture.low));
  say('high', short(picture.high));
  element('scale', HTMLElement).style.background = `linear-gradient(to right, ${[0, 85, 169, 254].map(rgb).join(', ')})`;
  say('odd', odd ? `■ not finite: ${odd}` : '');
}

function drawHistogram(now: View): void {
  const numbers = now.statistics;
  const canvas = element('histogram', HTMLCanvasElement);
  canvas.width = Math.round(canvas.clientWidth * window.devicePixelRatio);
  canvas.height = Math.round(canvas.clientHeight * window.devicePixelRatio);
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const most = Math.max(1, ...numbers.bins);
  const width = canvas.width / Math.max(1, numbers.bins.length);
  pen.fillStyle = getComputedStyle(document.body).getPropertyValue('--vscode-charts-blue') || '#3794ff';
  numbers.bins.forEach((count, i) => {
    const height = count ? Math.max(1, (count / most) * (canvas.height - 8)) : 0;
    pen.fillRect(i * width, canvas.height - height, Math.max(1, width - 1), height);
  });
  const all = now.elements === numbers.sampled;
  say('counted', `Histogram of ${all ? `all ${numbers.sampled}` : `${numbers.sampled} of ${now.elements}`}`);
  say('least', short(numbers.low));
  say('most', short(numbers.high));
  say('statistics', `mean ${short(numbers.mean)}, std ${short(numbers.deviation)}, ${numbers.nan} NaN, ${numbers.infinite} Inf`);
}

function cells(tag: 'th' | 'td', texts: readonly string[]): HTMLTableRowElement {
  const row = document.createElement('tr');
  for (const text of texts) {
    const cell = row.appendChild(document.createElement(tag));
    cell.textContent = text;
    if (/^-?(nan|inf)$/.test(text)) cell.className = 'odd';
  }
  return row;
}

function drawTable(now: View): void {
  const width = now.table[0]?.length ?? 0;
  const heads = Array.from({ length: width }, (_, i) => String(now.column + i));
  const rows = now.table.map((line, i) => {
    const row = cells('td', line);
    row.prepend(Object.assign(document.createElement('th'), { textContent: String(now.row + i) }));
    return row;
  });
  element('table', HTMLTableElement).replaceChildren(cells('th', ['', ...heads]), ...rows);
  const last = (from: number, count: number) => (count ? `${from}–${from + count - 1}` : 'none');
  const window = `rows ${last(now.row, now.table.length)} of ${now.rows}, columns ${last(now.column, width)} of ${now.columns}`;
  say('window', now.elements ? window : 'no elements');
  const able = (id: string, on: boolean) => (element(id, HTMLButtonElement).disabled = !on);
  able('up', now.row > 0);
  able('left', now.column > 0);
  able('down', now.row + part.rows < now.rows);
  able('right', now.column + part.columns < now.columns);
}

let fields = ''; // the shape that they are for

/** One field for each dimension before the last two. */
function drawIndex(shape: readonly number[]): void {
  const form = element('index', HTMLFormElement);
  const lead = shape.slice(0, -2);
  form.hidden = !lead.length;
  if (fields === lead.join()) return;
  fields = lead.join();
  form.replaceChildren(
    ...lead.map((side, dimension) => {
      const label = document.createElement('label');
      label.textContent = `dim ${dimension} `;
      const greatest = Math.max(0, side - 1);
      const input = Object.assign(document.createElement('input'), { type: 'number', min: '0', max: String(greatest) });
      const inside = (index: number) => Math.min(Math.max(0, Math.trunc(index) || 0), greatest);
      input.value = String(inside(part.index[dimension] ?? 0));
      input.addEventListener('change', () => {
        const index = lead.map((_, i) => part.index[i] ?? 0);
        index[dimension] = inside(Number(input.value));
        input.value = String(index[dimension]);
        want({ index });
      });
      label.append(input);
      return label;
    }),
  );
}

function draw(now: View): void {
  view = now;
  part = { ...part, row: now.row, column: now.column }; // the array may have shrunk
  const count = `${now.elements} ${now.elements === 1 ? 'element' : 'elements'}`;
  say('facts', `${now.dtype} [${now.shape.join(', ')}] ${now.device}${now.grad ? ' grad' : ''}, ${count}`);
  drawIndex(now.shape);
  drawTable(now);
  for (const shown of document.querySelectorAll<HTMLElement>('.table, section')) shown.hidden = !now.elements;
  if (!now.elements) return;
  drawHeat(now);
  drawHistogram(now);
}

const MOVES: Readonly<Record<string, () => Partial<Part>>> = {
  up: () => ({ row: Math.max(0, part.row - part.rows) }),
  down: () => ({ row: part.row + part.rows }),
  left: () => ({ column: Math.max(0, part.column - part.columns) }),
  right: () => ({ column: part.column + part.columns }),
};
for (const [id, move] of Object.entries(MOVES))
  element(id, HTMLButtonElement).addEventListener('click', () => {
    want(move());
  });
element('index', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
});

// a click on the heat map moves the table there
element('heat', HTMLCanvasElement).addEventListener('click', (event) => {
  if (!view) return;
  const canvas = element('heat', HTMLCanvasElement);
  const at = (offset: number, size: number, drawn: number, step: number) =>
    Math.min(drawn - 1, Math.max(0, Math.floor((offset / Math.max(1, size)) * drawn))) * step;
  const { rows, columns } = steps(view);
  want({
    row: at(event.offsetY, canvas.clientHeight, view.picture.rows, rows),
    column: at(event.offsetX, canvas.clientWidth, view.picture.columns, columns),
  });
});

window.addEventListener('message', (event: MessageEvent<{ view?: View; problem?: string; note?: string }>) => {
  const { problem, note } = event.data;
  say('note', problem ?? note ?? '');
  element('note', HTMLElement).className = problem === undefined ? '' : 'problem';
  if (event.data.view) draw(event.data.view);
  else if (!view) say('facts', 'no values');
});
// the theme may have other colours
const redraw = () => {
  if (view?.elements) drawHistogram(view);
};
new MutationObserver(redraw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
window.addEventListener('resize', redraw);
want({});
