/* What is measured of processes, in Prometheus' text format: /metrics of a server, and the file that an agent writes. */
#ifndef PRB_FORMAT_METRICS_H
#define PRB_FORMAT_METRICS_H

#include <sys/types.h>

#include "base/buf.h"

/* Of one process; a number below 0 is not known. */
struct prb_measured {
    pid_t pid;
    int rank;            /* -1: none */
    const char *command; /* any bytes; NULL: not known */
    double cpu;          /* s so far */
    double rss;          /* bytes */
    int threads;
    int64_t step;     /* the last that ended */
    double unchanged; /* s since the stack of the main thread changed */
};

enum prb_metric {
    PRB_METRIC_RSS,
    PRB_METRIC_CPU,
    PRB_METRIC_THREADS,
    PRB_METRIC_STEP,
    PRB_METRIC_UNCHANGED,
    PRB_METRICS
};

/* The format wants all of a metric together: a text for each. */
struct prb_metrics {
    struct prb_buf of[PRB_METRICS];
};
void prb_metrics_deinit(struct prb_metrics *metrics);
PRB_DEFINE_AUTO(prb_metrics, struct prb_metrics, prb_metrics_deinit)
void prb_metrics_add(struct prb_metrics *metrics, const struct prb_measured *process);
/* Append the text of all that were added; out fails where memory did. */
void prb_metrics_text(const struct prb_metrics *metrics, struct prb_buf *out);

#endif
