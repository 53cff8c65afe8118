/*
 * The tensor view: a panel for each expression, with a table of values, a heat map and a histogram
 * (src/webview/panel.ts draws).  It is asked again at each stop of its session.
 */
import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as vscode from 'vscode';
import { escapeHtml } from '../rows';
import { ask, Part } from './ask';

const START: Part = { index: [], row: 0, column: 0, rows: 24, columns: 12 };

/** What VS Code gives a command of the variables' menu. */
interface VariableItem {
  readonly sessionId?: string;
  readonly variable?: { readonly name?: string; readonly evaluateName?: string };
}

function html(webview: vscode.Webview, media: vscode.Uri, script: vscode.Uri, title: string): string {
  const nonce = crypto.randomBytes(16).toString('hex');
  const style = webview.asWebviewUri(vscode.Uri.joinPath(media, 'panel.css'));
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'">
<link rel="stylesheet" href="${style.toString()}"></head><body>
<h3>${escapeHtml(title)}</h3><p id="facts"></p><p id="problem" role="alert" hidden></p>
<form id="index" hidden></form>
<nav><button id="up">▲</button><button id="down">▼</button><button id="left">◀</button><button id="right">▶</button>
<span id="window"></span></nav>
<table id="table"></table>
<section><figure><canvas id="heat" width="512" height="512"></canvas><figcaption id="scale"></figcaption></figure>
<figure><canvas id="histogram" width="512" height="256"></canvas><figcaption id="statistics"></figcaption></figure></section>
<script nonce="${nonce}" src="${webview.asWebviewUri(script).toString()}"></script></body></html>`;
}

/** The frame that the user looks at in a session: where names have their values. */
function frameOf(session: vscode.DebugSession): number | undefined {
  const item = vscode.debug.activeStackItem;
  return item instanceof vscode.DebugStackFrame && item.session.id === session.id ? item.frameId : undefined;
}

class Panel {
  private part: Part = START;
  private asked = 0;

  constructor(
    private readonly panel: vscode.WebviewPanel,
    private readonly session: vscode.DebugSession,
    private readonly expression: string,
    private readonly code: string,
    private frame: number | undefined,
  ) {
    const changed = vscode.debug.onDidChangeActiveStackItem(() => {
      const now = frameOf(session);
      if (now === undefined) return;
      this.frame = now;
      void this.refresh();
    });
    const ended = vscode.debug.onDidTerminateDebugSession((one) => {
      if (one.id === session.id) this.say('the session has ended; these were the last values');
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

  private say(problem: string): void {
    void this.panel.webview.postMessage({ problem });
  }

  /** Asks; an answer that a later question has overtaken is dropped. */
  private async refresh(): Promise<void> {
    const mine = ++this.asked;
    try {
      const view = await ask(this.session, this.frame, this.code, this.expression, this.part);
      if (mine === this.asked) await this.panel.webview.postMessage({ view, part: this.part });
    } catch (error) {
      if (mine === this.asked) this.say(error instanceof Error ? error.message : String(error));
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
  // its script asks for the first view once it listens
  panel.webview.html = html(panel.webview, media, vscode.Uri.joinPath(scripts, 'panel.js'), expression);
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
