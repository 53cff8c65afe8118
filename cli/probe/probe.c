/* The way to a target's probe: see probe.h.  Loading is inject/inject.h's, talking
 * inject/control.h's. */
#include "cli/probe/probe.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "cli/print/out.h"

#define ENVIRONMENT_MAX (1u << 20) /* bytes of a target's variables that are looked through */

static const char switch_name[] = "PROBING_AUTO_INJECT";

static bool says_off(const char *text)
{
    static const char *const words[] = {"off", "0", "no", "false"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* The value of a variable as the target was started with, freed by the caller; NULL: unset, or not
 * to be read. */
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

/* Whoever looks, or whoever started the target, may have forbidden it. */
static bool may_load(pid_t pid, struct prb_error *err)
{
    const char *mine = getenv(switch_name);
    PRB_AUTO_FREE char *its = variable_of(pid, switch_name);
    if (mine && says_off(mine))
        return prb_cli_fail(err, PRB_NOT_FOUND, "`probing PID inject` loads it all the same",
                            "there is no probe in process %d, and %s=%s forbids to load it unasked",
                            (int)pid, switch_name, mine);
    if (its && says_off(its))
        return prb_cli_fail(err, PRB_NOT_FOUND, "`probing PID inject` loads it all the same",
                            "there is no probe in process %d, which was started with %s=%s",
                            (int)pid, switch_name, its);
    return true;
}

void prb_report_text(const struct prb_inject_report *report, char *text, size_t size)
{
    if (report->already)
        snprintf(text, size, "a probe was there already, found in %.1f ms", report->total_ms);
    else if (report->will_load_later)
        snprintf(text, size, "the target is stopped: it loads when the target goes on");
    else if (report->tid)
        snprintf(text, size, "loaded in %.1f ms, one thread paused %.0f µs (thread %d)",
                 report->total_ms, report->paused_us, (int)report->tid);
    else
        snprintf(text, size, "loaded in %.1f ms, no thread paused", report->total_ms);
}

static bool load(pid_t pid, struct prb_error *err)
{
    const struct prb_inject_options options = {0};
    struct prb_inject_report report = {0};
    char text[160], line[240];
    if (!may_load(pid, err) || !prb_inject(pid, &options, &report, err))
        return false;
    if (report.will_load_later)
        return prb_cli_fail(err, PRB_BUSY, "`kill -CONT PID` lets it go on",
                            "process %d is stopped: the probe loads when it goes on", (int)pid);
    prb_report_text(&report, text, sizeof text);
    snprintf(line, sizeof line, "process %d had no probe: %s", (int)pid, text);
    prb_out_note(line);
    return true;
}

struct prb_control *prb_run_control(const struct prb_run *run, bool may, pid_t *pid_out,
                                    struct prb_error *err)
{
    const char *path;
    pid_t pid;
    struct prb_error why = {0};
    if (!prb_run_process(run, &pid, &path, err))
        return NULL;
    struct prb_control *control =
        path ? prb_control_open_path(path, &why) : prb_control_open(pid, &why);
    if (!control && may && !path && why.code == PRB_NOT_FOUND && prb_process_runs(pid)) {
        if (!load(pid, err))
            return NULL;
        control = prb_control_open(pid, &why);
    }
    if (!control && err)
        *err = why;
    if (control)
        *pid_out = path ? prb_control_pid(control) : pid;
    return control;
}

bool prb_process_runs(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    PRB_AUTO(file) FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[got] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && !strchr("ZX", end[2]);
}

void prb_explain_gil(pid_t pid, struct prb_error *err)
{
    char holder[300];
    if (pid <= 0 || !prb_gil_holder(pid, holder, sizeof holder, NULL))
        return;
    if (*holder) {
        snprintf(err->text, sizeof err->text, "the GIL was not to be had: held by %s", holder);
        snprintf(err->remedy, sizeof err->remedy,
                 "--gil-timeout SECONDS waits longer; `probing %d backtrace --native` needs no GIL",
                 (int)pid);
    } else {
        snprintf(err->remedy, sizeof err->remedy,
                 "a moment later no thread holds it: try again, or wait longer by --gil-timeout");
    }
}
