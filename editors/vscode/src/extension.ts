/*
 * The parts of the extension, put together.  The extension is thin: `probing dap` debugs, and `probing`
 * lists, injects, prints stacks and answers SQL; `probing serve` has the page.
 */
import * as vscode from 'vscode';
import { AdapterFactory, Sessions } from './adapter';
import { registerCommands } from './commands';
import { ConfigurationProvider } from './configuration';
import { InlineValues } from './inline';
import { registerPage } from './page/panel';
import { pickProcess } from './processes';
import { registerTensorView } from './tensor/view';

export function activate(context: vscode.ExtensionContext): void {
  const sessions = new Sessions(context.secrets);
  const provider = new ConfigurationProvider(context.secrets);
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('probing', new AdapterFactory()),
    vscode.debug.registerDebugAdapterTrackerFactory('probing', sessions),
    vscode.debug.registerDebugConfigurationProvider('probing', provider),
    vscode.debug.registerDebugConfigurationProvider(
      'probing',
      provider,
      vscode.DebugConfigurationProviderTriggerKind.Dynamic,
    ),
    vscode.languages.registerInlineValuesProvider('python', new InlineValues()),
    // for ${command:pickProcess}, whose value must be a string
    vscode.commands.registerCommand('probing.pickProcess', async () => (await pickProcess())?.toString()),
  );
  registerCommands(context, sessions);
  registerTensorView(context);
  registerPage(context, sessions);
}
