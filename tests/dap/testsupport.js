// The tests that adapters of VS Code are tested with: testsupport.js SCENARIO JSON, with DebugClient of
// @vscode/debugadapter-testsupport.  Prints "ok SCENARIO"; anything else is a failure.
"use strict";

const assert = require("assert");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const told = JSON.parse(process.argv[3]);
const source = { path: told.path };

async function attach(client, ...breakpoints) {
    const initialized = client.waitForEvent("initialized");
    await client.initializeRequest();
    const attached = client.attachRequest({ processId: told.pid });
    await initialized;
    const answer = await client.setBreakpointsRequest({ source, breakpoints });
    await client.configurationDoneRequest();
    await attached;
    return answer.body.breakpoints;
}

// The program runs a command at once that comes.
function say(command) {
    process.stdout.write("say " + command + "\n");
}

async function stoppedAt(client, reason, line) {
    const answer = await client.assertStoppedLocation(reason, { path: told.path, line });
    return answer.body.stackFrames[0];
}

const scenarios = {
    async breakpoint(client) {
        const [point] = await attach(client, { line: told.marks.cold });
        assert.strictEqual(point.verified, true);
        const event = client.waitForEvent("stopped");
        say("cold");
        const { threadId } = (await event).body;
        for (let i = 0; i < 2; i++)
            await Promise.all([client.continueRequest({ threadId }), stoppedAt(client, "breakpoint", told.marks.cold)]);
        await client.setBreakpointsRequest({ source, breakpoints: [] });
        await client.continueRequest({ threadId });
    },

    async stepping(client) {
        await attach(client, { line: told.marks.step_b });
        const event = client.waitForEvent("stopped");
        say("steps");
        const { threadId } = (await event).body;
        await Promise.all([client.nextRequest({ threadId }), stoppedAt(client, "step", told.marks.step_c)]);
        await Promise.all([client.stepInRequest({ threadId }), client.waitForEvent("stopped")]);
        await Promise.all([client.stepOutRequest({ threadId }), client.waitForEvent("stopped")]);
        await client.setBreakpointsRequest({ source, breakpoints: [] });
        await client.continueRequest({ threadId });
    },

    async values(client) {
        await attach(client, { line: told.marks.cold, condition: "i == 2" });
        const stopped = stoppedAt(client, "breakpoint", told.marks.cold);
        const event = client.waitForEvent("stopped");
        say("cold");
        const frame = await stopped;
        const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
        const { variables } = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body;
        assert.strictEqual(variables.find((one) => one.name === "i").value, "2");
        await client.setVariableRequest({ variablesReference: scopes[0].variablesReference, name: "i", value: "21" });
        const answer = await client.evaluateRequest({ expression: "i * 2", frameId: frame.id });
        assert.strictEqual(answer.body.result, "42");
        await client.continueRequest({ threadId: (await event).body.threadId });
    },

    async output(client) {
        await attach(client, { line: told.marks.cold, logMessage: "seen {i}" });
        const output = client.assertOutput("console", "seen 0");
        say("cold");
        await output;
    },

    async exceptions(client) {
        await attach(client);
        await client.setExceptionBreakpointsRequest({ filters: ["raised"] });
        const event = client.waitForEvent("stopped");
        say("caught");
        const { threadId, reason } = (await event).body;
        assert.strictEqual(reason, "exception");
        const info = await client.exceptionInfoRequest({ threadId });
        assert.match(info.body.exceptionId, /ValueError/);
        await client.setExceptionBreakpointsRequest({ filters: [] });
        await client.continueRequest({ threadId });
    },

    async launch(client) {
        await client.hitBreakpoint({ program: told.path, python: told.python, args: ["calls"] },
            { path: told.path, line: told.marks.main }); // verified by its text: its code is not there yet
        // client.stop() disconnects, which ends the program; a second request would meet an adapter that has gone.
    },

    async unknown(client) {
        await client.initializeRequest();
        await assert.rejects(client.customRequest("noSuchRequest"));
    },
};

async function main() {
    const client = new DebugClient(told.probing, "dap", "probing");
    client.defaultTimeout = 120000;
    await client.start();
    try {
        await scenarios[process.argv[2]](client);
    } finally {
        await client.stop();
    }
    process.stdout.write("ok " + process.argv[2] + "\n");
}

main().catch((error) => {
    process.stderr.write((error.stack || String(error)) + "\n");
    process.exit(1);
});
