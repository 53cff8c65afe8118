/*
 * How a session reaches its debug adapter: the server that the configuration names, else a
 * `probing dap` of its own on standard input and output; and what is learned by listening: the process
 * that each session is about, and that a token was refused.
 */
import * as vscode from 'vscode';
import { parseAddress, tokenKey } from './address';
import { toolPath } from './tool';

export class AdapterFactory implements vscode.DebugAdapterDescriptorFactory {
  createDebugAdapterDescriptor(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
    const place = parseAddress(session.configuration);
    if (place?.kind === 'tcp') return new vscode.DebugAdapterServer(place.port, place.host);
    if (place?.kind === 'socket') return new vscode.DebugAdapterNamedPipeServer(place.path);
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

/** Whether an answer says that attach wanted another token. */
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

  /** So that the next attempt asks for it. */
  private async forgetToken(configuration: vscode.DebugConfiguration): Promise<void> {
    const place = parseAddress(configuration);
    if (place) await this.secrets.delete(tokenKey(place));
  }

  /** The process of the session that the user looks at, if there is one. */
  active(): number | undefined {
    const session = vscode.debug.activeDebugSession;
    return session && this.pids.get(session.id);
  }
}
