/*
 * What the stock Python Debugger does with an attach by "connect" on Linux: no adapter is started,
 * VS Code talks to the address itself; the configuration gets the same attributes beside the user's.
 */
'use strict';
const vscode = require('vscode');

const complete = (folder, configuration) => {
  const given = configuration;
  given.debugOptions = given.debugOptions || [];
  if (given.justMyCode === undefined) given.justMyCode = true; // of its settings
  given.showReturnValue = given.showReturnValue !== false;
  given.workspaceFolder = folder && folder.uri.fsPath;
  if (given.redirectOutput !== false) given.debugOptions.push('RedirectOutput');
  given.clientOS = 'unix';
  if (given.showReturnValue) given.debugOptions.push('ShowReturnValue');
  return given;
};

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('debugpy', { resolveDebugConfigurationWithSubstitutedVariables: complete }),
    vscode.debug.registerDebugAdapterDescriptorFactory('debugpy', {
      createDebugAdapterDescriptor: (session) => {
        const { host, port } = session.configuration.connect;
        return new vscode.DebugAdapterServer(Number(port), host || '127.0.0.1');
      },
    }),
  );
};
