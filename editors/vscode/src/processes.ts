/*
 * The list of Python processes to choose from: `probing list --json`, and the GPUs that each has open
 * (its descriptors of /dev/nvidiaN; none where /proc cannot be read).
 */
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { attempt, runTool } from './tool';

const DESCRIPTORS_MAX = 4096; // read, of one process

export interface Process {
  readonly pid: number;
  readonly ppid: number;
  readonly command: string;
  readonly name: string;
  readonly python: string | null;
  readonly started: number;
  readonly rss: number;
  readonly rank: number | null;
  readonly world_size: number | null;
  readonly has_probe: boolean;
}

interface Item extends vscode.QuickPickItem {
  readonly pid: number;
}

/** The numbers of the GPUs that a process has open. */
export async function gpusOf(pid: number, proc = '/proc'): Promise<number[]> {
  const found = new Set<number>();
  try {
    const folder = path.join(proc, String(pid), 'fd');
    for (const descriptor of (await fs.readdir(folder)).slice(0, DESCRIPTORS_MAX)) {
      const device = /^\/dev\/nvidia(\d+)$/.exec(await fs.readlink(path.join(folder, descriptor)).catch(() => ''));
      if (device) found.add(Number(device[1]));
    }
  } catch {
    // another user's process, or it has ended
  }
  return [...found].sort((a, b) => a - b);
}

/** Ranks first, in their order; then the newest process first. */
export function order(a: Process, b: Process): number {
  if ((a.rank === null) !== (b.rank === null)) return a.rank === null ? 1 : -1;
  return (a.rank ?? 0) - (b.rank ?? 0) || b.started - a.started;
}

/** "train.py" of "/usr/bin/python3 -u /home/me/train.py --lr 0.1". */
export function scriptName(command: string): string {
  const words = command.split(' ').filter(Boolean);
  return path.basename(words.slice(1).find((word) => !word.startsWith('-')) ?? words[0] ?? '');
}

export async function item(one: Process, proc?: string): Promise<Item> {
  const gpus = await gpusOf(one.pid, proc);
  const facts = [`pid ${one.pid}`];
  if (gpus.length) facts.push(`GPU ${gpus.join(', ')}`);
  facts.push(`Python ${one.python ?? '?'}`, `${(one.rss / 2 ** 20).toFixed(0)} MiB`);
  if (one.has_probe) facts.push('has a probe');
  const rank = one.rank === null ? '' : `rank ${one.rank}${one.world_size === null ? '' : `/${one.world_size}`} · `;
  return { label: rank + (scriptName(one.command) || one.name), description: facts.join(' · '), detail: one.command, pid: one.pid };
}

export async function listProcesses(): Promise<Process[]> {
  return (JSON.parse(await runTool(['list', '--json'])) as Process[]).sort(order);
}

/** A pid; undefined when the user chose none. */
export async function pickProcess(): Promise<number | undefined> {
  const items = await attempt('Probing: listing Python processes', async () =>
    Promise.all((await listProcesses()).map((one) => item(one))),
  );
  if (!items) return undefined;
  if (!items.length) {
    void vscode.window.showInformationMessage('Probing: no Python process is running here.');
    return undefined;
  }
  const chosen = await vscode.window.showQuickPick(items, {
    title: 'Attach to a Python process',
    placeHolder: 'Rank, command, pid or GPU',
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return chosen?.pid;
}
