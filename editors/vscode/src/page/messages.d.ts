/*
 * What the page's frame (src/webview/bridge.ts) and the extension (panel.ts) say to each other.  An id names one question, or
 * one line of live data, until it is answered or shut.
 */
export type FromPage =
  | { kind: 'ask'; id: number; method: string; path: string; headers: Record<string, string>; body: string | null }
  | { kind: 'drop'; id: number } // nobody waits for the answer any more
  | { kind: 'open'; id: number }
  | { kind: 'send'; id: number; text: string }
  | { kind: 'close'; id: number }
  | { kind: 'source'; target: string; file: string; line: number }
  | { kind: 'debug'; target: string }
  | { kind: 'allow'; id: number }
  | { kind: 'save'; name: string; bytes: Uint8Array };

export type ToPage =
  | { kind: 'answer'; id: number; status: number; headers: Record<string, string>; bytes: Uint8Array }
  | { kind: 'failed'; id: number; message: string }
  | { kind: 'opened'; id: number }
  | { kind: 'text'; id: number; text: string }
  | { kind: 'closed'; id: number }
  | { kind: 'allowed'; id: number; allowed: boolean }
  | { kind: 'seen'; seen: boolean }
  | { kind: 'go'; place: string };

/** What VS Code keeps of the panel when the window is loaded again. */
export interface Kept {
  readonly place?: string; // the fragment of the page's address
}
