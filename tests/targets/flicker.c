/*
 * A single thread that computes for some 0.1 ms and then waits as long, again and again, in a
 * call that the kernel does not make anew after a stop.  One that ends otherwise than by its
 * time limit is damage.
 *
 *     flicker sigtimedwait|epoll_wait
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "report.h"

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    report_open();
    report->lanes = 1;
    int epoll = epoll_create1(EPOLL_CLOEXEC), by_epoll = !strcmp(argv[1], "epoll_wait");
    const struct timespec wait = {0, 100000};
    struct epoll_event event;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 5);
    sigprocmask(SIG_BLOCK, &set, NULL);
    report_ready();
    for (uint64_t round = 0;; round++, report->progress[0]++) {
        int64_t until = now() + 50000 + (int64_t)(round * 7919 % 100000);
        while (now() < until)
            ;
        errno = 0;
        long got = by_epoll ? epoll_wait(epoll, &event, 1, 1) : sigtimedwait(&set, NULL, &wait);
        if (by_epoll ? got != 0 : got != -1 || errno != EAGAIN)
            report_damage("%s returned %ld (%s)", argv[1], got, strerror(errno));
    }
}
