/* How far a command is, on the terminal: shown after a second, in one line that is erased at the
 * end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/print/out.h"
#include "probing.h"

#define AFTER_S 1.0
#define EVERY_S 0.1

static double started;

/* 3200000 as "3,200,000". */
static void put_number(uint64_t number)
{
    if (number >= 1000)
        put_number(number / 1000);
    fprintf(stderr, number >= 1000 ? ",%03u" : "%u", (unsigned)(number % 1000));
}

static void show(const char *what, uint64_t done)
{
    static double shown;
    static bool visible;
    double now = prb_clock_s();
    if (!what) {
        if (visible)
            fputs("\r\033[K", stderr);
        visible = false;
        return;
    }
    if (now - started < AFTER_S || now - shown < EVERY_S)
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
    started = prb_clock_s();
    if (isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0)
        prb_progress_to(show);
}
