/*
 * Inject into one process many times and print one line of JSON: how many went in, were refused,
 * hung; pauses.
 *
 *     many PID COUNT LIBRARY [WAIT [SETTINGS]]
 *
 * LIBRARY: the file is copied to a name of its own for each injection, so that each is loaded anew;
 * "": the probe. WAIT: seconds for a safe thread.  One injection that takes over 60 s is a hang,
 * and the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/sendfile.h>
#include <time.h>

#include "base/cleanup.h"
#include "inject/inject.h"

#define HANG_S 60

struct told {
    int injected, refused, already, later;
    unsigned tries;
    double *paused, *total; /* of those that went in */
    struct prb_error first;
};

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, int count, double share)
{
    return count ? values[(int)ceil(share * count) - 1 < 0 ? 0 : (int)ceil(share * count) - 1] : 0;
}

static bool copy(const char *from, const char *to)
{
    PRB_AUTO_FD int in = open(from, O_RDONLY | O_CLOEXEC);
    unlink(to);
    PRB_AUTO_FD int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ssize_t got;
    if (in < 0 || out < 0)
        return false;
    while ((got = sendfile(out, in, NULL, 1 << 20)) > 0)
        ;
    return got == 0;
}

static void one(pid_t pid, const struct prb_inject_options *options, struct told *told)
{
    struct prb_inject_report report = {0};
    struct prb_error err = {0};
    if (!prb_inject(pid, options, &report, &err)) {
        if (told->refused++ == 0)
            told->first = err;
        return;
    }
    told->already += report.already;
    told->later += report.will_load_later;
    told->tries += report.tries;
    told->paused[told->injected] = report.paused_us;
    told->total[told->injected++] = report.total_ms;
}

static void hangs(int number)
{
    static const char text[] = "{\"hung\": true}\n";
    (void)number;
    _exit(write(1, text, sizeof text - 1) < 0 ? 4 : 3);
}

static void print(struct told *told)
{
    qsort(told->paused, (size_t)told->injected, sizeof(double), in_order);
    qsort(told->total, (size_t)told->injected, sizeof(double), in_order);
    printf("{\"hung\": false, \"injected\": %d, \"refused\": %d, \"already\": %d, \"later\": %d, "
           "\"tries\": %u, ",
           told->injected, told->refused, told->already, told->later, told->tries);
    const struct {
        const char *name;
        double *values;
    } parts[] = {{"paused_us", told->paused}, {"total_ms", told->total}};
    for (size_t i = 0; i < 2; i++)
        printf("\"%s\": {\"median\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"max\": %.1f}, ",
               parts[i].name, quantile(parts[i].values, told->injected, 0.5),
               quantile(parts[i].values, told->injected, 0.9),
               quantile(parts[i].values, told->injected, 0.99),
               quantile(parts[i].values, told->injected, 1));
    printf("\"code\": \"%s\", \"text\": \"", told->refused ? prb_code_name(told->first.code) : "");
    for (const char *c = told->first.text; *c; c++)
        printf(*c == '"' || *c == '\\' || *c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\", \"remedy\": \"");
    for (const char *c = told->first.remedy; *c; c++)
        printf(*c == '"' || *c == '\\' || *c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\"}\n");
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int count = atoi(argv[2]);
    struct told told = {.paused = calloc((size_t)count, sizeof(double)),
                        .total = calloc((size_t)count, sizeof(double))};
    struct prb_inject_options options = {.wait = argc > 4 ? atof(argv[4]) : 0,
                                         .settings = argc > 5 ? argv[5] : NULL};
    signal(SIGALRM, hangs);
    for (int i = 0; i < count; i++) {
        PRB_AUTO_FREE char *library = NULL;
        if (*argv[3]) {
            if (asprintf(&library, "%s.%d.%d", argv[3], getpid(), i) < 0 ||
                !copy(argv[3], library)) {
                perror(argv[3]);
                return 1;
            }
            options.library = library;
        }
        alarm(HANG_S);
        one(atoi(argv[1]), &options, &told);
        alarm(0);
        if (library && !told.later) /* a stopped target still has to open it */
            unlink(library);
    }
    print(&told);
    return 0;
}
