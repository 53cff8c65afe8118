/* Starting and ending the bus: see cluster.h. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "fleet/bus/bus.h"
#include "fleet/up/up.h"
#include "proc/stat.h"

#define STARTS 20.0 /* s that another `up` may take */
#define ENDS 10.0   /* s until what keeps the server running has ended */
#define LOOK_MS 20
#define END_AGENTS 1.0 /* s until the server has told them */

/* ---- what runs ---- */

static int open_lock(const char *folder, struct prb_error *err)
{
    char path[PATH_MAX];
    prb_bus_path(folder, PRB_BUS_LOCK, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        prb_fail_sys(err, errno, "%.200s", path);
    return fd;
}

static bool is_held(int lock)
{
    if (flock(lock, LOCK_EX | LOCK_NB) != 0)
        return true;
    flock(lock, LOCK_UN);
    return false;
}

struct state {
    char host[80], boot[64];
    int pid, port;
    int64_t started;
};

static void copy(char *out, size_t size, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    snprintf(out, size, "%s", text ? text : "");
}

/* False: nothing is written there, or it makes no sense. */
static bool read_state(const char *folder, struct state *out)
{
    char path[PATH_MAX], text[2048];
    prb_bus_path(folder, PRB_BUS_STATE, path);
    json_t *state = prb_read_text(path, text, sizeof text) > 0 ? json_loads(text, 0, NULL) : NULL;
    copy(out->host, sizeof out->host, state, "host");
    copy(out->boot, sizeof out->boot, state, "boot");
    out->pid = (int)json_integer_value(json_object_get(state, "pid"));
    out->port = (int)json_integer_value(json_object_get(state, "port"));
    out->started = json_integer_value(json_object_get(state, "started"));
    json_decref(state);
    return out->pid > 1 && out->port > 0 && out->host[0];
}

/* It runs on this host, in this pid namespace, and is the process that was written down. */
static bool is_here(const struct state *state)
{
    char host[80] = "", boot[64] = "", folder[32];
    struct prb_stat now;
    gethostname(host, sizeof host - 1);
    prb_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(folder, sizeof folder, "/proc/%d", state->pid);
    return strcmp(host, state->host) == 0 && strcmp(boot, state->boot) == 0 &&
           prb_stat_of(folder, &now) && now.field[PRB_STAT_STARTTIME] == state->started;
}

static void fill(struct prb_cluster_bus *out, const char *folder, const struct state *state)
{
    snprintf(out->folder, sizeof out->folder, "%s", folder);
    snprintf(out->host, sizeof out->host, "%s", state->host);
    out->port = state->port;
    out->pid = is_here(state) ? state->pid : 0;
}

/* ---- up ---- */

/* In a process that nobody waits for. */
static void keeper_process(const char *program, struct prb_bus_place *place, int lock, int told)
{
    int null = open("/dev/null", O_RDWR);
    if (setsid() < 0 || null < 0 || dup2(null, 0) != 0 || dup2(null, 1) != 1 ||
        dup2(null, 2) != 2 || chdir("/") != 0)
        _exit(127);
    /* Pipes of whoever called us would stay open. */
    int keep[] = {lock < told ? lock : told, lock < told ? told : lock};
    prb_close_descriptors(3, (unsigned)keep[0] - 1);
    prb_close_descriptors((unsigned)keep[0] + 1, (unsigned)keep[1] - 1);
    prb_close_descriptors((unsigned)keep[1] + 1, UINT_MAX);
    prctl(PR_SET_NAME, "probing-bus");
    prb_bus_keep_running(program, place, told);
    _exit(0);
}

static bool hear(int from, struct prb_error *err)
{
    char line[600];
    struct pollfd ready = {.fd = from, .events = POLLIN};
    size_t len = 0;
    double until = prb_clock_s() + STARTS;
    for (double left; len < sizeof line - 1 && (left = until - prb_clock_s()) > 0;) {
        if (poll(&ready, 1, (int)(left * 1e3) + 1) <= 0)
            continue;
        ssize_t n = read(from, line + len, sizeof line - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "ready") == 0)
        return true;
    char *text = line;
    long code = strtol(line, &text, 10);
    if (*text != ' ' || code <= PRB_OK)
        return prb_fail(err, PRB_INTERNAL, "what keeps the server running has ended");
    prb_fail(err, (enum prb_code)code, "%s", text + 1);
    if (code == PRB_BUSY)
        prb_error_remedy(err, "another program has the port: --listen :0 takes any free one");
    return false;
}

static bool start(struct prb_bus_place *place, int lock, struct prb_error *err)
{
    char program[PATH_MAX];
    int told[2];
    if (!prb_bus_server_program(program, err) || !prb_bus_write_files(place, err))
        return false;
    if (pipe2(told, O_CLOEXEC) != 0)
        return prb_fail_sys(err, errno, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        pid_t keeper = fork();
        if (keeper == 0)
            keeper_process(program, place, lock, told[1]);
        _exit(keeper < 0);
    }
    int failed = errno;
    close(told[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
    bool good = child > 0 ? hear(told[0], err) : prb_fail_sys(err, failed, "a process");
    close(told[0]);
    return good;
}

/* Another `up` may just be starting it. */
static bool wait_for_state(const char *folder, int lock, struct state *out, struct prb_error *err)
{
    double until = prb_clock_s() + STARTS;
    while (!read_state(folder, out)) {
        if (!is_held(lock) || prb_clock_s() > until)
            return prb_fail(err, PRB_BUSY, "another `cluster up` did not come to its end");
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}

bool prb_cluster_up(const struct prb_cluster_up_options *options, struct prb_cluster_bus *out,
                    struct prb_error *err)
{
    struct prb_bus_place place;
    struct state state;
    *out = (struct prb_cluster_bus){0};
    if (!prb_bus_place_of(options, &place, err))
        return false;
    PRB_AUTO_FD int lock = open_lock(place.folder, err);
    if (lock < 0)
        return false;
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (!wait_for_state(place.folder, lock, &state, err))
            return false;
        fill(out, place.folder, &state);
        out->already = true;
        if (options->listen && place.port && place.port != state.port) {
            prb_fail(err, PRB_USAGE, "the bus runs already, on %s, port %d", state.host,
                     state.port);
            return prb_error_remedy(err, "`probing cluster down` ends it");
        }
        return true;
    }
    char path[PATH_MAX];
    prb_bus_path(place.folder, PRB_BUS_STATE, path);
    unlink(path); /* of one that was killed */
    if (!start(&place, lock, err))
        return false;
    if (!read_state(place.folder, &state))
        return prb_fail(err, PRB_INTERNAL, "the server's state was not written");
    fill(out, place.folder, &state);
    return true;
}

char *prb_cluster_configuration(const struct prb_cluster_up_options *options, struct prb_error *err)
{
    struct prb_bus_place place;
    struct state state;
    char path[PATH_MAX];
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_bus_place_of(options, &place, err))
        return NULL;
    PRB_AUTO_FD int lock = open_lock(place.folder, err);
    if (lock < 0)
        return NULL;
    bool runs = flock(lock, LOCK_EX | LOCK_NB) != 0;
    if (runs && !wait_for_state(place.folder, lock, &state, err))
        return NULL;
    if (!runs && !prb_bus_write_files(&place, err))
        return NULL;
    prb_bus_path(place.folder, PRB_BUS_CONFIGURATION, path);
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !prb_buf_read(&text, fd, 1 << 20))
        return PRB_NULL(prb_fail_sys(err, errno, "%.200s", path));
    return prb_buf_steal(&text);
}

/* ---- down ---- */

/* Best effort: without libnats they end by themselves, once no rank has run for long. */
static void end_agents(const char *folder)
{
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    char path[PATH_MAX];
    const struct prb_bus_options options = {.name = "probing cluster down"};
    const struct prb_bus_message end = {.subject = "probing.v1.end", .data = "{}", .len = 2};
    prb_bus_path(folder, prb_bus_class_name(PRB_BUS_control), path);
    PRB_AUTO(prb_bus)
    struct prb_bus *bus =
        prb_bus_file_read(path, &file, NULL) ? prb_bus_open(&file, &options, NULL) : NULL;
    if (bus && prb_bus_publish(bus, &end, NULL))
        prb_bus_flush(bus, END_AGENTS, NULL);
}

bool prb_cluster_down(struct prb_cluster_bus *out, bool *was_running, struct prb_error *err)
{
    struct state state;
    char folder[PATH_MAX];
    *out = (struct prb_cluster_bus){0};
    *was_running = false;
    if (!prb_bus_folder(folder, err))
        return false;
    if (access(folder, F_OK) != 0 && errno == ENOENT)
        return true;
    PRB_AUTO_FD int lock = open_lock(folder, err);
    if (lock < 0)
        return false;
    if (!is_held(lock))
        return true;
    if (!wait_for_state(folder, lock, &state, err))
        return !is_held(lock); /* it was just ending */
    *was_running = true;
    fill(out, folder, &state);
    if (!out->pid) {
        prb_fail(err, PRB_UNSUPPORTED, "the bus runs on another host, %s", state.host);
        return prb_error_remedy(err, "run `probing cluster down` there");
    }
    end_agents(folder);
    PRB_AUTO_FD int process = (int)syscall(SYS_pidfd_open, state.pid, 0);
    if (!is_here(&state))
        return true;
    if (process >= 0 ? syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0) != 0
                     : kill(state.pid, SIGTERM) != 0)
        return errno == ESRCH || prb_fail_sys(err, errno, "process %d", state.pid);
    double until = prb_clock_s() + ENDS;
    while (is_held(lock))
        if (prb_clock_s() > until)
            return prb_fail(err, PRB_TIMEOUT, "process %d does not end", state.pid);
        else
            poll(NULL, 0, LOOK_MS);
    return true;
}
