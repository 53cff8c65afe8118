/*
 * Reading an array in a stopped session: media/view.py is evaluated in the program and returns JSON
 * text.  It needs only `evaluate`, so it works with any Python debugger.
 */
import * as vscode from 'vscode';
import type { Part, View } from './types';

/** The Python expression that runs the function `view` of a module on the value of another expression. */
export function viewExpression(code: string, expression: string, part: Part): string {
  const { index, row, column, rows, columns } = part;
  const call = `__v['view'](__e, [${index.join(', ')}], ${row}, ${column}, ${rows}, ${columns})`;
  return `(lambda __e, __v: (exec(${JSON.stringify(code)}, __v), ${call})[1])((${expression}), {})`;
}

/** A str as a debugger shows it: the text itself, or its repr. */
export function parseView(result: string): View {
  const text = /^(['"]).*\1$/s.test(result) ? result.slice(1, -1) : result;
  try {
    return JSON.parse(text) as View;
  } catch {
    throw new Error(text.startsWith('{') ? 'the debugger cut the answer short' : text.slice(0, 300));
  }
}

export async function ask(
  session: vscode.DebugSession,
  frameId: number | undefined,
  code: string,
  expression: string,
  part: Part,
): Promise<View> {
  const answer = (await session.customRequest('evaluate', {
    expression: viewExpression(code, expression, part),
    frameId,
    context: 'clipboard', // values in full
  })) as { result: string };
  return parseView(answer.result);
}
