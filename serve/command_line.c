/* See command_line.h. */
#include "serve/command_line.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/host/starter.h"

enum {
    FIRST = 256, /* above what getopt_long(3) answers itself */
#define OPTION(id, letter, name, argument, help) id,
#include "serve/options.def"
#undef OPTION
    /* What other commands and probes pass. */
    TARGET,
    ATTACH,
    DETACH,
    STARTER,
    BUS,
    ASK,
    PID,
    NAME,
    OUTPUT,
    MCP
};

static bool add_host(struct prb_serve_options *options, const char *name, struct prb_error *err)
{
    size_t most = sizeof options->hosts / sizeof *options->hosts - 1, count = 0;
    while (options->hosts[count])
        count++;
    if (count == most || !*name || strpbrk(name, "@, /:"))
        return prb_fail(err, PRB_USAGE, "--host: %.60s", count == most ? "too many" : name);
    options->hosts[count] = name;
    return true;
}

/* "https://example.org:8443", as a browser writes it. */
static bool add_origin(struct prb_serve_options *options, const char *text, struct prb_error *err)
{
    size_t most = sizeof options->origins / sizeof *options->origins - 1, count = 0;
    const char *host = strstr(text, "://");
    while (options->origins[count])
        count++;
    if (count == most || !host || !host[3] || host == text || strpbrk(host + 3, "@, /"))
        return prb_fail(err, PRB_USAGE, "--origin: %.60s",
                        count == most ? "too many" : "SCHEME://HOST[:PORT] is needed");
    options->origins[count] = text;
    return true;
}

static bool take_word(struct prb_serve_words *words, int what, const char *text,
                      struct prb_error *err)
{
    switch (what) {
    case ADDRESS:
        words->serve.address = text;
        return true;
    case UNIX:
        words->serve.address = NULL;
        return true;
    case TOKEN_FILE:
        words->serve.token_file = text;
        return true;
    case CERT:
        words->serve.certificate = text;
        return true;
    case KEY:
        words->serve.key = text;
        return true;
    case NO_TOKEN:
        return words->serve.no_token = true;
    case HOST:
        return add_host(&words->serve, text, err);
    case ORIGIN:
        return add_origin(&words->serve, text, err);
    case MCP:
        return words->mcp = true;
    case ALLOW:
        words->allow = text;
        words->unasked = strcmp(text, "eval-unasked") == 0;
        if (words->unasked && words->mcp)
            text = "eval";
        return prb_grants_parse(text, &words->serve.grants, err);
    case URL:
        return words->url = true;
    case REVOKE:
        return words->revoke = true;
    case TARGET:
        words->serve.target = (int)strtol(text, NULL, 10);
        return words->serve.target > 0 ||
               prb_fail(err, PRB_USAGE, "--target %s: must be a process id", text);
    case WHILE:
        words->serve.while_pid = (int)strtol(text, NULL, 10);
        return words->serve.while_pid > 0 ||
               prb_fail(err, PRB_USAGE, "--while %s: must be a process id", text);
    case AGENT:
        return words->serve.agent = true;
    case ATTACH:
        words->attach = text;
        return true;
    case DETACH:
        return words->detach = true;
    case STARTER:
        prb_fleet_starter_live((int)strtol(text, NULL, 10));
    case BUS:
        /* For those that look at jobs, too. */
        return setenv("PROBING_BUS", text, 1) == 0 || prb_nomem(err);
    case ASK:
        words->elsewhere.where = text;
        return true;
    case PID:
        words->elsewhere.pid = text;
        return true;
    case NAME:
        words->elsewhere.name = text;
        return true;
    case OUTPUT:
        words->elsewhere.output = text;
        return true;
    }
    return prb_fail(err, PRB_USAGE, "that is no option of probing-serve");
}

/* A server that a process starts beside itself has no words of its user. */
static bool take_variables(struct prb_serve_words *words, struct prb_error *err)
{
    const char *allow = getenv("PROBING_SERVE_ALLOW");
    const char *certificate = getenv("PROBING_SERVE_CERT"), *key = getenv("PROBING_SERVE_KEY");
    if (!words->serve.certificate && certificate && *certificate) {
        words->serve.certificate = certificate;
        words->serve.key = key && *key ? key : NULL;
    }
    return words->allow || !allow || !*allow || prb_grants_parse(allow, &words->serve.grants, err);
}

bool prb_serve_words_take(int argc, char **argv, struct prb_serve_words *out, struct prb_error *err)
{
    static const struct option known[] = {
#define OPTION(id, letter, name, argument, help)                                                   \
    {name, (argument) ? required_argument : no_argument, NULL, id},
#include "serve/options.def"
#undef OPTION
        {"target", required_argument, NULL, TARGET},
        {"attach", required_argument, NULL, ATTACH},
        {"detach", no_argument, NULL, DETACH},
        {"starter", required_argument, NULL, STARTER},
        {"bus", required_argument, NULL, BUS},
        {"ask", required_argument, NULL, ASK},
        {"pid", required_argument, NULL, PID},
        {"name", required_argument, NULL, NAME},
        {"output", required_argument, NULL, OUTPUT},
        {"mcp", no_argument, NULL, MCP},
        {0}};
    *out = (struct prb_serve_words){.serve = {.address = "127.0.0.1:0", .grants = PRB_MAY_LOOK}};
    for (int got; (got = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!take_word(out, got, optarg, err))
            return false;
    if (out->serve.target && !take_variables(out, err))
        return false;
    out->elsewhere.words = (const char *const *)argv + optind;
    out->elsewhere.word_count = (size_t)(argc - optind);
    return true;
}
