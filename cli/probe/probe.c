/* The way to a target's probe: see probe.h.  Loading is inject/inject.h's, talking
 * inject/control.h's. */
#include "cli/probe/probe.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "cli/print/out.h"

void prb_report_text(const struct prb_inject_report *report, char *text, size_t size)
{
    if (report->already)
        snprintf(text, size, "a probe was there already, found in %.1f ms", report->total_ms);
    else if (report->will_load_later)
        snprintf(text, size, "the target is stopped: the probe loads when the target resumes");
    else if (report->tid)
        snprintf(text, size, "loaded in %.1f ms, one thread paused %.0f µs (thread %d)",
                 report->total_ms, report->paused_us, (int)report->tid);
    else
        snprintf(text, size, "loaded in %.1f ms, no thread paused", report->total_ms);
}

static void note_load(pid_t pid, const struct prb_inject_report *report)
{
    char text[160], line[240];
    prb_report_text(report, text, sizeof text);
    snprintf(line, sizeof line, "process %d had no probe: %s", (int)pid, text);
    prb_out_note(line);
}

struct prb_control *prb_run_control(const struct prb_run *run, bool may, pid_t *pid_out,
                                    struct prb_error *err)
{
    const char *path;
    pid_t pid;
    struct prb_inject_report report = {.already = true};
    if (!prb_run_process(run, &pid, &path, err))
        return NULL;
    struct prb_control *control = path  ? prb_control_open_path(path, err)
                                  : may ? prb_ensure_probe(pid, &report, err)
                                        : prb_control_open(pid, err);
    if (control && !report.already)
        note_load(pid, &report);
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
