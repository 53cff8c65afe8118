/*
 * The `probing` command: finding and running it.  All that the extension knows about processes comes
 * from it.
 */
import * as child from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

const OUTPUT_MAX = 64 << 20; // bytes

/** The user's setting; or a virtual environment of the workspace; or the one on the PATH. */
export function toolPath(): string {
  const set = vscode.workspace.getConfiguration('probing').get<string>('path', '').trim();
  if (set) return set.replace(/^~(?=\/)/, process.env['HOME'] ?? '~');
  for (const folder of vscode.workspace.workspaceFolders ?? [])
    for (const environment of ['.venv', 'venv']) {
      const tool = path.join(folder.uri.fsPath, environment, 'bin', 'probing');
      if (fs.existsSync(tool)) return tool;
    }
  return 'probing';
}

/** Its standard output.  Throws an Error with its error message. */
export function runTool(words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    child.execFile(toolPath(), words, { maxBuffer: OUTPUT_MAX }, (error, stdout, stderr) => {
      if (!error) resolve(stdout);
      else if (error.code === 'ENOENT')
        reject(new Error(`command not found: "${toolPath()}"; set probing.path to its place`));
      else reject(new Error(stderr.trim() || error.message));
    });
  });
}

/** Run something for the user, with a notification while it lasts; a failure is shown. */
export async function attempt<T>(title: string, work: () => Promise<T>): Promise<T | undefined> {
  const place = { location: vscode.ProgressLocation.Window, title };
  try {
    return await vscode.window.withProgress(place, work);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const settings = 'Open Settings';
    const chosen = await (text.includes('probing.path')
      ? vscode.window.showErrorMessage(`Probing: ${text}`, settings)
      : vscode.window.showErrorMessage(`Probing: ${text}`));
    if (chosen === settings) await vscode.commands.executeCommand('workbench.action.openSettings', 'probing.path');
    return undefined;
  }
}
