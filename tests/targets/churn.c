/*
 * Threads that come and go: at most COUNT at a time, each waits up to 30 ms in one of three ways,
 * allocates and ends.
 *
 *     churn COUNT
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "report.h"

static sem_t room;

static void *short_life(void *number_)
{
    uintptr_t number = (uintptr_t)number_;
    long ms = (long)(number * 2654435761u >> 7) % 30;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    free(malloc(100 + number % 1000));
    switch (number % 3) {
    case 0:
        poll(NULL, 0, (int)ms);
        break;
    case 1:
        nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
        break;
    default:
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += ms * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&cond, &mutex, &until);
        pthread_mutex_unlock(&mutex);
    }
    __atomic_fetch_add((uint64_t *)&report->progress[0], 1, __ATOMIC_RELAXED);
    sem_post(&room);
    return NULL;
}

static void *make_threads(void *unused)
{
    pthread_attr_t attr;
    (void)unused;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 64 << 10);
    for (uintptr_t number = 0;; number++) {
        pthread_t thread;
        while (sem_wait(&room))
            ;
        if (pthread_create(&thread, &attr, short_life, (void *)number)) {
            report_damage("no thread: %m");
            sem_post(&room);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    report_open();
    report->lanes = 1;
    sem_init(&room, 0, argc > 1 ? (unsigned)atoi(argv[1]) : 500);
    if (pthread_create(&thread, NULL, make_threads, NULL))
        return 1;
    report_park();
    return 0;
}
