/* Rows of SQL as a table in a panel: plain HTML, no script. */
import * as vscode from 'vscode';

const ROWS_MAX = 10000; // drawn
const SIGNS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

type Value = string | number | boolean | object | null; // of JSON
export type Rows = readonly Readonly<Record<string, Value>>[];

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => SIGNS[sign] ?? sign);
}

function cell(value: Value | undefined): string {
  if (value === null || value === undefined) return '<td class="null">NULL</td>';
  const number = typeof value === 'number' ? ' class="number"' : '';
  return `<td${number}>${escapeHtml(typeof value === 'object' ? JSON.stringify(value) : String(value))}</td>`;
}

export function tableHtml(title: string, rows: Rows): string {
  const columns = Object.keys(rows[0] ?? {});
  const drawn = rows.slice(0, ROWS_MAX).map((row) => `<tr>${columns.map((name) => cell(row[name])).join('')}</tr>`);
  const more = rows.length > ROWS_MAX ? `, the first ${ROWS_MAX} shown` : '';
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
  table { border-collapse: collapse; font-family: var(--vscode-editor-font-family); font-size: var(--vscode-editor-font-size); }
  th, td { border: 1px solid var(--vscode-panel-border); padding: 2px 8px; text-align: left; white-space: pre; }
  th { position: sticky; top: 0; background: var(--vscode-editor-background); }
  .number { text-align: right; } .null { opacity: 0.5; }
</style></head><body><h3>${escapeHtml(title)}</h3><p>${rows.length} ${rows.length === 1 ? 'row' : 'rows'}${more}</p>
<table><thead><tr>${columns.map((name) => `<th>${escapeHtml(name)}</th>`).join('')}</tr></thead>
<tbody>${drawn.join('\n')}</tbody></table></body></html>`;
}

export function showRows(title: string, rows: Rows): void {
  const panel = vscode.window.createWebviewPanel('probing.rows', title.slice(0, 60), vscode.ViewColumn.Active, {});
  panel.webview.html = tableHtml(title, rows);
}
