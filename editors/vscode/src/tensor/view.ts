/*
 * The tensor view: a panel for each expression, with a table of values, a heat map and a histogram
 * (src/webview/tensor.ts draws them).  It is read again at each stop of its session.
 */
import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as vscode from 'vscode';
import { escapeHtml } from '../rows';
import { ask } from './ask';
import type { Part } from './types';

const START: Part = { index: [], row: 0, column: 0, rows: 16, columns: 12 };

const BUTTONS = [
  ['up', '▲', 'Rows before'],
  ['down', '▼', 'Rows after'],
  ['left', '◀', 'Columns before'],
  ['right', '▶', 'Columns after'],
] as const;

/** The argument of a command in the menu of VARIABLES. */
interface VariableItem {
  readonly sessionId?: string;
  readonly variable?: { readonly name?: string; readonly evaluateName?: string };
}

function html(webview: vscode.Webview, media: vscode.Uri, script: vscode.Uri, title: string): string {
  const nonce = crypto.randomBytes(16).toString('hex');
  const style = webview.asWebviewUri(vscode.Uri.joinPath(media, 'tensor.css'));
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'">
<link rel="stylesheet" href="${style.toString()}"></head><body>
<h3>${escapeHtml(title)}</h3><p><span id="facts">reading…</span> <span id="note" role="status"></span></p>
<form id="index" hidden></form>
<nav>${BUTTONS.map(([id, sign, label]) => `<button id="${id}" title="${label}" aria-label="${label}" disabled>${sign}</button>`).join('')}
<span id="window"></span></nav>
<div class="table"><table id="table"></table></div>
<section hidden><figure><b id="plane"></b><canvas id="heat" role="img" aria-labelledby="plane" title="Click: the table shows this place"></canvas>
<div class="ends"><span id="low"></span><i id="scale"></i><span id="high"></span></div><figcaption id="odd"></figcaption></figure>
<figure><b id="counted"></b><canvas id="histogram" role="img" aria-labelledby="counted statistics"></canvas>
<div class="ends"><span id="least"></span><i></i><span id="most"></span></div><figcaption id="statistics"></figcaption></figure></section>
<script type="module" nonce="${nonce}" src="${webview.asWebviewUri(script).toString()}"></script></body></html>`;
}

/** The selected frame of a session, in which expressions are evaluated. */
function frameOf(session: vscode.DebugSession): number | undefined {
  const item = vscode.debug.activeStackItem;
  return item instanceof vscode.DebugStackFrame && item.session.id === session.id ? item.frameId : undefined;
}

class Panel {
  private part: Part = START;
  private asked = 0;
  private stale = false; // something changed while the panel was hidden

  constructor(
    private readonly panel: vscode.WebviewPanel,
    private readonly session: vscode.DebugSession,
    private readonly expression: string,
    private readonly code: string,
    private frame: number | undefined,
  ) {
    const changed = vscode.debug.onDidChangeActiveStackItem((item) => {
      const now = frameOf(session);
      if (now !== undefined) {
        this.frame = now;
        void this.refresh();
      } else if (item === undefined || item.session.id === session.id)
        this.tell('no stopped frame is selected: these are the values of the last stop');
    });
    const ended = vscode.debug.onDidTerminateDebugSession((one) => {
      if (one.id === session.id) this.tell('the session has ended: these are the values of the last stop');
    });
    panel.onDidChangeViewState(() => {
      if (this.stale && panel.visible) void this.refresh();
    });
    panel.webview.onDidReceiveMessage((part: Partial<Part>) => {
      this.part = { ...this.part, ...part };
      void this.refresh();
    });
    panel.onDidDispose(() => {
      changed.dispose();
      ended.dispose();
    });
  }

  private tell(note: string): void {
    this.asked++; // an answer that is still to come belongs to the last stop: ignore it
    void this.panel.webview.postMessage({ note });
  }

  /** Read the array; an answer to an earlier request is dropped. */
  private async refresh(): Promise<void> {
    const mine = ++this.asked;
    this.stale = !this.panel.visible;
    if (this.stale) return;
    try {
      const view = await ask(this.session, this.frame, this.code, this.expression, this.part);
      if (mine === this.asked) await this.panel.webview.postMessage({ view });
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (mine === this.asked) await this.panel.webview.postMessage({ problem });
    }
  }
}

function open(context: vscode.ExtensionContext, session: vscode.DebugSession, expression: string): void {
  const media = vscode.Uri.joinPath(context.extensionUri, 'media');
  const scripts = vscode.Uri.joinPath(context.extensionUri, 'out', 'webview');
  const panel = vscode.window.createWebviewPanel('probing.tensor', expression.slice(0, 40), vscode.ViewColumn.Beside, {
    enableScripts: true,
    localResourceRoots: [media, scripts],
    retainContextWhenHidden: true,
  });
  const code = fs.readFileSync(vscode.Uri.joinPath(media, 'view.py').fsPath, 'utf8');
  new Panel(panel, session, expression, code, frameOf(session));
  // its script requests the first view when it is ready
  panel.webview.html = html(panel.webview, media, vscode.Uri.joinPath(scripts, 'tensor.js'), expression);
}

async function viewExpressionOf(context: vscode.ExtensionContext): Promise<void> {
  const session = vscode.debug.activeDebugSession;
  if (!session) return;
  const editor = vscode.window.activeTextEditor;
  const word = editor?.document.getWordRangeAtPosition(editor.selection.active);
  const selected = editor && (editor.selection.isEmpty ? word : editor.selection);
  const expression = await vscode.window.showInputBox({
    title: 'View a tensor or array',
    value: selected ? editor.document.getText(selected) : '',
    prompt: 'An expression of the frame that is looked at; slices are welcome',
  });
  if (expression?.trim()) open(context, session, expression.trim());
}

export function registerTensorView(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.commands.registerCommand('probing.viewTensor', (item?: VariableItem) => {
      const session = vscode.debug.activeDebugSession;
      const expression = item?.variable?.evaluateName ?? item?.variable?.name;
      if (session && expression) open(context, session, expression);
    }),
    vscode.commands.registerCommand('probing.viewExpression', () => viewExpressionOf(context)),
  );
}
