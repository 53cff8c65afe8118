/* What the page has the editor do: open a source at a line, begin a debug session, save a file. */
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { Sessions } from '../adapter';
import { scriptName } from '../processes';
import { attempt } from '../tool';
import { Server } from './server';

const DEBUG_VIEW = 'workbench.view.debug';

/** Names of files come from the process that is looked at: only what is a file is opened. */
async function isFile(file: string): Promise<boolean> {
  return path.isAbsolute(file) && (await fs.stat(file).then((found) => found.isFile(), () => false));
}

/** Where a process's file is on this machine: at its path, or below the root folder of a process in a container. */
export async function sourcePath(target: string, file: string): Promise<string | undefined> {
  const pid = /^\d+/.exec(target)?.[0];
  for (const root of ['', ...(pid === undefined ? [] : [`/proc/${pid}/root`])]) if (await isFile(root + file)) return root + file;
  return undefined;
}

export async function openSource(place: { target: string; file: string; line: number }, panel?: vscode.ViewColumn): Promise<void> {
  await attempt('Probing', async () => {
    const file = await sourcePath(place.target, place.file);
    if (file === undefined) throw new Error(`${place.file} is not on this machine`);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(file));
    const line = Math.min(Math.max(0, place.line - 1), document.lineCount - 1);
    const selection = document.lineAt(line).range;
    // beside the panel, which stays in sight
    const viewColumn = panel === vscode.ViewColumn.One ? vscode.ViewColumn.Two : vscode.ViewColumn.One;
    await vscode.window.showTextDocument(document, { viewColumn, selection: new vscode.Range(selection.start, selection.start) });
  });
}

interface Target {
  readonly pid: number;
  readonly command: string | null;
  readonly file: string | null; // of a dump or core
}

/** A session of what the page looks at, by the name that the server has for it: a process, which may have ended, or a file. */
export async function debugTarget(server: Server, sessions: Sessions, target: string): Promise<void> {
  await attempt('Probing', async () => {
    const { pid, command, file } = await server.json<Target>(`/api/v1/p/${encodeURIComponent(target)}`);
    if (file === null && sessions.has(pid)) {
      await vscode.commands.executeCommand(DEBUG_VIEW);
      return;
    }
    const what = file === null ? { name: `${scriptName(command ?? '')} (${pid})`, processId: pid } : { name: path.basename(file), core: file };
    await vscode.debug.startDebugging(vscode.workspace.workspaceFolders?.[0], { type: 'probing', request: 'attach', ...what });
  });
}

export async function save(name: string, bytes: Uint8Array): Promise<void> {
  await attempt('Probing', async () => {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const base = path.basename(name);
    const chosen = await vscode.window.showSaveDialog({ title: 'Save', ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, base) } : {}) });
    if (chosen) await vscode.workspace.fs.writeFile(chosen, bytes);
  });
}
