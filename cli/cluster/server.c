/* The user's server on this host as its agent: asked by probing-serve, which speaks with it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cluster/cluster.h"
#include "cli/serve/program.h"
#include "cli/serve/servers.h"

#define CODES 32 /* more than there are */

static enum prb_code code_of(int status)
{
    for (int code = PRB_USAGE; code < CODES; code++)
        if (prb_code_exit((enum prb_code)code) == status)
            return (enum prb_code)code;
    return PRB_INTERNAL;
}

/* As probing-serve prints it: "probing: TEXT", "  REMEDY". */
static bool take_error(const char *said, int status, struct prb_error *err)
{
    size_t len = strcspn(said, "\n");
    const char *text = strncmp(said, "probing: ", 9) == 0 ? said + 9 : said;
    const char *next = said[len] ? said + len + 1 : "";
    next += strspn(next, " ");
    return prb_cli_fail(err, code_of(status), "", "%.*s%s%.*s", (int)(said + len - text), text,
                        *next ? ": " : "", (int)strcspn(next, "\n"), next);
}

/* What the program says, in out. */
static bool run(const char *const *words, char *out, size_t size, struct prb_error *err)
{
    int told[2], status = 0;
    size_t len = 0;
    if (pipe(told) != 0)
        return prb_cli_fail(err, PRB_IO, "", "no pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (dup2(told[1], 1) == 1 && dup2(told[1], 2) == 2 && close(told[0]) == 0)
            execv(words[0], (char *const *)words);
        _exit(127);
    }
    close(told[1]);
    for (ssize_t n;
         child > 0 && len < size - 1 && (n = read(told[0], out + len, size - 1 - len)) != 0;) {
        if (n < 0 && errno != EINTR)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    out[len] = '\0';
    close(told[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? true
               : take_error(out, WIFEXITED(status) ? WEXITSTATUS(status) : 1, err);
}

/* A path is that of this process's folder. */
static void add_path(json_t *wanted, const char *key, const char *path, bool there)
{
    PRB_AUTO_FREE char *whole = path && *path && there ? realpath(path, NULL) : NULL;
    PRB_AUTO_FREE char *own = NULL;
    if (!whole && path && *path && *path != '/' && !there) {
        PRB_AUTO_FREE char *folder = getcwd(NULL, 0);
        if (folder && asprintf(&own, "%s/%s", folder, path) < 0)
            own = NULL;
    }
    const char *text = whole ? whole : own ? own : path;
    if (text && *text)
        json_object_set_new(wanted, key, json_string(text));
}

static void add_number(json_t *wanted, const char *key, double value)
{
    if (value > 0)
        json_object_set_new(wanted, key, json_sprintf("%.17g", value));
}

static char *as_json(const struct prb_cluster_agent_options *options)
{
    json_t *wanted = json_object();
    const char *bus = options->bus ? options->bus : getenv("PROBING_BUS");
    const char *history =
        options->history ? options->history : getenv("PROBING_CLUSTER_HISTORY_TABLES");
    const char *metrics = options->metrics ? options->metrics : getenv("PROBING_CLUSTER_METRICS");
    add_path(wanted, "bus", bus, true);
    add_path(wanted, "metrics", metrics, false);
    if (history && *history)
        json_object_set_new(wanted, "history", json_string(history));
    json_object_set_new(wanted, "allow",
                        json_sprintf("look%s%s", options->allow_control ? ",control" : "",
                                     options->allow_eval ? ",eval" : ""));
    if (options->all_users)
        json_object_set_new(wanted, "all_users", json_string("1"));
    if (options->insecure)
        json_object_set_new(wanted, "insecure", json_string("1"));
    add_number(wanted, "every", options->history_every);
    add_number(wanted, "linger", options->linger);
    add_number(wanted, "beside", options->beside);
    char *text = wanted ? json_dumps(wanted, JSON_COMPACT) : NULL;
    json_decref(wanted);
    return text;
}

bool prb_agent_attach(const struct prb_cluster_agent_options *options,
                      struct prb_cluster_attached *out, struct prb_error *err)
{
    char program[PATH_MAX], said[1000];
    struct prb_error none = {0};
    if (!prb_servers_of_host() || !prb_serve_program(program, &none))
        return prb_cluster_attach(options, out, err);
    PRB_AUTO_FREE char *wanted = as_json(options);
    const char *const words[] = {program, "--attach", wanted, NULL};
    if (!wanted)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!run(words, said, sizeof said, err))
        return false;
    *out = (struct prb_cluster_attached){.pid = (int)strtol(said, NULL, 10),
                                         .already = strstr(said, "already") != NULL};
    return true;
}

bool prb_agent_detach(bool *was_running, struct prb_error *err)
{
    char program[PATH_MAX], said[1000];
    struct prb_error why = {0}, none = {0};
    if (prb_cluster_detach(was_running, &why))
        return true;
    if (why.code != PRB_BUSY || !prb_servers_of_host() || !prb_serve_program(program, &none)) {
        *err = why;
        return false;
    }
    const char *const words[] = {program, "--detach", NULL};
    if (!run(words, said, sizeof said, err))
        return false;
    *was_running = *said == '1';
    return true;
}
