/*
 * The library that --dll injects in the tests: it counts how often it was loaded (report.h)
 * and checks what the injector promises of the thread that it runs on.
 */
#include <pthread.h>
#include <signal.h>

#include "report.h"

__attribute__((constructor)) static void loaded(void)
{
    sigset_t mask;
    int cancel;
    if (!(report = report_map()))
        return;
    __atomic_fetch_add(&report->loads, 1, __ATOMIC_RELAXED);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGINT) || !sigismember(&mask, SIGTERM) ||
        !sigismember(&mask, SIGPROF) || !sigismember(&mask, SIGCHLD))
        report_damage("the injected thread takes the program's signals");
    if (pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel))
        report_damage("the injected thread is no thread of this libc");
    free(malloc(1000));
}
