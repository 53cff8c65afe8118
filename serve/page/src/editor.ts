// An editor that shows this page in a panel of its own (editors/vscode).  It asks the server on the page's behalf, keeps where the
// page is, and opens sources and debug sessions.  In a browser there is none.

/** As much of a WebSocket as live data need. */
export interface Line {
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface Editor {
  readonly name: string; // "VS Code"
  place: string; // the fragment that a browser has in its address
  readonly hidden: boolean; // the document is told of a change by "visibilitychange"
  fetch(path: string, init: RequestInit): Promise<Response>;
  connect(): Line;
  openSource(target: string, file: string, line: number): void;
  debug(target: string): void;
  /** Ask the user whether this page may change things and run code; whether it may. */
  allow(): Promise<boolean>;
  save(name: string, content: Blob): void;
}

declare global {
  var probingEditor: Editor | undefined;
}

export const editor: Editor | undefined = globalThis.probingEditor;

/** Nobody sees the page. */
export const hidden = (): boolean => document.hidden || (editor?.hidden ?? false);
