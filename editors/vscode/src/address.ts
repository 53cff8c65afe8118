/*
 * Where a debug adapter listens: "HOST:PORT", "[::1]:PORT", ":PORT", a port, or the path of a Unix
 * socket; or the Python Debugger's connect: {host, port}.  Behind an address may stand its token, as
 * the server printed it: "HOST:PORT?token=TOKEN".
 */
export type Place = { kind: 'tcp'; host: string; port: number } | { kind: 'socket'; path: string };

type Addresses = Readonly<Record<string, unknown>>;

const TOKEN = /\?token=([^?&/]+)$/;

/** The token that stands behind the address. */
export function parseToken(configuration: Addresses): string | undefined {
  const address = configuration['address'];
  return typeof address === 'string' ? TOKEN.exec(address)?.[1] : undefined;
}

function tcp(host: string, port: unknown): Place {
  const number = Number(port);
  if (!Number.isInteger(number) || number < 1 || number > 65535) throw new Error(`no such port: ${String(port)}`);
  return { kind: 'tcp', host: host || '127.0.0.1', port: number };
}

/** Undefined: the configuration names no address.  Throws when it is none. */
export function parseAddress(configuration: Addresses): Place | undefined {
  const connect = configuration['connect'];
  if (typeof connect === 'object' && connect !== null) {
    const { host, port } = connect as { host?: unknown; port?: unknown };
    return tcp(typeof host === 'string' ? host : '', port);
  }
  const given = configuration['address'];
  const address = typeof given === 'string' ? given.replace(TOKEN, '') : given;
  if (typeof address === 'number') return tcp('', address);
  if (typeof address !== 'string' || !address) return undefined;
  if (address.includes('/')) return { kind: 'socket', path: address.replace(/^unix:/, '') };
  const parts = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(/^\d+$/.test(address) ? `:${address}` : address);
  if (!parts) throw new Error(`"${address}" is neither HOST:PORT nor the path of a socket`);
  return tcp(parts[1] ?? parts[2] ?? '', parts[3]);
}

export function isLoopback(place: Place): boolean {
  return place.kind === 'socket' || /^(localhost|::1|127(\.\d+){3})$/.test(place.host);
}

/** The name under which the token of a server is kept. */
export function tokenKey(place: Place): string {
  return `token ${place.kind === 'socket' ? place.path : `${place.host}:${place.port}`}`;
}
