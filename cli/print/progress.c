/* How far a command is, on the terminal: from the second second on, in one line that goes again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/print/out.h"
#include "probing.h"

#define AFTER_S 1.0
#define EVERY_S 0.1

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* When this process was started, by proc_pid_stat(5), field 22; now when it cannot be read. */
static double started_s(void)
{
    char text[1024] = "";
    unsigned long long ticks;
    FILE *file = fopen("/proc/self/stat", "re");
    const char *name_end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (file)
        fclose(file);
    for (int field = 2; name_end && field < 22; field++)
        name_end = strchr(name_end + 1, ' ');
    if (!name_end || sscanf(name_end, "%llu", &ticks) != 1)
        return now_s();
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* 3200000 as "3,200,000". */
static void put_number(uint64_t number)
{
    if (number >= 1000)
        put_number(number / 1000);
    fprintf(stderr, number >= 1000 ? ",%03u" : "%u", (unsigned)(number % 1000));
}

static void show(const char *what, uint64_t done)
{
    static double began, shown;
    static bool visible;
    double now = now_s();
    if (!what) {
        if (visible)
            fputs("\r\033[K", stderr);
        visible = false;
        return;
    }
    if (began <= 0)
        began = started_s();
    if (now - began < AFTER_S || now - shown < EVERY_S)
        return;
    shown = now;
    visible = true;
    fputc('\r', stderr);
    put_number(done);
    fprintf(stderr, " %s\033[K", what);
}

void prb_out_progress(void)
{
    const char *terminal = getenv("TERM");
    if (isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0)
        prb_progress_to(show);
}
