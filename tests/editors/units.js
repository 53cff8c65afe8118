/*
 * Parts of the VS Code extension that need no editor: node --test units.js, with OUT the folder of the compiled extension.
 * `vscode` is an empty module here; what is tested does not touch it.
 */
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const Module = require('node:module');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const load = Module._load;
Module._load = (name, ...more) => (name === 'vscode' ? {} : load(name, ...more));
const part = (name) => require(path.join(process.env.OUT, name));

test('addresses', () => {
  const { parseAddress, parseToken, isLoopback } = part('address.js');
  const tcp = (host, port) => ({ kind: 'tcp', host, port });
  for (const [given, wanted] of [
    [{}, undefined],
    [{ processId: 1 }, undefined],
    [{ address: '' }, undefined],
    [{ address: 'node7:9922' }, tcp('node7', 9922)],
    [{ address: 'node7:9922?token=0f1e' }, tcp('node7', 9922)],
    [{ address: '9922' }, tcp('127.0.0.1', 9922)],
    [{ address: 9922 }, tcp('127.0.0.1', 9922)],
    [{ address: ':9922' }, tcp('127.0.0.1', 9922)],
    [{ address: '[::1]:9922' }, tcp('::1', 9922)],
    [{ connect: { port: 9922 } }, tcp('127.0.0.1', 9922)],
    [{ connect: { host: 'node7', port: '9922' } }, tcp('node7', 9922)],
    [{ address: '/run/debug.sock' }, { kind: 'socket', path: '/run/debug.sock' }],
    [{ address: 'unix:/run/debug.sock' }, { kind: 'socket', path: '/run/debug.sock' }],
  ])
    assert.deepStrictEqual(parseAddress(given), wanted);
  assert.equal(parseToken({ address: 'node7:9922?token=0f1e' }), '0f1e');
  for (const address of ['node7:9922', '/run/debug.sock', 9922, undefined]) assert.equal(parseToken({ address }), undefined);
  for (const address of ['node7', 'node7:', 'a b', '1:2:3', 'node7:0', 'node7:65536'])
    assert.throws(() => parseAddress({ address }), undefined, address);
  for (const host of ['127.0.0.1', '127.8.0.1', 'localhost', '::1']) assert.ok(isLoopback(tcp(host, 1)), host);
  for (const host of ['0.0.0.0', '10.0.0.1', '127.0.0.1.evil.example']) assert.ok(!isLoopback(tcp(host, 1)), host);
  assert.ok(isLoopback({ kind: 'socket', path: '/x' }));
});

test('the list of processes', () => {
  const { order, scriptName } = part('processes.js');
  assert.strictEqual(scriptName('/usr/bin/python3 -u /home/me/train.py --lr 0.1'), 'train.py');
  assert.strictEqual(scriptName('/usr/bin/python3'), 'python3');
  assert.strictEqual(scriptName(''), '');
  const one = (rank, started) => ({ rank, started });
  const list = [one(null, 5), one(1, 1), one(null, 9), one(0, 2)].sort(order);
  assert.deepStrictEqual(list, [one(0, 2), one(1, 1), one(null, 9), one(null, 5)]);
});

test('a process of the list', async () => {
  const { item } = part('processes.js');
  const proc = fs.mkdtempSync(path.join(os.tmpdir(), 'probing-units-'));
  try {
    fs.mkdirSync(path.join(proc, '77', 'fd'), { recursive: true });
    for (const [number, to] of [['3', '/dev/nvidia2'], ['4', '/dev/nvidia0'], ['5', '/dev/nvidia2'], ['6', '/dev/nvidiactl'], ['7', '/dev/null']])
      fs.symlinkSync(to, path.join(proc, '77', 'fd', number));
    const one = { pid: 77, command: 'python3 train.py', name: 'python3', python: '3.12', rss: 3 << 20, rank: 1, world_size: 8, has_probe: true };
    const shown = await item(one, proc);
    assert.strictEqual(shown.label, 'rank 1/8 · train.py');
    assert.strictEqual(shown.description, 'pid 77 · GPU 0, 2 · Python 3.12 · 3 MiB · has a probe');
    const other = await item({ ...one, pid: 78, rank: null, python: null, has_probe: false }, proc);
    assert.deepStrictEqual([other.label, other.description], ['train.py', 'pid 78 · Python ? · 3 MiB']);
  } finally {
    fs.rmSync(proc, { recursive: true });
  }
});

test('a refused token', () => {
  const { isTokenRefused } = part('adapter.js');
  const { tokenKey } = part('address.js');
  const answer = { type: 'response', command: 'attach', success: false, message: 'the token is wrong' };
  assert.ok(isTokenRefused(answer));
  for (const other of [{ success: true }, { command: 'evaluate' }, { message: 'no such process' }, { type: 'event' }])
    assert.ok(!isTokenRefused({ ...answer, ...other }));
  assert.strictEqual(tokenKey({ kind: 'tcp', host: 'node7', port: 9922 }), 'token node7:9922');
});

test('inline values', () => {
  const { functionStart, namesIn } = part('inline.js');
  const lines = ['x = 1', 'class A:', '    async def f(self):', '        if self:', '            y = 2', '', '            z = y'];
  assert.strictEqual(functionStart((i) => lines[i], 6), 2);
  assert.strictEqual(functionStart((i) => lines[i], 0), 0);
  const names = (text) => namesIn(text).map(({ name, column }) => `${name}@${column}`);
  assert.deepStrictEqual(names('  loss = f(a.b, "text c") if d else 1  # comment'), ['loss@2', 'a@11', 'd@29']);
});

test('what is asked of an array', () => {
  const { viewExpression, parseView } = part('tensor/ask.js');
  const asked = viewExpression('line\n"text"', 'w[0]', { index: [1, 2], row: 3, column: 4, rows: 5, columns: 6 });
  assert.ok(asked.includes('"line\\n\\"text\\""') && asked.includes('(w[0])') && asked.includes('[1, 2], 3, 4, 5, 6'));
  assert.ok(!asked.includes('\n'));
  assert.deepStrictEqual(parseView('{"a":1}'), { a: 1 });
  assert.deepStrictEqual(parseView("'{\"a\":1}'"), { a: 1 });
  assert.throws(() => parseView('{"a":'), /cut/);
  assert.throws(() => parseView('NameError: no w'), /NameError: no w/);
});

test('frames of a WebSocket', () => {
  const { Reader, write, TEXT, PING } = part('page/frames.js');
  const served = (first, payload, head) => Buffer.concat([Buffer.from([first, ...head]), payload]);
  const whole = (reader, bytes) => [...reader.push(bytes)].map((one) => [one.opcode, one.payload.toString()]);
  const long = Buffer.alloc(70000, 'x');
  const all = Buffer.concat([
    served(0x81, Buffer.from('one'), [3]),
    served(0x01, Buffer.from('tw'), [2]),
    served(0x89, Buffer.from('?'), [1]), // a ping within a message
    served(0x80, Buffer.from('o'), [1]),
    served(0x81, long.subarray(0, 300), [126, 1, 44]),
    served(0x81, long, [127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]),
  ]);
  const wanted = [[TEXT, 'one'], [PING, '?'], [TEXT, 'two'], [TEXT, long.subarray(0, 300).toString()], [TEXT, long.toString()]];
  assert.deepStrictEqual(whole(new Reader(), all), wanted);
  const reader = new Reader();
  const slowly = [];
  for (let at = 0; at < all.length; at += at < 400 ? 1 : 999) slowly.push(...whole(reader, all.subarray(at, at < 400 ? at + 1 : at + 999)));
  assert.deepStrictEqual(slowly, wanted);
  for (const bad of [[0xc1, 0], [0x81, 0x80], [0x81, 127, 0, 0, 1, 0, 0, 0, 0, 0]]) assert.throws(() => whole(new Reader(), Buffer.from(bad)));
  for (const size of [0, 125, 126, 65535, 65536]) {
    const frame = write(TEXT, long.subarray(0, size));
    const at = frame.length - size;
    assert.strictEqual(frame[1] & 0x80, 0x80); // a client's are masked
    const mask = frame.subarray(at - 4, at);
    assert.ok(frame.subarray(at).every((byte, i) => (byte ^ mask[i & 3]) === 'x'.charCodeAt(0)));
  }
});

test('where the server is', () => {
  const { socketPath, toldError } = part('page/server.js');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'runtime-'));
  const uid = os.userInfo().uid;
  try {
    assert.strictEqual(socketPath(folder, uid), path.join(folder, 'probing', 'serve.sock'));
    for (const other of [undefined, '', 'run', path.join(folder, 'absent')]) assert.strictEqual(socketPath(other, 4294967), '/tmp/probing-4294967/serve.sock');
    assert.strictEqual(socketPath(folder, 4294967), '/tmp/probing-4294967/serve.sock'); // somebody else's
    fs.mkdirSync(path.join(folder, 'probing'), { mode: 0o755 });
    assert.throws(() => socketPath(folder, uid), /not a folder of yours alone/);
    fs.rmdirSync(path.join(folder, 'probing'));
    fs.symlinkSync('/tmp', path.join(folder, 'probing'));
    assert.throws(() => socketPath(folder, uid), /not a folder of yours alone/);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
  assert.strictEqual(toldError(Buffer.from('{"error": {"message": "gone"}}')), 'gone');
  assert.strictEqual(toldError(Buffer.from('<html>')), undefined);
});

test('rows as HTML', () => {
  const { tableHtml } = part('rows.js');
  const html = tableHtml('<a>', [{ 'b&': '<i>"\'', c: null, d: 1, e: [1] }]);
  assert.ok(html.includes('&lt;a&gt;') && html.includes('<th>b&amp;</th>') && html.includes('<td>&lt;i&gt;&quot;&#39;</td>'));
  assert.ok(html.includes('NULL') && html.includes('<td class="number">1</td>') && html.includes('<td>[1]</td>'));
  assert.ok(tableHtml('t', []).includes('0 rows'));
});
