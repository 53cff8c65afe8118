/* A probe where one is needed: the one policy of commands and servers, see inject.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "inject/control.h"
#include "inject/inject.h"
#include "proc/proc.h"

#define ENVIRONMENT_MAX (1u << 20) /* bytes of a process's variables that are searched */

static const char switch_name[] = "PROBING_AUTO_INJECT";

static bool is_off(const char *text)
{
    static const char *const words[] = {"off", "0", "no", "false"};
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* The value of a variable as the process was started with, freed by the caller; NULL: unset, or it
 * cannot be read. */
static char *variable_of(pid_t pid, const char *name)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    PRB_AUTO_FREE char *line = NULL;
    size_t size = 0, all = 0, len = strlen(name);
    ssize_t got;
    while (file && all < ENVIRONMENT_MAX && (got = getdelim(&line, &size, '\0', file)) > 0) {
        all += (size_t)got;
        if (strncmp(line, name, len) == 0 && line[len] == '=')
            return strdup(line + len + 1);
    }
    return NULL;
}

static bool is_allowed(pid_t pid, struct prb_error *err)
{
    const char *ours = getenv(switch_name);
    PRB_AUTO_FREE char *its = variable_of(pid, switch_name);
    if (is_off(ours))
        prb_fail(err, PRB_NOT_FOUND,
                 "process %d has no probe, and %s=%s forbids loading one unasked", (int)pid,
                 switch_name, ours);
    else if (is_off(its))
        prb_fail(err, PRB_NOT_FOUND, "process %d has no probe, and was started with %s=%s",
                 (int)pid, switch_name, its);
    else
        return true;
    return prb_error_remedy(err, "`probing %d inject` loads one all the same", (int)pid);
}

static bool is_running(pid_t pid)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    struct prb_task first = {.tid = pid};
    return proc && prb_proc_task_read(proc, &first) && !strchr("ZX", first.state);
}

static bool load(pid_t pid, struct prb_inject_report *report, struct prb_error *err)
{
    if (!is_allowed(pid, err) || !prb_inject(pid, NULL, report, err))
        return false;
    if (!report->will_load_later)
        return true;
    prb_fail(err, PRB_BUSY, "process %d is stopped: the probe loads when it continues", (int)pid);
    return prb_error_remedy(err, "`kill -CONT %d` continues it", (int)pid);
}

struct prb_control *prb_ensure_probe(pid_t pid, struct prb_inject_report *report,
                                     struct prb_error *err)
{
    struct prb_error why = {0};
    *report = (struct prb_inject_report){.already = true};
    struct prb_control *control = prb_control_open(pid, &why);
    if (!control && why.code == PRB_NOT_FOUND && is_running(pid))
        return load(pid, report, err) ? prb_control_open(pid, err) : NULL;
    if (!control && err)
        *err = why;
    return control;
}
