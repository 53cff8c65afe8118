/*
 * Values at the ends of lines while a session of ours is stopped: for the names in the function, from
 * its first line to the stop.  Sessions of other debuggers have their own providers.
 */
import * as vscode from 'vscode';

const LINES_MAX = 200; // above the stop
const NAME = /\b[A-Za-z_]\w*\b/g;
const NO_VALUES = new Set(
  ('False None True and as assert async await break class continue def del elif else except finally for from global if import ' +
    'in is lambda nonlocal not or pass raise return try while with yield').split(' '),
);

/** The first line of the function around a line: the nearest `def` with less indentation. */
export function functionStart(lineText: (line: number) => string, line: number): number {
  let indent = /^\s*/.exec(lineText(line))?.[0].length ?? 0;
  for (let at = line; at > 0 && at > line - LINES_MAX; at--) {
    const text = lineText(at - 1);
    const own = /^\s*/.exec(text)?.[0].length ?? 0;
    if (!text.trim() || own >= indent) continue;
    if (/^\s*(async\s+)?def\b/.test(text)) return at - 1;
    indent = own;
  }
  return Math.max(0, line - LINES_MAX);
}

/** Names with their columns: no keywords, attributes, calls, strings or comments. */
export function namesIn(text: string): { name: string; column: number }[] {
  const plain = text.replace(/("""|'''|"|')(?:\\.|(?!\1).)*\1/g, (s) => ' '.repeat(s.length)).replace(/#.*/, '');
  return [...plain.matchAll(NAME)]
    .map((match) => ({ name: match[0], column: match.index }))
    .filter(({ name, column }) => {
      const after = plain.slice(column + name.length);
      return !NO_VALUES.has(name) && plain[column - 1] !== '.' && !/^\s*\(/.test(after);
    });
}

export class InlineValues implements vscode.InlineValuesProvider {
  provideInlineValues(
    document: vscode.TextDocument,
    viewPort: vscode.Range,
    context: vscode.InlineValueContext,
  ): vscode.InlineValue[] {
    if (vscode.debug.activeDebugSession?.type !== 'probing') return [];
    const stop = context.stoppedLocation.start.line;
    const first = functionStart((line) => document.lineAt(line).text, stop);
    const values: vscode.InlineValue[] = [];
    for (let line = Math.max(first, viewPort.start.line); line <= Math.min(stop, viewPort.end.line); line++)
      for (const { name, column } of namesIn(document.lineAt(line).text))
        values.push(new vscode.InlineValueVariableLookup(new vscode.Range(line, column, line, column + name.length), name, true));
    return values;
  }
}
