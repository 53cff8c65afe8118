/*
 * Where a debug adapter listens: "HOST:PORT", "[::1]:PORT", ":PORT", a port, or the path of a Unix
 * socket; or the Python Debugger's connect: {host, port}.  The token may follow the address, as the
 * server printed it: "HOST:PORT?token=TOKEN".
 */
export type Address = { kind: 'tcp'; host: string; port: number } | { kind: 'socket'; path: string };

type Configuration = Readonly<Record<string, unknown>>;

const TOKEN = /\?token=([^?&/]+)$/;

/** The token that follows the address. */
export function parseToken(configuration: Configuration): string | undefined {
  const address = configuration['address'];
  return typeof address === 'string' ? TOKEN.exec(address)?.[1] : undefined;
}

function tcp(host: string, port: unknown): Address {
  const number = Number(port);
  if (!Number.isInteger(number) || number < 1 || number > 65535) throw new Error(`the port must be between 1 and 65535, not ${String(port)}`);
  return { kind: 'tcp', host: host || '127.0.0.1', port: number };
}

/** Undefined: the configuration names no address.  Throws when the address cannot be parsed. */
export function parseAddress(configuration: Configuration): Address | undefined {
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

export function isLoopback(server: Address): boolean {
  return server.kind === 'socket' || /^(localhost|::1|127(\.\d+){3})$/.test(server.host);
}

/** The name under which the token of a server is stored. */
export function tokenKey(server: Address): string {
  return `token ${server.kind === 'socket' ? server.path : `${server.host}:${server.port}`}`;
}
