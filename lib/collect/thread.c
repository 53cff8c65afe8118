/* See thread.h. */
#include "collect/thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "base/file.h"

#define AGAIN_MS 5000 /* until another collector is looked for again, or a store that failed */

struct prb_collecting {
    void (*say)(void *context, const char *line);
    void *context;
    pthread_t thread;
    int stop;
};

static void *run(void *context)
{
    struct prb_collecting *collecting = context;
    const struct prb_collect_options options = {
        .stop_fd = collecting->stop, .say = collecting->say, .context = collecting->context};
    struct pollfd stop = {.fd = collecting->stop, .events = POLLIN};
    enum prb_code told = PRB_OK;
    do {
        struct prb_error err = {0};
        uint64_t rows = 0;
        if (prb_collect(&options, &rows, &err))
            break;
        if (err.code != told)
            collecting->say(collecting->context, err.text);
        told = err.code;
    } while (poll(&stop, 1, AGAIN_MS) == 0);
    return NULL;
}

static bool is_off(const char *value)
{
    return value && (strcmp(value, "off") == 0 || strcmp(value, "0") == 0);
}

struct prb_collecting *prb_collecting_begin(void (*say)(void *context, const char *line),
                                            void *context, struct prb_error *err)
{
    if (is_off(getenv("PROBING_STORE")))
        return NULL;
    struct prb_collecting *collecting = calloc(1, sizeof *collecting);
    if (!collecting)
        return PRB_NULL(prb_nomem(err));
    *collecting = (struct prb_collecting){say, context, .stop = eventfd(0, EFD_CLOEXEC)};
    if (collecting->stop >= 0 && pthread_create(&collecting->thread, NULL, run, collecting) == 0)
        return collecting;
    if (collecting->stop >= 0)
        close(collecting->stop);
    free(collecting);
    return PRB_NULL(prb_fail(err, PRB_NOMEM, "no thread can be made"));
}

void prb_collecting_end(struct prb_collecting *collecting)
{
    uint64_t one = 1;
    if (!collecting)
        return;
    prb_write_all(collecting->stop, &one, sizeof one);
    pthread_join(collecting->thread, NULL);
    close(collecting->stop);
    free(collecting);
}
