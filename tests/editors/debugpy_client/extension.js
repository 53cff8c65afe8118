/*
 * What the stock Python Debugger does with an attach by "connect" on Linux: no adapter is started,
 * VS Code talks to the address itself, with the same attributes added to the configuration.
 */
'use strict';
const vscode = require('vscode');

const complete = (folder, configuration) => {
  const given = configuration;
  const options = [];
  given.workspaceFolder = folder && folder.uri.fsPath;
  given.showReturnValue = given.showReturnValue !== false;
  given.redirectOutput = given.redirectOutput !== false;
  if (given.justMyCode === undefined) given.justMyCode = true;
  if (given.redirectOutput) options.push('RedirectOutput');
  if (given.showReturnValue) options.push('ShowReturnValue');
  given.debugOptions = [...options, 'UnixClient'];
  given.clientOS = 'unix';
  // Local and remote are one machine: the folder maps to itself.
  if (!given.pathMappings && folder)
    given.pathMappings = [{ localRoot: folder.uri.fsPath, remoteRoot: folder.uri.fsPath }];
  return given;
};

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('debugpy', { resolveDebugConfiguration: complete }),
    vscode.debug.registerDebugAdapterDescriptorFactory('debugpy', {
      createDebugAdapterDescriptor: (session) => {
        const { host, port } = session.configuration.connect;
        return new vscode.DebugAdapterServer(Number(port), host || '127.0.0.1');
      },
    }),
  );
};
