/* probing serve: becomes probing-serve, a program of its own that links the server's library. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

#define WORDS 16

enum { ADDRESS, UNIX, ALLOW, TOKEN_FILE, URL };

static const struct prb_option options[] = {
    [ADDRESS] = {'a', "address", "HOST:PORT",
                 "where to listen; 127.0.0.1 and a free port if not given", NULL},
    [UNIX] = {0, "unix", NULL, "the Unix socket alone, no TCP", NULL},
    [ALLOW] = {0, "allow", "GRANTS",
               "what who comes by TCP may do beside looking: control, eval, or both with a comma",
               NULL},
    [TOKEN_FILE] = {0, "token-file", "FILE",
                    "the token is its first line; else that of PROBING_AUTH_TOKEN, else a new one",
                    NULL},
    [URL] = {0, "url", NULL, "print the address of your server that runs, with its token", NULL},
    {0},
};

/* Beside this program; in the build one folder above. */
static bool find_program(char out[PATH_MAX], struct prb_error *err)
{
    static const char *const places[] = {"probing-serve", "../probing-serve"};
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    bool build = slash && slash - own >= 6 && strncmp(slash - 6, "/.libs", 6) == 0;
    if (slash)
        *slash = '\0';
    int len = snprintf(out, PATH_MAX, "%s/%s", own, places[build]);
    return (len < PATH_MAX && access(out, X_OK) == 0) ||
           prb_cli_fail(err, PRB_UNSUPPORTED, "it is built unless configure had --without-serve",
                        "the server's program is not there: %s", out);
}

static bool run_serve(const struct prb_run *run, struct prb_error *err)
{
    char program[PATH_MAX];
    size_t room = WORDS + run->argument_count, count = 0;
    PRB_AUTO_FREE const char **words = calloc(room, sizeof *words);
    if (!words)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!find_program(program, err))
        return false;
    words[count++] = program;
    for (size_t i = 0; options[i].name; i++) {
        static const char *const names[] = {"--address", "--unix", "--allow", "--token-file",
                                            "--url"};
        if (!run->options[i].count)
            continue;
        words[count++] = names[i];
        if (options[i].argument)
            words[count++] = run->options[i].text;
    }
    words[count++] = "--";
    for (size_t i = 0; i < run->argument_count; i++)
        words[count++] = run->arguments[i];
    fflush(stdout);
    execv(program, (char *const *)words);
    return prb_cli_fail(err, PRB_IO, "", "%s cannot be run: %s", program, strerror(errno));
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
                "probing serve --url  # the address of the one that runs",
    .run = run_serve,
};
