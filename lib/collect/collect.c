/* The collector: one process per user and machine that moves rows from rings into the store. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/index.h"
#include "base/real.h"
#include "collect/parts.h"
#include "profile/kept.h"
#include "store/folder.h"
#include "store/keep.h"

#define LOCK_FILE "/collector.lock"
#define TURN 1.0         /* s between two looks */
#define TURN_FAILED 10.0 /* while the store cannot be written */
#define KEEP 600.0       /* s between two looks at what is too old */
#define JOIN 3600.0      /* s: older chunks that are small are joined */
#define IDLE_END 60.0    /* s without a process that records */

/* ---- only one ---- */

/* The lock file is beside the rings: there is one collector for them, whatever the store's folder.
 */
static int take_lock(const char *store, struct prb_error *err)
{
    char data[PRB_RING_PATH_MAX], path[PRB_RING_PATH_MAX + sizeof LOCK_FILE], text[PATH_MAX + 32];
    if (!prb_ring_data_dir(data, err))
        return -1;
    snprintf(path, sizeof path, "%s" LOCK_FILE, data);
    PRB_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        prb_fail_sys(err, errno, "%s", path);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        size_t len = prb_read_at(fd, text, sizeof text - 1, 0);
        text[len] = '\0';
        text[strcspn(text, "\n")] = '\0';
        prb_fail(err, PRB_BUSY, "a collector runs already: %.300s", text);
        return -1;
    }
    int len = snprintf(text, sizeof text, "process %d, store %s\n", (int)getpid(), store);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        prb_fail_sys(err, errno, "%s", path);
        return -1;
    }
    return PRB_STEAL_FD(fd);
}

/* ---- turns ---- */

struct state {
    const struct prb_collect_options *options;
    struct prb_collection collection;
    bool failing;
    double used; /* s, monotonic: when a process that records was seen last */
    double kept; /* s, monotonic: when what is too old was removed last */
    uint64_t rows;
    uint64_t random;
};

static void say(const struct state *state, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct state *state, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (state->options->say)
        state->options->say(state->options->context, line);
}

static bool turn(struct state *state, bool all)
{
    struct prb_error err = {0};
    bool good = prb_collection_look(&state->collection, &err);
    good = prb_collection_move(&state->collection, all, &state->rows, &err) && good;
    if (!good && !state->failing)
        say(state, "%s; rows wait in memory until it can be written again", err.text);
    if (good && state->failing)
        say(state, "the store is written again");
    state->failing = !good;
    if (state->collection.live)
        state->used = prb_clock_s();
    return good;
}

/* "7d", "12h", "30m", "90s"; a number alone is of days. */
static double span_of(const char *name, double days)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 86400}, {"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
    const char *text = getenv(name);
    char *end = NULL;
    double number = text ? strtod(text, &end) : -1;
    for (size_t i = 0; number >= 0 && number < 1e9 && i < sizeof units / sizeof *units; i++)
        if (end != text && strcmp(end, units[i].unit) == 0)
            return number * units[i].seconds;
    return days * 86400;
}

static bool is_stopped(void *context)
{
    const struct state *state = context;
    struct pollfd end = {.fd = state->options->stop_fd, .events = POLLIN};
    return !state->options->once && poll(&end, 1, 0) > 0;
}

/* As the settings of the same names: days, and bytes with K, M or G. */
static struct prb_store_limits limits(struct state *state)
{
    const char *memory = getenv("PROBING_STORE_MEMORY");
    struct prb_store_limits limits = {
        .seconds = span_of("PROBING_RETENTION_DAYS", 7),
        .bytes = (uint64_t)1 << 30,
        .ages = {.join = JOIN,
                 .raw = span_of("PROBING_STORE_RAW", 1),
                 .minutes = span_of("PROBING_STORE_MINUTES", 7)},
        .rules = prb_collect_rules,
        .rule_count = prb_collect_rule_count,
        .stopped = is_stopped,
        .context = state,
    };
    char *end = NULL;
    double number = memory ? strtod(memory, &end) : -1;
    double unit = number < 0                   ? 0
                  : *end == 'K' || *end == 'k' ? 0x1p10
                  : *end == 'M' || *end == 'm' ? 0x1p20
                  : *end == 'G' || *end == 'g' ? 0x1p30
                  : *end                       ? 0
                                               : 1;
    if (unit > 0 && end != memory && number * unit < 1e15)
        limits.bytes = (uint64_t)(number * unit);
    return limits;
}

static void keep(struct state *state, bool now)
{
    struct prb_error err = {0};
    double time = prb_clock_s();
    if (!now && !state->collection.wishes_change && time < state->kept + KEEP)
        return;
    state->collection.wishes_change = false;
    state->kept = time;
    const struct prb_store_limits limit = limits(state);
    if (!prb_store_keep(state->collection.store, &limit, &err))
        say(state, "%s; nothing was removed", err.text);
}

/* Where a process wishes it: at the GIL, and at its stacks. */
static bool look(struct state *state)
{
    bool gil = prb_collect_gil_look(&state->collection);
    return prb_collect_stacks_look(&state->collection) || gil;
}

/* ms; random, so as not to be in step with what a process does regularly. */
static int look_pause(struct state *state)
{
    state->random = prb_hash_words(state->random, 1);
    return (int)(1000 / PRB_KEPT_RATE * (0.5 + (double)(state->random >> 11) * 0x1p-53));
}

static bool wait_for_turn(struct state *state)
{
    struct pollfd end = {.fd = state->options->stop_fd, .events = POLLIN};
    double seconds = TURN;
    for (size_t i = 0; i < state->collection.count; i++) {
        const struct prb_collected *process = &state->collection.items[i];
        double cpu = process->seconds[PRB_COLLECT_CPU];
        double gpu = process->seconds[PRB_COLLECT_GPU];
        if (!process->ended && cpu > 0)
            seconds = prb_lesser(seconds, cpu);
        if (!process->ended && gpu > 0 && prb_collect_has_gpus(process))
            seconds = prb_lesser(seconds, gpu);
    }
    int ms = (int)((state->failing ? TURN_FAILED : seconds) * 1000);
    for (int pause; look(state) && ms > (pause = look_pause(state)); ms -= pause)
        if (poll(&end, 1, pause) > 0)
            return false;
    return poll(&end, 1, ms) <= 0;
}

bool prb_collect(const struct prb_collect_options *options, uint64_t *rows_out,
                 struct prb_error *err)
{
    PRB_AUTO_FREE char *store = NULL;
    struct state state = {.options = options, .used = prb_clock_s()};
    if (!prb_store_folder(true, &store, err))
        return false;
    PRB_AUTO_FD int lock = take_lock(store, err);
    if (lock < 0)
        return false;
    state.collection.store = store;
    while (!options->once && wait_for_turn(&state)) {
        turn(&state, false);
        prb_collect_hosts(&state.collection);
        keep(&state, false);
        if (options->while_used && prb_clock_s() - state.used > IDLE_END)
            break;
    }
    bool good = turn(&state, true);
    keep(&state, true);
    *rows_out = state.rows;
    prb_collection_deinit(&state.collection);
    return good || prb_fail(err, PRB_IO, "not everything could be written");
}
