/*
 * The page of `probing serve` in a panel.  A panel can reach no Unix socket, so the page's frame (src/webview/bridge.ts) passes
 * on what the page asks, and we ask the server.  The page may look, as one that comes through a proxy; more needs a token that the
 * user lets it have.
 */
import * as crypto from 'node:crypto';
import * as vscode from 'vscode';
import { Sessions } from '../adapter';
import { escapeHtml } from '../rows';
import { attempt } from '../tool';
import { debugTarget, openSource, save } from './actions';
import { pageFolder } from './assets';
import type { FromPage, Kept, ToPage } from './messages';
import { Line, Server } from './server';

const TYPE = 'probing.page';
const PATH = /^api\/v1(\/|$|\?)/; // all that the page may ask for
const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
const HEADERS = ['accept', 'content-type', 'if-none-match'];
const GRANTS = 'control,eval';
const PATIENCE = 10_000; // ms until a page that asks for nothing is loaded again; twice as long each time
const LOADS = 4;

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function html(webview: vscode.Webview, page: vscode.Uri, bridge: vscode.Uri, place: string): string {
  const nonce = crypto.randomBytes(16).toString('hex');
  const at = (uri: vscode.Uri) => webview.asWebviewUri(uri).toString();
  const script = (uri: vscode.Uri) => `<script type="module" nonce="${nonce}" src="${at(uri)}"></script>`;
  return `<!DOCTYPE html><html lang="en" data-place="${escapeHtml(place)}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'">
<link rel="stylesheet" href="${at(vscode.Uri.joinPath(page, 'page.css'))}">
${script(bridge)}${script(vscode.Uri.joinPath(page, 'main.js'))}</head><body><div id="page"></div></body></html>`;
}

class Panel {
  private readonly asked = new Map<number, AbortController>();
  private readonly lines = new Map<number, Line | undefined>(); // undefined: being opened
  private token: string | undefined; // what the user let the page have
  private heard = false; // from the page
  private gone = false;

  constructor(
    readonly panel: vscode.WebviewPanel,
    private readonly server: Server,
    private readonly sessions: Sessions,
  ) {
    panel.webview.onDidReceiveMessage((message: FromPage) => {
      this.heard = true;
      this.take(message);
    });
    panel.onDidChangeViewState(() => {
      this.tell({ kind: 'seen', seen: panel.visible });
    });
    panel.onDidDispose(() => {
      this.gone = true;
      for (const one of this.asked.values()) one.abort();
      for (const line of this.lines.values()) line?.close();
      this.lines.clear();
    });
  }

  get closed(): boolean {
    return this.gone;
  }

  /** Calls back when the page, in sight for so long, has not asked for anything. */
  whenSilent(patience: number, silent: () => void): void {
    setTimeout(() => {
      if (this.heard || this.gone) return;
      if (this.panel.visible) silent();
      else this.whenSilent(patience, silent);
    }, patience);
  }

  tell(message: ToPage): void {
    void this.panel.webview.postMessage(message);
  }

  private take(message: FromPage): void {
    switch (message.kind) {
      case 'ask':
        void this.ask(message);
        break;
      case 'drop':
        this.asked.get(message.id)?.abort();
        break;
      case 'open':
        void this.open(message.id);
        break;
      case 'send':
        this.lines.get(message.id)?.send(message.text);
        break;
      case 'close':
        this.lines.get(message.id)?.close();
        this.lines.delete(message.id);
        break;
      case 'source':
        void openSource(message, this.panel.viewColumn);
        break;
      case 'debug':
        void debugTarget(this.server, this.sessions, message.target);
        break;
      case 'allow':
        void this.allow().then((allowed) => {
          this.tell({ kind: 'allowed', id: message.id, allowed });
        });
        break;
      case 'save':
        void save(message.name, message.bytes);
        break;
    }
  }

  /** "Via" makes the page one that may look; what it shows decides what else. */
  private shown(): Record<string, string> {
    return { Via: '1.1 vscode', ...(this.token === undefined ? {} : { Authorization: `Bearer ${this.token}` }) };
  }

  private async ask(question: FromPage & { kind: 'ask' }): Promise<void> {
    const { id, method, path, body } = question;
    const abort = new AbortController();
    this.asked.set(id, abort);
    try {
      if (!PATH.test(path) || !METHODS.includes(method)) throw new Error('the page may not ask for this');
      const headers = Object.fromEntries(Object.entries(question.headers).filter(([name]) => HEADERS.includes(name.toLowerCase())));
      const asked = { method, path: `/${path}`, body: body ?? undefined, signal: abort.signal };
      let answer = await this.server.ask({ ...asked, headers: { ...headers, ...this.shown() } });
      if (answer.status === 401 && this.token !== undefined) {
        this.token = undefined; // its eight hours are over, or the server is another one
        answer = await this.server.ask({ ...asked, headers: { ...headers, ...this.shown() } });
      }
      const told = Object.fromEntries(Object.entries(answer.headers).filter(([name, value]) => !/^content-encoding$/.test(name) && typeof value === 'string'));
      this.tell({ kind: 'answer', id, status: answer.status, headers: told as Record<string, string>, bytes: new Uint8Array(answer.body) });
    } catch (error) {
      this.tell({ kind: 'failed', id, message: words(error) });
    } finally {
      this.asked.delete(id);
    }
  }

  private async open(id: number): Promise<void> {
    const closed = () => {
      if (this.lines.delete(id)) this.tell({ kind: 'closed', id });
    };
    this.lines.set(id, undefined);
    try {
      const line = await this.server.open(
        this.shown(),
        (text) => {
          this.tell({ kind: 'text', id, text });
        },
        closed,
      );
      if (!this.lines.has(id)) {
        line.close(); // the page has shut it meanwhile
        return;
      }
      this.lines.set(id, line);
      this.tell({ kind: 'opened', id });
    } catch {
      closed();
    }
  }

  /** A second token of the server, for eight hours, when the user agrees. */
  private async allow(): Promise<boolean> {
    const yes = 'Allow';
    const detail = 'It may change settings, load the probe, and run code that you type, for eight hours or until the panel is closed.';
    const chosen = await vscode.window.showWarningMessage('Let this panel act on your Python processes?', { modal: true, detail }, yes);
    if (chosen !== yes) return false;
    const done = await attempt('Probing', async () => {
      const headers = { 'Content-Type': 'application/json' };
      const answer = await this.server.ask({ method: 'POST', path: '/api/v1/tokens', headers, body: JSON.stringify({ allow: GRANTS }) });
      if (answer.status !== 200) throw new Error(`the server gives no token (${answer.status})`);
      this.token = (JSON.parse(answer.body.toString()) as { token: string }).token;
      return true;
    });
    return done ?? false;
  }
}

/** The panel of this window: one is enough, since the page shows all processes. */
class Page implements vscode.WebviewPanelSerializer<Kept | undefined> {
  private readonly server = new Server();
  private shown: Panel | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly sessions: Sessions,
  ) {}

  async show(): Promise<void> {
    const pid = this.sessions.active();
    const place = pid === undefined ? undefined : `#/p/${pid}/stacks`;
    if (this.shown) {
      this.shown.panel.reveal();
      if (place !== undefined) this.shown.tell({ kind: 'go', place });
      return;
    }
    await this.open(vscode.ViewColumn.Active, false, place);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, kept: Kept | undefined): Promise<void> {
    await this.fill(panel, kept?.place);
  }

  private open(viewColumn: vscode.ViewColumn, preserveFocus: boolean, place: string | undefined, loads = 1): Promise<void> {
    const options = { retainContextWhenHidden: true };
    return this.fill(vscode.window.createWebviewPanel(TYPE, 'Probing', { viewColumn, preserveFocus }, options), place, loads);
  }

  private async fill(panel: vscode.WebviewPanel, place = '#/overview', loads = 1): Promise<void> {
    const storage = this.context.globalStorageUri;
    const scripts = vscode.Uri.joinPath(this.context.extensionUri, 'out', 'webview');
    panel.iconPath = vscode.Uri.joinPath(this.context.extensionUri, 'media', 'icon.png');
    const mine = new Panel(panel, this.server, this.sessions);
    this.shown = mine; // before the server was reached: the command, given again, opens no second one
    panel.onDidDispose(() => {
      if (this.shown === mine) this.shown = undefined;
    });
    const folder = await attempt('Probing: reaching the server', () =>
      pageFolder(this.server, storage.fsPath).catch((error: unknown) => {
        panel.dispose(); // at once: the message may stay for long
        throw error;
      }),
    );
    if (folder === undefined || mine.closed) return;
    void this.server.join().catch(() => undefined); // one that a terminal started ends with no window
    const page = vscode.Uri.file(folder);
    panel.webview.options = { enableScripts: true, localResourceRoots: [page, scripts] };
    panel.webview.html = html(panel.webview, page, vscode.Uri.joinPath(scripts, 'bridge.js'), place);
    mine.whenSilent(PATIENCE * 2 ** (loads - 1), () => {
      this.again(mine, place, loads);
    });
  }

  /** The editor has lost what the page's frame should have loaded, and says so nowhere: another frame. */
  private again(silent: Panel, place: string, loads: number): void {
    const column = silent.panel.viewColumn ?? vscode.ViewColumn.Active;
    silent.panel.dispose();
    if (loads < LOADS) void this.open(column, true, place, loads + 1);
    else void vscode.window.showErrorMessage('Probing: the editor does not load the page; Developer: Reload Window may help.');
  }
}

export function registerPage(context: vscode.ExtensionContext, sessions: Sessions): void {
  const page = new Page(context, sessions);
  context.subscriptions.push(
    vscode.commands.registerCommand('probing.page', () => page.show()),
    vscode.window.registerWebviewPanelSerializer(TYPE, page),
  );
}
