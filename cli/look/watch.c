/* Redrawing without flicker: one write for each screen, each line erased to its end, the rest of the
 * screen below it. */
#include "cli/look/watch.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/syscalls.h"
#include "cli/command.h"
#include "cli/ends.h"
#include "cli/print/out.h"

#define HOME "\033[H"
#define ERASE_LINE "\033[K\n"
#define ERASE_BELOW "\033[J"
#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define OTHER_SCREEN "\033[?1049h"
#define FIRST_SCREEN "\033[?1049l"

/* Lines of the text that fit the terminal; the last says how many do not. */
static void print_screen(const char *text, unsigned lines)
{
    size_t total = 0, line = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        total++;
    fputs(HOME, stdout);
    for (const char *at = text; *at; line++) {
        size_t len = strcspn(at, "\n");
        if (lines && total >= lines && line + 2 >= lines) {
            printf("… %zu lines more", total - line);
            break;
        }
        fwrite(at, 1, len, stdout);
        fputs(ERASE_LINE, stdout);
        at += len + (at[len] == '\n');
    }
    fputs(ERASE_BELOW, stdout);
}

/* The terminal must not break long lines, or the count of lines is wrong. */
static void enter(void) { fputs(OTHER_SCREEN HIDE_CURSOR "\033[?7l", stdout); }
static void leave(void) { fputs("\033[?7h" SHOW_CURSOR FIRST_SCREEN, stdout); }

enum wait_end { WAIT_TIME, WAIT_USER, WAIT_TARGET };

static enum wait_end wait_until(double deadline, int signals, int process)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = process, .events = POLLIN}};
    double left = deadline - prb_clock_s();
    struct timespec rest = prb_clock_timespec(left > 0 ? left : 0);
    ppoll(fds, 2, &rest, NULL);
    return fds[0].revents ? WAIT_USER : fds[1].revents ? WAIT_TARGET : WAIT_TIME;
}

static bool draw_once(bool terminal, prb_watch_fn *draw, void *context, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    bool ok = draw(context, out, err);
    if (fclose(out) != 0 || !text)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!ok)
        return false;
    if (terminal)
        print_screen(text, prb_out_lines());
    else
        printf("%s\n", text);
    return prb_out_finish(err);
}

static bool ended(int process)
{
    struct pollfd fd = {.fd = process, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

static bool loop(double seconds, int signals, int process, bool terminal, prb_watch_fn *draw,
                 void *context, enum wait_end *end_out, struct prb_error *err)
{
    double next = prb_clock_s();
    for (*end_out = WAIT_TIME; *end_out == WAIT_TIME;
         *end_out = wait_until(next, signals, process)) {
        if (!draw_once(terminal, draw, context, err)) {
            *end_out = WAIT_TARGET;
            return ended(process);
        }
        next += seconds;
    }
    return true;
}

bool prb_watch(pid_t pid, double seconds, prb_watch_fn *draw, void *context, struct prb_error *err)
{
    enum wait_end end = WAIT_TIME;
    struct prb_error why = {0};
    bool terminal = prb_out_columns() > 0;
    PRB_AUTO_FD int signals = prb_take_ends();
    PRB_AUTO_FD int process = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (terminal)
        enter();
    bool ok = loop(seconds, signals, process, terminal, draw, context, &end, &why);
    if (terminal)
        leave();
    if (!ok) {
        if (err)
            *err = why;
        return false;
    }
    if (end == WAIT_TARGET)
        printf("Process %d ended.\n", (int)pid);
    return true;
}
