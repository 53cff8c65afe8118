/*
 * So many processes that are not Python, for `list`: crowd COUNT.  Prints a line when they are
 * there; they end with it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
            _exit(0);
        }
    }
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
