/*
 * Run a command some times and print one line of JSON for each: wall time, peak memory, exit
 * status.  A process of its own, as small as can be: the kernel lets a child's peak memory begin
 * with its parent's.
 *
 *     measure COUNT COMMAND [ARGUMENT...]     standard output of the command is dropped
 */
#include <fcntl.h>
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

static void become(char **command)
{
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    execvp(command[0], command);
    _exit(127);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    for (int i = atoi(argv[1]); i > 0; i--) {
        struct rusage usage;
        int status;
        double start = now();
        pid_t child = fork();
        if (child == 0)
            become(argv + 2);
        if (child < 0 || wait4(child, &status, 0, &usage) != child)
            return 1;
        printf("{\"ms\": %.3f, \"kb\": %ld, \"cpu_ms\": %.3f, \"status\": %d}\n",
               (now() - start) * 1e3, usage.ru_maxrss,
               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3,
               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        fflush(stdout);
    }
    return 0;
}
