/*
 * Run a command some times and print one line of JSON for each: wall time, peak memory, CPU time,
 * page faults, exit status.  A process of its own, as small as can be: the kernel lets a child's peak memory begin
 * with its parent's.
 *
 *     measure COUNT COMMAND [ARGUMENT...]     standard output of the command is dropped
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Not by fork(2): the copy of our page tables would be in its account.  0: it cannot be begun. */
static pid_t begin(char **command)
{
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) != 0)
        child = 0;
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    for (int i = atoi(argv[1]); i > 0; i--) {
        struct rusage usage;
        int status;
        double start = now();
        pid_t child = begin(argv + 2);
        if (!child || wait4(child, &status, 0, &usage) != child)
            return 1;
        printf("{\"ms\": %.3f, \"kb\": %ld, \"cpu_ms\": %.3f, \"faults\": %ld, \"status\": %d}\n",
               (now() - start) * 1e3, usage.ru_maxrss,
               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3,
               usage.ru_minflt, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        fflush(stdout);
    }
    return 0;
}
