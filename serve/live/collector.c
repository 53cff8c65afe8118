/* A thread that is the collector (collector.h). */
#include "serve/live/collector.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "probing.h"

#define AGAIN_MS 5000 /* until another collector is looked for again, or a store that failed */

struct prb_collector {
    struct prb_serve_log *log;
    pthread_t thread;
    int stop;
};

static void say(void *context, const char *line)
{
    struct prb_collector *collector = context;
    prb_serve_log(collector->log, "collector: %s", line);
}

static void *run(void *context)
{
    struct prb_collector *collector = context;
    const struct prb_collect_options options = {
        .stop_fd = collector->stop, .say = say, .context = collector};
    struct pollfd stop = {.fd = collector->stop, .events = POLLIN};
    enum prb_code told = PRB_OK;
    do {
        struct prb_error err = {0};
        uint64_t rows = 0;
        if (prb_collect(&options, &rows, &err))
            break;
        if (err.code != told)
            say(collector, err.text);
        told = err.code;
    } while (poll(&stop, 1, AGAIN_MS) == 0);
    return NULL;
}

static bool is_off(const char *value)
{
    return value && (strcmp(value, "off") == 0 || strcmp(value, "0") == 0);
}

struct prb_collector *prb_collector_new(struct prb_serve_log *log, struct prb_error *err)
{
    if (is_off(getenv("PROBING_STORE")))
        return NULL;
    struct prb_collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return PRB_NULL(prb_nomem(err));
    collector->log = log;
    collector->stop = eventfd(0, EFD_CLOEXEC);
    if (collector->stop >= 0 && pthread_create(&collector->thread, NULL, run, collector) == 0)
        return collector;
    if (collector->stop >= 0)
        close(collector->stop);
    free(collector);
    return PRB_NULL(prb_fail(err, PRB_NOMEM, "no thread can be made"));
}

void prb_collector_free(struct prb_collector *collector)
{
    uint64_t one = 1;
    if (!collector)
        return;
    prb_write_all(collector->stop, &one, sizeof one);
    pthread_join(collector->thread, NULL);
    close(collector->stop);
    free(collector);
}
