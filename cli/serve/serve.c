/* probing serve: becomes probing-serve, a program of its own that links the server's library. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/serve/program.h"

#define WORDS (2 * PRB_OPTIONS_MAX)
#define NAME_MAX_BYTES 20 /* of an option */

static const struct prb_option options[] = {
#define OPTION(id, letter, name, argument, help) {letter, name, argument, help, NULL},
#include "serve/options.def"
#undef OPTION
    {0},
};

static bool run_serve(const struct prb_run *run, struct prb_error *err)
{
    char names[sizeof options / sizeof *options][NAME_MAX_BYTES];
    size_t room = WORDS + 2 + 4 * PRB_REPEATS_MAX + run->argument_count, count = 1;
    PRB_AUTO_FREE const char **words = calloc(room, sizeof *words);
    if (!words)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; options[i].name; i++) {
        snprintf(names[i], NAME_MAX_BYTES, "--%s", options[i].name);
        for (unsigned n = 0; n < run->options[i].count; n++) {
            words[count++] = names[i];
            if (options[i].argument)
                words[count++] = run->options[i].texts[n];
        }
    }
    if (run->globals[PRB_GLOBAL_BUS].count) {
        words[count++] = "--bus";
        words[count++] = run->globals[PRB_GLOBAL_BUS].text;
    }
    words[count++] = "--";
    for (size_t i = 0; i < run->argument_count; i++)
        words[count++] = run->arguments[i];
    return prb_serve_become(words, err);
}

const struct prb_command prb_command_serve = {
    .name = "serve",
    .aliases = "",
    .summary = "answer over HTTP and as plain text",
    .arguments = "[FILE]...",
    .arguments_max = PRB_WORDS_MAX,
    .target = PRB_USES_NO_TARGET,
    .description =
        "Serves all processes that you may look at, and the dumps and cores named, in the "
        "foreground until Ctrl-C. Prints one line, its address; the part behind # is the token. "
        "Programs show it as `Authorization: Bearer TOKEN`; on the Unix socket serve.sock in "
        "$XDG_RUNTIME_DIR/probing (else /tmp/probing-UID) you need none. There is one server for a "
        "user on a machine: a second one prints the address of the first.\n\n"
        "GET /api/v1/processes, /api/v1/p/PID/stacks, /query?sql=..., /profile?seconds=5 and so "
        "on; ?format=text is what the command line prints. The same port takes plain text: "
        "`nc 127.0.0.1 PORT`, then help.",
    .options = options,
    .examples = "probing serve\n"
                "probing serve --unix  # then curl --unix-socket .../serve.sock "
                "http://localhost/api/v1/processes\n"
                "probing serve --address 0.0.0.0:3344 --cert server.pem --key server.key\n"
                "probing serve --url  # the address of the one that runs\n"
                "probing serve --url --allow eval  # with a token that may run code\n"
                "probing -t 127.0.0.1:3344 -p 12345 backtrace  # ask a server",
    .run = run_serve,
};
