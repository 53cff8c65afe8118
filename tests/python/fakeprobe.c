/*
 * A libprobe.so for the tests of the Python package: the function table of inject/probe/start.h,
 * every row written to the file that FAKE_PROBE_LOG names ("start HOW", "table NAME COLUMNS", "row
 * NAME HEX", one a line).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../inject/probe/start.h"

__attribute__((visibility("default"))) int prb_probe_start(struct prb_probe_call *call);

static pid_t active_in;
static char rate[32] = "1";

static void note(const char *what, const char *name, const char *text, size_t len, bool hex)
{
    const char *path = getenv("FAKE_PROBE_LOG");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out)
        return;
    fprintf(out, "%d %s %s ", (int)getpid(), what, name);
    for (size_t i = 0; i < len; i++)
        fprintf(out, hex ? "%02x" : "%c", text[i] == '\n' && !hex ? '|' : (unsigned char)text[i]);
    fputc('\n', out);
    fclose(out);
}

static int active(void) { return active_in == getpid(); }

static int detach(void)
{
    active_in = 0;
    return 0;
}

static int config_get(const char *key, char *out, size_t cap)
{
    if (strcmp(key, "probing.sample_rate"))
        return -1;
    return snprintf(out, cap, "%s", rate);
}

static int config_set(const char *key, const char *value, char *error, size_t cap)
{
    note("set", key, value, strlen(value), false);
    if (!strcmp(key, "probing.sample_rate"))
        return snprintf(rate, sizeof(rate), "%s", value) < 0;
    snprintf(error, cap, "there is no setting %s", key);
    return -1;
}

static const char *socket_path(void) { return "/nowhere"; }

static void *table(const char *name, const char *columns, char *error, size_t cap)
{
    note("table", name, columns, strlen(columns), false);
    if (!strcmp(name, "refused")) {
        snprintf(error, cap, "no room");
        return NULL;
    }
    return strdup(name);
}

static int row(void *made, const void *packed, size_t len)
{
    note("row", made, packed, len, true);
    return 0;
}

static int config_list(char *out, size_t cap)
{
    return snprintf(out, cap, "probing.max_memory=1GB\nprobing.sample_rate=%s\n", rate);
}

static int serve(const char *address, const char *allow, char *out, size_t cap)
{
    note("serve", address, allow ? allow : "", allow ? strlen(allow) : 0, false);
    bool refused = !strcmp(address, "127.0.0.1:1");
    snprintf(out, cap, "%s", refused ? "no server: taken" : "http://127.0.0.1:9922/#token=t");
    return refused ? -1 : 0;
}

static const struct prb_probe_functions functions = {
    PRB_PROBE_START_VERSION,
    sizeof(functions),
    active,
    detach,
    config_get,
    config_set,
    socket_path,
    table,
    row,
    config_list,
    serve,
};

int prb_probe_start(struct prb_probe_call *call)
{
    const char *failure = getenv("FAKE_PROBE_FAILS");
    if (failure) {
        snprintf(call->error, sizeof(call->error), "%s", failure);
        return -1;
    }
    note("start", call->how, call->settings ? call->settings : "",
         call->settings ? strlen(call->settings) : 0, false);
    active_in = getpid();
    call->functions = &functions;
    return 0;
}
