/* The frames of a WebSocket, RFC 6455 section 5: those of a client are masked, those of a server are not. */
import * as crypto from 'node:crypto';

const MESSAGE_MAX = 80 << 20; // bytes; the server's own bound is 64 MB

export const TEXT = 1;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

export function write(opcode: number, payload: Buffer): Buffer {
  const wide = payload.length > 0xffff;
  const head = Buffer.alloc(payload.length < 126 ? 2 : wide ? 10 : 4);
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | (payload.length < 126 ? payload.length : wide ? 127 : 126);
  if (wide) head.writeBigUInt64BE(BigInt(payload.length), 2);
  else if (payload.length >= 126) head.writeUInt16BE(payload.length, 2);
  const mask = crypto.randomBytes(4);
  const masked = Buffer.from(payload);
  for (let i = 0; i < masked.length; i++) masked[i] = (masked[i] ?? 0) ^ (mask[i & 3] ?? 0);
  return Buffer.concat([head, mask, masked]);
}

export interface Message {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** Puts messages together from bytes as they come.  Throws at what no server of ours sends. */
export class Reader {
  private chunks: Buffer[] = [];
  private have = 0;
  private parts: Buffer[] = []; // of a message in several frames
  private size = 0;
  private opcode = 0;

  *push(bytes: Buffer): Generator<Message> {
    this.chunks.push(bytes);
    this.have += bytes.length;
    for (let frame = this.frame(); frame; frame = this.frame()) {
      if (frame.opcode >= CLOSE) {
        yield { opcode: frame.opcode, payload: frame.payload };
        continue;
      }
      if (frame.opcode) this.opcode = frame.opcode;
      this.parts.push(frame.payload);
      this.size += frame.payload.length;
      if (this.size > MESSAGE_MAX) throw new Error('the server sends too much at once');
      if (!frame.last) continue;
      const payload = Buffer.concat(this.parts);
      this.parts = [];
      this.size = 0;
      yield { opcode: this.opcode, payload };
    }
  }

  /** The first bytes, in one piece. */
  private peek(count: number): Buffer | undefined {
    if (this.have < count) return undefined;
    if ((this.chunks[0]?.length ?? 0) < count) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0];
  }

  private frame(): (Message & { last: boolean }) | undefined {
    const two = this.peek(2);
    if (!two) return undefined;
    const first = two.readUInt8(0);
    const short = two.readUInt8(1);
    if (first & 0x70 || short & 0x80) throw new Error('the server sends no frames of a WebSocket');
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    const start = this.peek(head);
    if (!start) return undefined;
    const length = short < 126 ? short : short === 126 ? start.readUInt16BE(2) : Number(start.readBigUInt64BE(2));
    if (length > MESSAGE_MAX) throw new Error('the server sends too much at once');
    const whole = this.peek(head + length);
    if (!whole) return undefined;
    this.chunks[0] = whole.subarray(head + length);
    this.have -= head + length;
    return { opcode: first & 0x0f, last: (first & 0x80) !== 0, payload: whole.subarray(head, head + length) };
  }
}
