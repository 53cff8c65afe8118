/*
 * The server of the user, `probing serve`, by its Unix socket; started when none runs.  It ends a minute after the last window
 * that shows its page: time enough to load a window again and find what it has seen.
 */
import * as child from 'node:child_process';
import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as http from 'node:http';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import * as zlib from 'node:zlib';
import { toolPath } from '../tool';
import * as frames from './frames';

const ANSWER_MAX = 80 << 20; // bytes; the server's own bound is 64 MB
const START_MAX = 50_000; // ms until the server's doors are open
const FILE_MAX = 60_000; // ms for an answer that takes no work, with that
const HOST = { Host: 'localhost' };
const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // RFC 6455 section 1.3

export interface Question {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A line of live data. */
export interface Line {
  send(text: string): void;
  close(): void;
}

/** Where the server has its socket (serve/doors/places.c).  Throws when that folder is not the user's alone. */
export function socketPath(runtime = process.env['XDG_RUNTIME_DIR'], uid = os.userInfo().uid): string {
  const own = runtime?.startsWith('/') === true && fs.statSync(runtime, { throwIfNoEntry: false })?.uid === uid ? runtime : undefined;
  const folder = own === undefined ? `/tmp/probing-${uid}` : path.join(own, 'probing');
  const found = fs.lstatSync(folder, { throwIfNoEntry: false });
  if (found && (!found.isDirectory() || found.uid !== uid || found.mode & 0o77)) throw new Error(`${folder} is not a folder of yours alone`);
  return path.join(folder, 'serve.sock');
}

const isAbsent = (error: unknown): boolean => ['ENOENT', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '');

export class Server {
  private starting: Promise<void> | undefined;

  /** The answer, whatever its status.  Throws when no server can be reached or started. */
  ask(question: Question): Promise<Answer> {
    return this.reached(() => request(question));
  }

  /** What a file of the server holds, or an answer in JSON.  Throws with the server's words. */
  async get(wanted: string): Promise<Answer> {
    const signal = AbortSignal.timeout(FILE_MAX);
    const answer = await this.ask({ path: wanted, signal }).catch((error: unknown) => {
      throw signal.aborted ? new Error(`the server has not answered ${wanted} for ${FILE_MAX / 1000} s`) : error;
    });
    if (answer.status === 200) return answer;
    throw new Error(toldError(answer.body) ?? `the server answers ${wanted} with ${answer.status}`);
  }

  async json<T>(wanted: string): Promise<T> {
    return JSON.parse((await this.get(wanted)).body.toString()) as T;
  }

  /** Open a line of live data; `closed` is called once, when it has ended or could not be opened. */
  async open(headers: Readonly<Record<string, string>>, text: (text: string) => void, closed: () => void): Promise<Line> {
    const key = crypto.randomBytes(16).toString('base64');
    return new SocketLine(await this.reached(() => upgrade(key, headers)), text, closed);
  }

  private async reached<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isAbsent(error)) throw error;
    }
    this.starting ??= start().finally(() => (this.starting = undefined));
    await this.starting;
    return work();
  }

  /** A server that another window started lives as long as this one, too. */
  async join(): Promise<void> {
    const body = JSON.stringify({ pid: process.pid });
    await this.ask({ method: 'POST', path: '/api/v1/targets', headers: { 'Content-Type': 'application/json' }, body });
  }
}

/** The message of an error as the server gives it. */
export function toldError(body: Buffer): string | undefined {
  try {
    return (JSON.parse(body.toString()) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}

function start(): Promise<void> {
  return new Promise((resolve, reject) => {
    const tool = toolPath();
    const server = child.spawn(tool, ['serve', '--unix', '--while', String(process.pid)], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let told = '';
    const late = setTimeout(() => {
      reject(new Error(`probing serve has opened no door for ${START_MAX / 1000} s`));
    }, START_MAX);
    server.stderr.on('data', (bytes: Buffer) => (told = (told + bytes.toString()).slice(0, 4000)));
    server.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(late);
      reject(error.code === 'ENOENT' ? new Error(`command not found: "${tool}"; set probing.path to its place`) : error);
    });
    // its one line says that its doors are open; one that runs already is as good, and then this one ends with 0
    server.stdout.once('data', () => {
      clearTimeout(late);
      resolve();
      server.stdout.destroy();
      server.stderr.destroy();
      server.unref();
    });
    server.on('close', (status) => {
      clearTimeout(late);
      if (status) reject(new Error(told.trim() || `probing serve ended with status ${status}`));
      else resolve();
    });
  });
}

function request(question: Question): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', body } = question;
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const headers = { ...question.headers, ...HOST, ...length };
    const signal = question.signal ? { signal: question.signal } : {};
    const asked = http.request({ socketPath: socketPath(), method, path: question.path, headers, ...signal }, (answer) => {
      const parts: Buffer[] = [];
      let size = 0;
      answer.on('data', (part: Buffer) => {
        size += part.length;
        if (size > ANSWER_MAX) asked.destroy(new Error('the answer is too large'));
        else parts.push(part);
      });
      answer.on('end', () => {
        if (!answer.complete) reject(new Error('the answer is cut short'));
        else resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: unpacked(answer.headers, Buffer.concat(parts)) });
      });
      answer.on('error', reject);
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Files of the page come compressed, however they are asked for. */
function unpacked(headers: http.IncomingHttpHeaders, body: Buffer): Buffer {
  return headers['content-encoding'] === 'gzip' && body.length ? zlib.gunzipSync(body, { maxOutputLength: ANSWER_MAX }) : body;
}

function upgrade(key: string, more: Readonly<Record<string, string>>): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const headers = { ...more, ...HOST, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': '13' };
    const asked = http.request({ socketPath: socketPath(), path: '/api/v1/live', headers });
    const accept = crypto
      .createHash('sha1')
      .update(key + KEY_SUFFIX)
      .digest('base64');
    asked.on('upgrade', (answer, socket: net.Socket, head) => {
      if (answer.headers['sec-websocket-accept'] !== accept) {
        socket.destroy();
        reject(new Error('the server opens no WebSocket'));
        return;
      }
      if (head.length) socket.unshift(head);
      resolve(socket);
    });
    asked.on('response', (answer) => {
      answer.resume();
      reject(new Error(`the server answers ${answer.statusCode ?? 0} to a WebSocket`));
    });
    asked.on('error', reject);
    asked.end();
  });
}

class SocketLine implements Line {
  private readonly reader = new frames.Reader();

  constructor(
    private readonly socket: net.Socket,
    private readonly text: (text: string) => void,
    closed: () => void,
  ) {
    socket.on('data', (bytes: Buffer) => {
      try {
        for (const message of this.reader.push(bytes)) this.take(message);
      } catch {
        socket.destroy();
      }
    });
    socket.on('error', () => undefined); // "close" follows
    socket.on('close', closed);
  }

  private take(message: frames.Message): void {
    if (message.opcode === frames.TEXT) this.text(message.payload.toString());
    else if (message.opcode === frames.PING) this.socket.write(frames.write(frames.PONG, message.payload));
    else if (message.opcode === frames.CLOSE) this.socket.end();
  }

  send(text: string): void {
    this.socket.write(frames.write(frames.TEXT, Buffer.from(text)));
  }

  close(): void {
    this.socket.end(frames.write(frames.CLOSE, Buffer.alloc(0)));
    this.socket.destroySoon();
  }
}
