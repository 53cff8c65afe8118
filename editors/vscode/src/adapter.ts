/*
 * How a session reaches its debug adapter: the server that the configuration names, else a
 * `probing dap` of its own on standard input and output; and which process each session is about.
 */
import * as vscode from 'vscode';
import { parseAddress } from './address';
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
  readonly body?: { readonly systemProcessId?: number };
}

/** Remembers the pid that each session's "process" event tells. */
export class Sessions implements vscode.DebugAdapterTrackerFactory {
  private readonly pids = new Map<string, number>();

  createDebugAdapterTracker(session: vscode.DebugSession): vscode.DebugAdapterTracker {
    return {
      onDidSendMessage: (message: Message) => {
        const pid = message.body?.systemProcessId;
        if (message.type === 'event' && message.event === 'process' && pid !== undefined) this.pids.set(session.id, pid);
      },
      onWillStopSession: () => void this.pids.delete(session.id),
    };
  }

  /** The process of the session that the user looks at, if there is one. */
  active(): number | undefined {
    const session = vscode.debug.activeDebugSession;
    return session && this.pids.get(session.id);
  }
}
