/*
 * The page's files.  A panel loads files from folders alone, so they are copied from the server into the extension's storage,
 * once for each version of the page: the server has them under the hash of all.
 */
import * as crypto from 'node:crypto';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import { Server } from './server';

const FILES_MAX = 200;
const HASH = /^"([0-9a-f]{16})"$/;
const NAME = /^\w[\w.-]*$/;

async function copy(server: Server, hash: string, folder: string): Promise<void> {
  const names = await server.json<unknown>(`/assets/${hash}/`);
  if (!Array.isArray(names) || names.length > FILES_MAX || !names.every((name) => typeof name === 'string' && NAME.test(name)))
    throw new Error('the server lists no files of its page');
  const fresh = `${folder}.${crypto.randomBytes(6).toString('hex')}`;
  await fs.mkdir(fresh, { recursive: true });
  try {
    for (const name of names as string[]) await fs.writeFile(path.join(fresh, name), (await server.get(`/assets/${hash}/${name}`)).body);
    await fs.rename(fresh, folder);
  } catch (error) {
    await fs.rm(fresh, { recursive: true, force: true });
    if (!(await exists(folder))) throw error; // else another window was first
  }
}

const exists = (file: string): Promise<boolean> =>
  fs.access(file).then(
    () => true,
    () => false,
  );

/** The folder with the files of the page that the server has now.  Those of other versions are removed. */
export async function pageFolder(server: Server, storage: string): Promise<string> {
  const hash = HASH.exec((await server.get('/')).headers.etag ?? '')?.[1];
  if (hash === undefined) throw new Error('the server has no page');
  const pages = path.join(storage, 'page');
  const folder = path.join(pages, hash);
  if (await exists(folder)) return folder;
  await copy(server, hash, folder);
  for (const other of await fs.readdir(pages)) if (other !== hash) await fs.rm(path.join(pages, other), { recursive: true, force: true });
  return folder;
}
