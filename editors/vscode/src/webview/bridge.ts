/*
 * The frame of the page of `probing serve` in a panel (src/page/panel.ts): what the page asks goes to the extension, and what
 * that answers to the page.  `probingEditor` is what the page looks for (serve/page/src/editor.ts).
 */
import type { FromPage, Kept, ToPage } from '../page/messages';

interface Code {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(kept: Kept): void;
}
declare function acquireVsCodeApi(): Code;

const code = acquireVsCodeApi();
const answers = new Map<number, { resolve: (answer: Response) => void; reject: (error: Error) => void }>();
const lines = new Map<number, BridgeLine>();
const permissions = new Map<number, (allowed: boolean) => void>();
let last = 0;
let seen = true;
let place = code.getState()?.place ?? document.documentElement.dataset['place'] ?? '';

class BridgeLine {
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  private readonly id = ++last;

  constructor() {
    lines.set(this.id, this);
    code.postMessage({ kind: 'open', id: this.id });
  }

  send(text: string): void {
    code.postMessage({ kind: 'send', id: this.id, text });
  }

  close(): void {
    if (!lines.delete(this.id)) return;
    code.postMessage({ kind: 'close', id: this.id });
    this.onclose?.(new CloseEvent('close'));
  }
}

function keep(to: string): void {
  place = to;
  code.setState({ place });
}

function ask(path: string, init: RequestInit): Promise<Response> {
  const id = ++last;
  const headers = Object.fromEntries(new Headers(init.headers));
  const body = typeof init.body === 'string' ? init.body : null;
  return new Promise((resolve, reject) => {
    answers.set(id, { resolve, reject });
    code.postMessage({ kind: 'ask', id, method: init.method ?? 'GET', path, headers, body });
    init.signal?.addEventListener('abort', () => {
      if (!answers.delete(id)) return;
      code.postMessage({ kind: 'drop', id });
      reject(new DOMException('aborted', 'AbortError'));
    });
  });
}

function answer(told: ToPage & { kind: 'answer' }): Response {
  const bodiless = [101, 204, 205, 304].includes(told.status);
  return new Response(bodiless ? null : new Uint8Array(told.bytes), { status: told.status, headers: told.headers });
}

function take(told: ToPage): void {
  switch (told.kind) {
    case 'answer':
      answers.get(told.id)?.resolve(answer(told));
      answers.delete(told.id);
      break;
    case 'failed':
      answers.get(told.id)?.reject(new TypeError(told.message));
      answers.delete(told.id);
      break;
    case 'opened':
      lines.get(told.id)?.onopen?.(new Event('open'));
      break;
    case 'text':
      lines.get(told.id)?.onmessage?.(new MessageEvent('message', { data: told.text }));
      break;
    case 'closed': {
      const line = lines.get(told.id);
      lines.delete(told.id);
      line?.onclose?.(new CloseEvent('close'));
      break;
    }
    case 'allowed':
      permissions.get(told.id)?.(told.allowed);
      permissions.delete(told.id);
      break;
    case 'seen':
      seen = told.seen;
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
      break;
    case 'go':
      keep(told.place);
      dispatchEvent(new HashChangeEvent('hashchange'));
      break;
  }
}

/** The theme of the editor, dark or light, is the page's. */
function dress(): void {
  const classes = document.body.classList;
  const dark = classes.contains('vscode-dark') || (classes.contains('vscode-high-contrast') && !classes.contains('vscode-high-contrast-light'));
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
  dispatchEvent(new Event('theme'));
}

addEventListener('message', (event: MessageEvent<ToPage>) => {
  take(event.data);
});
dress();
new MutationObserver(dress).observe(document.body, { attributes: true, attributeFilter: ['class'] });
keep(place);

Object.defineProperty(globalThis, 'probingEditor', {
  value: {
    name: 'VS Code',
    get place(): string {
      return place;
    },
    set place(to: string) {
      keep(to);
    },
    get hidden(): boolean {
      return !seen;
    },
    fetch: ask,
    connect: () => new BridgeLine(),
    openSource(target: string, file: string, line: number): void {
      code.postMessage({ kind: 'source', target, file, line });
    },
    debug(target: string): void {
      code.postMessage({ kind: 'debug', target });
    },
    allow: () =>
      new Promise<boolean>((resolve) => {
        permissions.set(++last, resolve);
        code.postMessage({ kind: 'allow', id: last });
      }),
    save(name: string, content: Blob): void {
      void content.arrayBuffer().then((bytes) => {
        code.postMessage({ kind: 'save', name, bytes: new Uint8Array(bytes) });
      });
    },
  },
});
