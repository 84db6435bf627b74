// Starts `ddpfix lsp` and asks for the reason of an ignored finding; all else is the server's.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGES = ["python", "yaml", "json", "shellscript", "dockerfile", "markdown"];
let client;

function make() {
  const settings = vscode.workspace.getConfiguration("ddpfix");
  const [command, ...args] = settings.get("command");
  return new LanguageClient(
    "ddpfix",
    "ddpfix",
    { command, args },
    {
      documentSelector: LANGUAGES.map((language) => ({ scheme: "file", language })),
      initializationOptions: { ...settings, askForReason: true },
      synchronize: { configurationSection: "ddpfix" },
    }
  );
}

async function start() {
  client = make();
  try {
    await client.start();
  } catch (error) {
    const how = "Install it with `pip install 'ddpfix[lsp]'`, or say in `ddpfix.command` where it is.";
    vscode.window.showErrorMessage(`ddpfix could not be started: ${error.message || error}. ${how}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running && running.needsStop()) {
    await running.stop();
  }
}

async function askForReason(uri, finding) {
  const reason = await vscode.window.showInputBox({
    prompt: "Why is this finding ignored? The reason goes into the comment.",
    placeHolder: "only one process runs this",
  });
  if (reason) {
    await vscode.commands.executeCommand("ddpfix.ignore", uri, finding, reason);
  }
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("ddpfix.askForReason", askForReason),
    vscode.commands.registerCommand("ddpfix.restart", async () => {
      await stop();
      await start();
    }),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("ddpfix.command")) {
        await stop();
        await start();
      }
    })
  );
  await start();
}

module.exports = { activate, deactivate: stop };
