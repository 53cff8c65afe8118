/*
 * A fork storm: children that allocate and leave by exit(3), and ones that become another program,
 * with threads that allocate beside and one parked.  A child that hangs is killed by its own alarm
 * and counted as damage.
 *
 *     forks THREADS
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "report.h"

#define CHILD_SECONDS 60

extern char **environ;

static void *allocate(void *unused)
{
    (void)unused;
    for (size_t size = 16;; size = size * 7 % 4999 + 16)
        free(malloc(size));
    return NULL;
}

static pid_t child_that_exits(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        for (size_t size = 16; size < 5000; size += 100)
            free(malloc(size));
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate, NULL))
            _exit(3);
        exit(0);
    }
    return pid;
}

static pid_t child_that_becomes(void)
{
    pid_t pid;
    return posix_spawn(&pid, "/bin/true", NULL, NULL, (char *[]){"true", NULL}, environ) ? -1 : pid;
}

static void *storm(void *kind)
{
    for (volatile uint64_t *count = &report->progress[kind ? 1 : 0];; ++*count) {
        int status = 0;
        pid_t pid = kind ? child_that_becomes() : child_that_exits();
        if (pid < 0)
            report_damage("no child: %m");
        else if (waitpid(pid, &status, 0) != pid || status)
            report_damage("a child ended with status %#x", (unsigned)status);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    report_open();
    report->lanes = 2;
    for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
        if (pthread_create(&thread, NULL, allocate, NULL))
            return 1;
    if (pthread_create(&thread, NULL, storm, NULL) || pthread_create(&thread, NULL, storm, ""))
        return 1;
    report_park();
    return 0;
}
