/* Starting the collector from another command: see start.h. */
#include "cli/store/start.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/print/out.h"

#define SETTING "PROBING_DATA_DIR="

/* Where the process's rings are when it says so. */
static void take_data_dir(pid_t pid)
{
    PRB_AUTO_FREE char *one = NULL;
    size_t cap = 0;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *all = fopen(path, "re");
    while (all && getdelim(&one, &cap, '\0', all) > 0)
        if (strncmp(one, SETTING, sizeof SETTING - 1) == 0)
            setenv("PROBING_DATA_DIR", one + sizeof SETTING - 1, 1);
    if (all)
        fclose(all);
}

/* In a process that nobody waits for. */
static void run(pid_t pid)
{
    int null = open("/dev/null", O_RDWR);
    take_data_dir(pid);
    if (setsid() >= 0 && null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 &&
        dup2(null, 2) == 2)
        execl("/proc/self/exe", "probing", "collect", "--while-used", (char *)NULL);
    _exit(127);
}

void prb_start_collector(pid_t pid)
{
    struct stat st;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &st) != 0 || st.st_uid != geteuid()) {
        prb_out_note("the collector is one of the process's user, who starts it: probing collect");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        pid_t collector = fork();
        if (collector == 0)
            run(pid);
        _exit(collector < 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        prb_out_note("the collector could not be started: probing collect");
}
