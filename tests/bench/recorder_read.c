/*
 * How long a reading of the Flight Recorder takes, without what is made of it: recorder_read PID TIMES.
 * Prints JSON: the median in ms, and the bytes of a text.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "inject/control.h"

#define TIMES_MAX 100

PRB_DEFINE_AUTO(prb_recorder, struct prb_recorder, prb_recorder_free)

static int compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static bool read_once(struct prb_control *control, double *ms_out, size_t *bytes_out,
                      struct prb_error *err)
{
    PRB_AUTO(prb_recorder) struct prb_recorder recorder = {0};
    double began = prb_clock_s();
    if (!prb_control_recorder(control, true, NULL, NULL, &recorder, err))
        return false;
    *ms_out = 1e3 * (prb_clock_s() - began);
    if (recorder.with_gil)
        return prb_fail(err, PRB_UNSUPPORTED, "this torch writes it in Python only");
    *bytes_out = 0;
    for (size_t i = 0; i < recorder.count; i++)
        *bytes_out += recorder.texts[i].len;
    return true;
}

int main(int argc, char **argv)
{
    struct prb_error err = {0};
    double took[TIMES_MAX];
    size_t count = 0, times = argc == 3 ? (size_t)atol(argv[2]) : 0, bytes = 0;
    if (!times || times > TIMES_MAX)
        return 2;
    struct prb_control *control = prb_control_open(atoi(argv[1]), &err);
    while (control && count < times && read_once(control, &took[count], &bytes, &err))
        count++;
    prb_control_close(control);
    if (count < times) {
        fprintf(stderr, "recorder_read: %s\n", err.text);
        return 1;
    }
    qsort(took, count, sizeof *took, compare);
    printf("{\"ms\": %.3f, \"bytes\": %zu}\n", took[count / 2], bytes);
    return 0;
}
