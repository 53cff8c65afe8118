/* Serving debuggers from the command line: see serve.h. */
#include "cli/debug/serve.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "cli/ends.h"
#include "cli/print/out.h"

#define TOKEN_MAX 4096
static const char variable[] = "PROBING_DEBUG_TOKEN";

/* Neither programs that are launched nor those who read /proc/PID/environ need it. */
static void hide_variable(void)
{
    char *value = getenv(variable);
    if (value)
        explicit_bzero(value, strlen(value));
    unsetenv(variable);
}

static void note_readers(FILE *from, const char *file)
{
    char note[400];
    struct stat st;
    if (fstat(fileno(from), &st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 077))
        return;
    snprintf(note, sizeof note, "others than its owner may open %.300s: chmod 600", file);
    prb_out_note(note);
}

bool prb_serve_token(const char *file, char **token_out, struct prb_error *err)
{
    char text[TOKEN_MAX + 1];
    const char *given = getenv(variable);
    if (file) {
        PRB_AUTO(file) FILE *from = fopen(file, "re");
        size_t got = from ? fread(text, 1, TOKEN_MAX, from) : 0;
        if (!from || !got)
            return prb_cli_fail(err, PRB_NOT_FOUND, "", "no token can be read from %s: %s", file,
                                from ? "it is empty" : strerror(errno));
        note_readers(from, file);
        text[got] = '\0';
        text[strcspn(text, "\r\n")] = '\0';
        given = text;
    }
    *token_out = given ? strdup(given) : NULL;
    hide_variable();
    return !given || *token_out || prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
}

static void say(void *context, const char *text)
{
    (void)context;
    prb_out_note(text);
}

/* For an editor on another machine: the way here, and the folder of the job's sources.  All that is
 * printed fits the buffer of standard output: who reads its first line only may close it. */
static void print_elsewhere(const struct prb_dap_listen_options *options, const char *address,
                            const char *port)
{
    char machine[HOST_NAME_MAX + 1] = "HOST", link[32], folder[512];
    gethostname(machine, sizeof machine - 1);
    printf("From another machine: ssh -N -L %s:%s ", port, address);
    prb_out_text(stdout, machine);
    fputs(", then the same entry.\n", stdout);
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)options->pid);
    ssize_t len = options->pid ? readlink(link, folder, sizeof folder) : 0;
    if (len <= 0 || (size_t)len >= sizeof folder)
        return;
    fputs("If the sources are elsewhere there, add to it:\n"
          "    \"pathMappings\": [{ \"localRoot\": \"${workspaceFolder}\",\n"
          "                       \"remoteRoot\": ",
          stdout);
    prb_out_json_text(stdout, folder, (size_t)len);
    fputs(" }]\n", stdout);
}

/* An entry of launch.json that the stock Python debugger's extension takes, too.  A token that was
 * given is not repeated: this may go to a log. */
static void print_ready(void *context, const char *address, const char *made)
{
    const struct prb_dap_listen_options *options = context;
    const char *colon = strrchr(address, ':');
    bool bracket = address[0] == '[';
    char host[HOST_NAME_MAX + 1] = "";
    if (colon)
        snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * bracket,
                 address + bracket);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) /* all addresses of this machine */
        gethostname(host, sizeof host - 1);
    if (options->pid && options->pause)
        printf("process %d is paused; ", (int)options->pid);
    printf("waiting for a debugger on %s\n", address);
    if (strchr(address, '/')) {
        fflush(stdout);
        return;
    }
    printf("\nIn VS Code's .vscode/launch.json, then F5:\n\n"
           "    {\n"
           "        \"name\": \"Attach by Probing\",\n"
           "        \"type\": \"debugpy\",\n"
           "        \"request\": \"attach\",\n"
           "        \"connect\": { \"host\": \"%s\", \"port\": %s },\n"
           "        \"justMyCode\": false%s%s%s\n"
           "    }\n\n",
           host, colon + 1, made || options->token ? ",\n        \"token\": \"" : "",
           made             ? made
           : options->token ? "..."
                            : "",
           made || options->token ? "\"" : "");
    if (strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0)
        print_elsewhere(options, address, colon + 1);
    if (made)
        printf("Other clients: %s?token=%s\n", address, made);
    fflush(stdout);
}

/* The next port, as the option to type. */
static void advise_on_port(const char *address, struct prb_error *err)
{
    const char *colon = strrchr(address, ':');
    unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
    if (port > 0 && port < 65535)
        snprintf(err->remedy, sizeof err->remedy,
                 "--address %.*s:%lu takes another port, --address %.*s:0 any free one",
                 (int)(colon - address), address, port + 1, (int)(colon - address), address);
}

bool prb_serve(struct prb_dap_listen_options *options, struct prb_error *err)
{
    sigset_t pauses;
    sigemptyset(&pauses);
    sigaddset(&pauses, SIGUSR1); /* probing.breakpoint() */
    /* Before any thread is made, so that none takes it. */
    if (sigprocmask(SIG_BLOCK, &pauses, NULL) != 0)
        return prb_cli_fail(err, PRB_INTERNAL, "", "signals: %s", strerror(errno));
    PRB_AUTO_FD int stop = prb_take_ends();
    PRB_AUTO_FD int pause = signalfd(-1, &pauses, SFD_CLOEXEC | SFD_NONBLOCK);
    if (stop < 0 || pause < 0)
        return prb_cli_fail(err, PRB_IO, "", "signals: %s", strerror(errno));
    options->stop_fd = stop;
    options->pause_fd = pause;
    options->ready = print_ready;
    options->note = say;
    options->context = options;
    if (prb_dap_listen(options, err))
        return true;
    if (err && err->sys == EADDRINUSE)
        advise_on_port(options->address, err);
    return false;
}
