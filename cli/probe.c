/* The way to a target's probe: see probe.h.  Loading is inject/inject.h's, talking
 * inject/control.h's. */
#include "probe.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "out.h"

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

/* "f (train.py:12)" of the innermost Python frame, behind the native one that runs for it. */
static void describe_place(const struct prb_thread *thread, char *text, size_t size)
{
    const struct prb_frame *native = NULL;
    size_t at = 0;
    for (; at < thread->frame_count && thread->frames[at].kind != PRB_FRAME_PYTHON; at++)
        if (!native && thread->frames[at].kind == PRB_FRAME_NATIVE && thread->frames[at].name)
            native = &thread->frames[at];
    const struct prb_frame *frame = at < thread->frame_count ? &thread->frames[at] : NULL;
    const char *file = !frame                  ? NULL
                       : frame->short_filename ? frame->short_filename
                                               : frame->filename;
    if (frame)
        snprintf(text, size, "%.100s (%.100s:%d)%s%.60s", frame->qualname ? frame->qualname : "?",
                 file ? file : "?", frame->line, native ? " in " : "", native ? native->name : "");
    else
        snprintf(text, size, "%.100s", native ? native->name : "a place without Python frames");
}

void prb_explain_gil(pid_t pid, struct prb_error *err)
{
    static const struct prb_stack_options native = {.native = true};
    PRB_AUTO(prb_target)
    struct prb_target *target = pid > 0 ? prb_target_open_pid(pid, NULL) : NULL;
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = target ? prb_stacks_take(target, &native, NULL) : NULL;
    char place[300];
    for (size_t i = 0; stacks && i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        if (thread->gil != PRB_GIL_HOLDING)
            continue;
        describe_place(thread, place, sizeof place);
        snprintf(err->text, sizeof err->text,
                 "the GIL was not to be had: held by thread %d%s%.40s%s at %.200s",
                 (int)thread->os_thread_id, thread->name ? " \"" : "",
                 thread->name ? thread->name : "", thread->name ? "\"" : "", place);
        snprintf(err->remedy, sizeof err->remedy,
                 "--gil-timeout SECONDS waits longer; `probing %d backtrace --native` needs no GIL",
                 (int)pid);
        return;
    }
    if (stacks)
        snprintf(err->remedy, sizeof err->remedy,
                 "a moment later no thread holds it: try again, or wait longer by --gil-timeout");
}
