/* probing mcp: becomes probing-serve, which has the tools for agents. */
#include "cli/print/out.h"
#include "cli/serve/program.h"

enum { ALLOW, CONFIG };

static const struct prb_option options[] = {
    [ALLOW] = {0, "allow", "GRANT",
               "eval: run Python code in processes, the user is asked each time; eval-unasked: "
               "without asking",
               "eval eval-unasked"},
    [CONFIG] = {0, "config", NULL, "print what the usual clients need to know, and end", NULL},
    {0},
};

static void print_config(void)
{
    puts("Most clients (mcp.json, .mcp.json, settings):\n\n"
         "{\"mcpServers\": {\"probing\": {\"command\": \"probing\", \"args\": [\"mcp\"]}}}\n\n"
         "VS Code (.vscode/mcp.json):\n\n"
         "{\"servers\": {\"probing\": {\"type\": \"stdio\", \"command\": \"probing\", \"args\": "
         "[\"mcp\"]}}}\n\n"
         "On another machine, over ssh:\n\n"
         "{\"mcpServers\": {\"probing\": {\"command\": \"ssh\", \"args\": [\"HOST\", \"probing\", "
         "\"mcp\"]}}}\n\n"
         "Over HTTP, of a `probing serve`: POST /mcp, header `Authorization: Bearer TOKEN`.");
}

static bool run_mcp(const struct prb_run *run, struct prb_error *err)
{
    size_t count = 1;
    PRB_AUTO_FREE const char **words = calloc(run->argument_count + 6, sizeof *words);
    if (!words)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (run->options[CONFIG].count) {
        print_config();
        return true;
    }
    words[count++] = "--mcp";
    if (run->options[ALLOW].count) {
        words[count++] = "--allow";
        words[count++] = run->options[ALLOW].text;
    }
    words[count++] = "--";
    for (size_t i = 0; i < run->argument_count; i++)
        words[count++] = run->arguments[i];
    return prb_serve_become(words, err);
}

const struct prb_command prb_command_mcp = {
    .name = "mcp",
    .aliases = "",
    .summary = "tools for agents, on standard input and output (MCP)",
    .arguments = "[FILE]...",
    .arguments_max = PRB_WORDS_MAX,
    .target = PRB_USES_NO_TARGET,
    .description =
        "Speaks the Model Context Protocol, 2026-07-28 and the versions before it: an agent's "
        "client "
        "starts it. The tools are processes, diagnose (what `skill run` finds), stacks, query, "
        "schema "
        "and profile; they only look. With --allow eval there is eval, too, which runs code in a "
        "process: the user is asked each time, where the client can ask. FILEs are dumps and cores "
        "that are targets, too, as file:NAME.\n\n"
        "A result has at most 20,000 characters. `probing serve` has the same tools at POST /mcp.",
    .options = options,
    .examples = "probing mcp --config\n"
                "probing mcp crash-1.snap",
    .run = run_mcp,
};
