/*
 * Debug configurations of type "probing": defaults, and questions to the user about what an entry does
 * not say.
 */
import * as vscode from 'vscode';
import { parseAddress, parseToken, isLoopback, tokenKey } from './address';
import { pickProcess } from './processes';
import { attempt, runTool } from './tool';

const TARGETS = ['processId', 'processName', 'address', 'connect', 'core', 'snapshot'] as const;

/** The token of a remote server: asked for once, then kept in the secret storage (adapter.ts removes a refused one). */
async function addToken(configuration: vscode.DebugConfiguration, secrets: vscode.SecretStorage): Promise<boolean> {
  const server = parseAddress(configuration);
  configuration['token'] ??= parseToken(configuration);
  if (!server || isLoopback(server) || configuration['token'] !== undefined) return true;
  const key = tokenKey(server);
  let token = await secrets.get(key);
  if (!token) {
    token = await vscode.window.showInputBox({ title: `Token of ${key.slice(6)}`, password: true, ignoreFocusOut: true });
    if (token === undefined) return false;
    await secrets.store(key, token);
  }
  configuration['token'] = token;
  return true;
}

export class ConfigurationProvider implements vscode.DebugConfigurationProvider {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [{ name: 'Attach to a training job', type: 'probing', request: 'attach', processId: '${command:pickProcess}' }];
  }

  resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration {
    if (!configuration.type && !configuration.request) // F5 without a launch.json
      return { name: 'Attach to a training job', type: 'probing', request: 'attach', processId: '${command:pickProcess}' };
    return configuration;
  }

  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    // checked here, where the remedy is known: a failing spawn could not say it
    const tool = parseAddress(configuration) ? '' : await attempt('Probing', () => runTool(['--version']));
    if (tool === undefined) return undefined;
    if (configuration.request === 'launch') {
      configuration['cwd'] ??= folder?.uri.fsPath;
      return configuration;
    }
    if (!TARGETS.some((name) => configuration[name] !== undefined)) {
      const pid = await pickProcess();
      if (pid === undefined) return undefined;
      configuration['processId'] = pid;
    }
    if (typeof configuration['processId'] === 'string') configuration['processId'] = Number(configuration['processId']);
    return (await addToken(configuration, this.secrets)) ? configuration : undefined;
  }
}
