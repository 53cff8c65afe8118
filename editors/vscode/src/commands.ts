/*
 * Commands of the palette: attach, open a core, load the probe, show stacks, query with SQL.  They act
 * on the process of the active session, or on one that the user picks.
 */
import * as vscode from 'vscode';
import { Sessions } from './adapter';
import { pickProcess } from './processes';
import { Rows, showRows } from './rows';
import { attempt, runTool } from './tool';

const STACKS = 'probing-stacks';
const LAST_QUERY = 'query';

/** Documents "probing-stacks:/PID/NAME.txt", read-only; the stacks are read when one is opened. */
class Stacks implements vscode.TextDocumentContentProvider {
  provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const pid = uri.path.split('/')[1] ?? '';
    return runTool([pid, 'backtrace', '--native']).catch(() => runTool([pid, 'backtrace']));
  }
}

async function attach(): Promise<void> {
  const processId = await pickProcess();
  if (processId === undefined) return;
  const folder = vscode.workspace.workspaceFolders?.[0];
  await vscode.debug.startDebugging(folder, { name: `Process ${processId}`, type: 'probing', request: 'attach', processId });
}

async function openCore(): Promise<void> {
  const [file] = (await vscode.window.showOpenDialog({ title: 'A core file or a snapshot', canSelectMany: false })) ?? [];
  if (!file) return;
  const folder = vscode.workspace.workspaceFolders?.[0];
  const name = file.path.split('/').pop() ?? 'core';
  await vscode.debug.startDebugging(folder, { name, type: 'probing', request: 'attach', core: file.fsPath });
}

async function inject(sessions: Sessions): Promise<void> {
  const pid = sessions.active() ?? (await pickProcess());
  if (pid === undefined) return;
  const output = await attempt(`Probing: loading the probe into ${pid}`, () => runTool([String(pid), 'inject']));
  if (output !== undefined) void vscode.window.showInformationMessage(`Probing: process ${pid}: ${output.trim()}`);
}

async function backtrace(sessions: Sessions): Promise<void> {
  const pid = sessions.active() ?? (await pickProcess());
  if (pid === undefined) return;
  await attempt(`Probing: reading the stacks of ${pid}`, async () => {
    // a new name each time: VS Code does not read an open document again
    const path = `/${pid}/stacks of ${pid} at ${new Date().toLocaleTimeString('en-GB')}.txt`;
    const document = await vscode.workspace.openTextDocument(vscode.Uri.from({ scheme: STACKS, path }));
    await vscode.window.showTextDocument(document, { preview: true });
  });
}

async function query(context: vscode.ExtensionContext, sessions: Sessions): Promise<void> {
  const pid = sessions.active() ?? (await pickProcess());
  if (pid === undefined) return;
  const sql = await vscode.window.showInputBox({
    title: `SQL about process ${pid}`,
    value: context.workspaceState.get(LAST_QUERY, 'SELECT thread_name, func, file, lineno FROM python.backtrace WHERE depth = 0'),
    prompt: '"SHOW TABLES" lists the tables',
    ignoreFocusOut: true,
  });
  if (!sql) return;
  await context.workspaceState.update(LAST_QUERY, sql);
  await attempt(`Probing: querying process ${pid}`, async () => {
    const text = await runTool([String(pid), 'query', '--format', 'json', sql]);
    showRows(`${pid}: ${sql}`, JSON.parse(text) as Rows);
  });
}

export function registerCommands(context: vscode.ExtensionContext, sessions: Sessions): void {
  const command = (name: string, run: () => Promise<void>) => vscode.commands.registerCommand(name, run);
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(STACKS, new Stacks()),
    command('probing.attach', attach),
    command('probing.openCore', openCore),
    command('probing.inject', () => inject(sessions)),
    command('probing.backtrace', () => backtrace(sessions)),
    command('probing.query', () => query(context, sessions)),
  );
}
