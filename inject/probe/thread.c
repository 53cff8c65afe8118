/* The signal mask is inherited (pthread_create(3)), so it is set around the creation. */
#include "inject/probe/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "inject/probe/libc.h"

struct start {
    const char *name;
    void *(*work)(void *context);
    void *context;
};

static void *begin(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    prctl(PR_SET_NAME, start.name, 0, 0, 0);
    return start.work(start.context);
}

bool prb_thread_start(const char *name, void *(*work)(void *context), void *context,
                      struct prb_error *err)
{
    PRB_AUTO_FREE struct start *start = malloc(sizeof *start);
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (!start || pthread_attr_init(&attributes) != 0)
        return prb_fail(err, PRB_NOMEM, "the target is out of memory");
    *start = (struct start){name, work, context};
    pthread_attr_setstacksize(&attributes, PRB_THREAD_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, begin, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed)
        return prb_fail_sys(err, failed, "starting a thread in the target");
    start = NULL;
    return true;
}
