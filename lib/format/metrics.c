/* See metrics.h. */
#include "format/metrics.h"

#include <string.h>

#include "base/utf8.h"

#define LABELS_MAX 1024 /* bytes of those of a process */

static const struct {
    const char *name, *type, *help;
} metrics_of[PRB_METRICS] = {
    [PRB_METRIC_RSS] = {"probing_process_rss_bytes", "gauge", "Resident memory."},
    [PRB_METRIC_CPU] = {"probing_process_cpu_seconds_total", "counter",
                        "CPU time, user and system."},
    [PRB_METRIC_THREADS] = {"probing_process_threads", "gauge", "Threads of the kernel."},
    [PRB_METRIC_STEP] = {"probing_process_step", "gauge", "The last training step that ended."},
    [PRB_METRIC_UNCHANGED] = {"probing_process_unchanged_seconds", "gauge",
                              "Since the main thread's Python stack changed."},
};

void prb_metrics_deinit(struct prb_metrics *metrics)
{
    for (size_t i = 0; i < PRB_METRICS; i++)
        prb_buf_deinit(metrics->of + i);
}

/* A label's value: \ " and a line's end are escaped; one byte that is not UTF-8 would cost all. */
static void add_escaped(struct prb_buf *out, const char *text)
{
    size_t left = text ? strnlen(text, LABELS_MAX) : 0;
    while (left) {
        size_t len = prb_utf8_length(text, left);
        if (*text == '\n')
            prb_buf_adds(out, "\\n");
        else if (*text == '"' || *text == '\\')
            prb_buf_addf(out, "\\%c", *text);
        else if (len)
            prb_buf_add(out, text, len);
        else
            prb_buf_adds(out, PRB_UTF8_REPLACEMENT);
        len += !len;
        text += len;
        left -= len;
    }
}

static void add(struct prb_buf *out, const char *name, const struct prb_measured *process,
                double value)
{
    prb_buf_addf(out, "%s{pid=\"%d\",rank=\"", name, (int)process->pid);
    if (process->rank >= 0)
        prb_buf_addf(out, "%d", process->rank);
    prb_buf_adds(out, "\",command=\"");
    add_escaped(out, process->command);
    prb_buf_addf(out, "\"} %.15g\n", value);
}

void prb_metrics_add(struct prb_metrics *metrics, const struct prb_measured *process)
{
    const double values[PRB_METRICS] = {process->rss, process->cpu, process->threads,
                                        (double)process->step, process->unchanged};
    for (size_t i = 0; i < PRB_METRICS; i++)
        if (values[i] >= 0)
            add(metrics->of + i, metrics_of[i].name, process, values[i]);
}

void prb_metrics_text(const struct prb_metrics *metrics, struct prb_buf *out)
{
    for (size_t i = 0; i < PRB_METRICS; i++) {
        prb_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics_of[i].name, metrics_of[i].help,
                     metrics_of[i].name, metrics_of[i].type);
        if (metrics->of[i].data)
            prb_buf_add(out, metrics->of[i].data, metrics->of[i].len);
        out->failed |= metrics->of[i].failed;
    }
}
