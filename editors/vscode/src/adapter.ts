/*
 * How a session reaches its debug adapter: the server that the configuration names, or a `probing dap`
 * of its own on standard input and output.  From the messages we learn which process each session
 * debugs, and that a token was refused.
 */
import * as vscode from 'vscode';
import { parseAddress, tokenKey } from './address';
import { toolPath } from './tool';

export class AdapterFactory implements vscode.DebugAdapterDescriptorFactory {
  createDebugAdapterDescriptor(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
    const server = parseAddress(session.configuration);
    if (server?.kind === 'tcp') return new vscode.DebugAdapterServer(server.port, server.host);
    if (server?.kind === 'socket') return new vscode.DebugAdapterNamedPipeServer(server.path);
    const folder = session.workspaceFolder?.uri.fsPath;
    return new vscode.DebugAdapterExecutable(toolPath(), ['dap'], folder === undefined ? {} : { cwd: folder });
  }
}

interface Message {
  readonly type?: string;
  readonly event?: string;
  readonly command?: string;
  readonly success?: boolean;
  readonly message?: string;
  readonly body?: { readonly systemProcessId?: number };
}

/** Whether an answer says that attach needs another token. */
export function isTokenRefused(message: Message): boolean {
  return message.type === 'response' && message.command === 'attach' && message.success === false && /\btoken\b/.test(message.message ?? '');
}

export class Sessions implements vscode.DebugAdapterTrackerFactory {
  private readonly pids = new Map<string, number>();

  constructor(private readonly secrets: vscode.SecretStorage) {}

  createDebugAdapterTracker(session: vscode.DebugSession): vscode.DebugAdapterTracker {
    return {
      onDidSendMessage: (message: Message) => {
        const pid = message.body?.systemProcessId;
        if (message.type === 'event' && message.event === 'process' && pid !== undefined) this.pids.set(session.id, pid);
        if (isTokenRefused(message)) void this.forgetToken(session.configuration);
      },
      onWillStopSession: () => void this.pids.delete(session.id),
    };
  }

  /** The next attempt then asks for the token. */
  private async forgetToken(configuration: vscode.DebugConfiguration): Promise<void> {
    const server = parseAddress(configuration);
    if (server) await this.secrets.delete(tokenKey(server));
  }

  /** Whether a session debugs this process. */
  has(pid: number): boolean {
    return [...this.pids.values()].includes(pid);
  }

  /** The process of the active session, if there is one. */
  active(): number | undefined {
    const session = vscode.debug.activeDebugSession;
    return session && this.pids.get(session.id);
  }
}
