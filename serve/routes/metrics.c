/* GET /metrics: what the server's own looks say of each process, in Prometheus' text format. */
#include <string.h>

#include "serve/http/route.h"
#include "serve/live/watch.h"

#define LABELS_MAX 1024 /* bytes of those of a process */

enum { RSS, CPU, THREADS, STEP, UNCHANGED, METRICS };
static const struct {
    const char *name, *type, *help;
} metrics[METRICS] = {
    [RSS] = {"probing_process_rss_bytes", "gauge", "Resident memory."},
    [CPU] = {"probing_process_cpu_seconds_total", "counter", "CPU time, user and system."},
    [THREADS] = {"probing_process_threads", "gauge", "Threads of the kernel."},
    [STEP] = {"probing_process_step", "gauge", "The last training step that ended."},
    [UNCHANGED] = {"probing_process_unchanged_seconds", "gauge",
                   "Since the main thread's Python stack changed."},
};

/* The text format wants all of a metric together: a text for each. */
struct texts {
    struct prb_buf of[METRICS];
};

/* A label's value: \ " and a line's end are escaped. */
static void add_escaped(struct prb_buf *out, const char *text)
{
    for (size_t left = LABELS_MAX; text && *text && left; text++, left--) {
        if (*text == '\n') {
            prb_buf_adds(out, "\\n");
            continue;
        }
        if (*text == '"' || *text == '\\')
            prb_buf_addc(out, '\\');
        prb_buf_addc(out, *text);
    }
}

static void add(struct prb_buf *out, const char *name, const struct prb_watched_now *now,
                double value)
{
    prb_buf_addf(out, "%s{pid=\"%d\",rank=\"", name, (int)now->pid);
    if (now->rank >= 0)
        prb_buf_addf(out, "%d", now->rank);
    prb_buf_adds(out, "\",command=\"");
    add_escaped(out, now->command);
    prb_buf_addf(out, "\"} %.15g\n", value);
}

static void add_process(void *context, const struct prb_watched_now *now)
{
    struct texts *texts = context;
    const double values[METRICS] = {now->rss, now->cpu, now->threads, (double)now->step,
                                    now->unchanged};
    for (size_t i = 0; i < METRICS; i++)
        if (values[i] >= 0) /* else it is not known */
            add(texts->of + i, metrics[i].name, now, values[i]);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    struct texts texts = {0};
    struct prb_buf *out = &job->answer->body;
    (void)err;
    prb_watch_each(job->serve->watch, add_process, &texts);
    for (size_t i = 0; i < METRICS; i++) {
        prb_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help,
                     metrics[i].name, metrics[i].type);
        if (texts.of[i].data)
            prb_buf_add(out, texts.of[i].data, texts.of[i].len);
        out->failed |= texts.of[i].failed;
        prb_buf_deinit(texts.of + i);
    }
    job->answer->type = "text/plain; version=0.0.4; charset=utf-8";
    return true;
}

const struct prb_route prb_route_metrics = {
    .methods = PRB_GET,
    .path = "/metrics",
    .summary =
        "memory, CPU time, threads, step and unchanged seconds of each process, for Prometheus",
    .grant = PRB_MAY_LOOK,
    .formats = "text",
    .seconds = 10,
    .answer = answer,
};
