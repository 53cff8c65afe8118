/*
 * Loaded before libprobing (LD_PRELOAD) into one run of the command: says where its CPU time went.
 * Each call of the library that the command makes is a piece; so are what came before main(), what
 * the command did between the calls, and what of it is left for the end.
 *
 *     LD_PRELOAD=account.so PROBING_ACCOUNT=FILE probing …
 *
 * appends one line of JSON to FILE, microseconds of CPU: {"start": …, "prb_target_open_pid": …}.
 * To add a piece: one line in PIECES.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Functions of pointers and integers, at most six. */
#define PIECES                                                                                     \
    PIECE(prb_target_open_pid)                                                                     \
    PIECE(prb_target_open)                                                                         \
    PIECE(prb_stacks_take)                                                                         \
    PIECE(prb_stacks_free)                                                                         \
    PIECE(prb_target_close)                                                                        \
    PIECE(prb_process_list)                                                                        \
    PIECE(prb_db_open)                                                                             \
    PIECE(prb_db_query)                                                                            \
    PIECE(prb_db_close)                                                                            \
    PIECE(prb_ensure_probe)                                                                        \
    PIECE(prb_inject)                                                                              \
    PIECE(prb_control_open)                                                                        \
    PIECE(prb_control_eval)

enum piece {
#define PIECE(name) piece_##name,
    PIECES
#undef PIECE
        PIECE_COUNT
};

static double spent[PIECE_COUNT], started;
static int inside;

static double cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

typedef long any_function(long, long, long, long, long, long);

static long timed(enum piece piece, const char *name, any_function **real, const long a[6])
{
    if (!*real && !(*(void **)real = dlsym(RTLD_NEXT, name)))
        abort();
    double before = cpu_us();
    inside++;
    long result = (*real)(a[0], a[1], a[2], a[3], a[4], a[5]);
    if (--inside == 0) /* a piece within a piece belongs to the outer one */
        spent[piece] += cpu_us() - before;
    return result;
}

#define PIECE(name)                                                                                \
    __attribute__((visibility("default"))) long name(long a, long b, long c, long d, long e,       \
                                                     long f);                                      \
    long name(long a, long b, long c, long d, long e, long f)                                      \
    {                                                                                              \
        static any_function *real;                                                                 \
        return timed(piece_##name, #name, &real, (long[]){a, b, c, d, e, f});                      \
    }
PIECES
#undef PIECE

__attribute__((constructor)) static void begin(void) { started = cpu_us(); }

__attribute__((destructor)) static void end(void)
{
    static const char *const names[] = {
#define PIECE(name) #name,
        PIECES
#undef PIECE
    };
    /* Not in the program that starts the command. */
    const char *path = dlsym(RTLD_DEFAULT, "prb_version") ? getenv("PROBING_ACCOUNT") : NULL;
    double all = cpu_us(), between = all - started;
    char line[2048];
    int n = snprintf(line, sizeof line, "{\"start\": %.1f", started);
    for (int i = 0; i < PIECE_COUNT; i++) {
        between -= spent[i];
        if (spent[i] > 0)
            n += snprintf(line + n, sizeof line - (size_t)n, ", \"%s\": %.1f", names[i], spent[i]);
    }
    n += snprintf(line + n, sizeof line - (size_t)n, ", \"the command\": %.1f, \"all\": %.1f}\n",
                  between, all);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && write(fd, line, (size_t)n) < 0)
        abort();
}
