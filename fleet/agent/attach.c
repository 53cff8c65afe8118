/* Starting and ending this host's agent in the background: cluster.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "fleet/agent/agent.h"
#include "fleet/settings.h"
#include "proc/stat.h"
#include "ring/ring.h"

#define STARTS 40.0 /* s: a bus has some servers, each with its own time-out */
#define ENDS 10.0
#define LOOK_MS 20
#define LOCK_PATH (PRB_RING_PATH_MAX + 40)

/* Agents of two containers see different ranks. */
static bool lock_path(char out[LOCK_PATH], struct prb_error *err)
{
    char data[PRB_RING_PATH_MAX];
    struct stat space;
    if (!prb_ring_data_dir(data, err))
        return false;
    if (stat("/proc/self/ns/pid", &space) != 0)
        space.st_ino = 0;
    snprintf(out, LOCK_PATH, "%s/agent-%lu.lock", data, (unsigned long)space.st_ino);
    return true;
}

/* create: 0 or O_CREAT. */
static int open_lock(int create, struct prb_error *err)
{
    char path[LOCK_PATH];
    if (!lock_path(path, err))
        return -1;
    int fd = open(path, O_RDWR | create | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        prb_fail_sys(err, errno, "%s", path);
    return fd;
}

/* Whose agent has ended removed it since it was opened: the name is another file's, or nobody's. */
static bool is_removed(int lock)
{
    struct stat info;
    return fstat(lock, &info) == 0 && info.st_nlink == 0;
}

/* "PID START [within]": who has it; 0: nobody, or it cannot be read.  within_out: may be NULL. */
static int holder(int lock, bool *within_out)
{
    char text[80], folder[32], how[8] = "";
    long long started = 0;
    int pid = 0;
    struct prb_stat now;
    size_t len = prb_read_at(lock, text, sizeof text - 1, 0);
    text[len] = '\0';
    if (sscanf(text, "%d %lld %7s", &pid, &started, how) < 2 || pid <= 1)
        return 0;
    if (within_out)
        *within_out = strcmp(how, "within") == 0;
    snprintf(folder, sizeof folder, "/proc/%d", pid);
    return prb_stat_of(folder, &now) && now.field[PRB_STAT_STARTTIME] == started ? pid : 0;
}

bool prb_agent_lock_take(int *lock_out, int *pid_out, struct prb_error *err)
{
    *lock_out = -1;
    *pid_out = 0;
    for (;;) {
        PRB_AUTO_FD int lock = open_lock(O_CREAT, err);
        if (lock < 0)
            return false;
        if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
            *pid_out = holder(lock, NULL);
            return false;
        }
        if (is_removed(lock))
            continue;
        *lock_out = PRB_STEAL_FD(lock);
        return true;
    }
}

void prb_agent_lock_remove(int lock)
{
    char path[LOCK_PATH];
    /* While it is locked nobody has another of this name. */
    if (!is_removed(lock) && lock_path(path, NULL))
        unlink(path);
}

bool prb_agent_lock_tell(int lock, bool within)
{
    char text[80];
    struct prb_stat own;
    if (!prb_stat_of("/proc/self", &own))
        return false;
    int len = snprintf(text, sizeof text, "%d %lld%s\n", (int)getpid(),
                       (long long)own.field[PRB_STAT_STARTTIME], within ? " within" : "");
    return ftruncate(lock, 0) == 0 && pwrite(lock, text, (size_t)len, 0) == len;
}

/* ---- the agent's process ---- */

struct told {
    int fd;
};

static void tell_ready(void *context)
{
    struct told *told = context;
    char text[40];
    int len = snprintf(text, sizeof text, "ready %d\n", (int)getpid());
    prb_write_all(told->fd, text, (size_t)len);
    close(told->fd);
    told->fd = -1;
}

static void tell_error(const struct told *told, const struct prb_error *err)
{
    if (told->fd >= 0)
        prb_write_all(told->fd, err, sizeof *err);
}

static void agent_process(const struct prb_cluster_agent_options *options, int lock, int told_fd)
{
    struct told told = {told_fd};
    struct prb_error err = {0};
    struct prb_cluster_agent_options own = *options;
    sigset_t ends;
    int null = open("/dev/null", O_RDWR);
    if (setsid() < 0 || null < 0 || dup2(null, 0) != 0 || dup2(null, 1) != 1 || dup2(null, 2) != 2)
        _exit(127);
    /* Pipes of whoever called us would stay open. */
    int low = lock < told_fd ? lock : told_fd, high = lock < told_fd ? told_fd : lock;
    prb_close_descriptors(3, (unsigned)low - 1);
    prb_close_descriptors((unsigned)low + 1, (unsigned)high - 1);
    prb_close_descriptors((unsigned)high + 1, UINT_MAX);
    prctl(PR_SET_NAME, "probing-agent");
    if (setpriority(PRIO_PROCESS, 0, (int)prb_fleet_setting(PRB_FLEET_nice)) != 0)
        errno = 0; /* it may be so already */
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1); /* its threads seldom run at a time, and each would keep memory */
#endif
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    own.stop_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    own.ready = tell_ready;
    own.say = NULL;
    own.context = &told;
    bool good = own.stop_fd >= 0 && prb_agent_lock_tell(lock, false)
                    ? prb_cluster_agent(&own, &err)
                    : prb_fail_sys(&err, errno, "the agent's lock");
    prb_agent_lock_remove(lock);
    if (!good) {
        flock(lock, LOCK_UN); /* who is told may try again at once */
        tell_error(&told, &err);
    }
    /* Whoever waits for our end looks at the lock. */
    _exit(good ? 0 : prb_code_exit(err.code));
}

static bool hear(int from, int *pid_out, struct prb_error *err)
{
    struct prb_error got = {0};
    char bytes[sizeof got + 1];
    size_t len = 0;
    struct pollfd ready = {.fd = from, .events = POLLIN};
    double until = prb_clock_s() + STARTS;
    for (double left; len < sizeof got && (left = until - prb_clock_s()) > 0;) {
        if (poll(&ready, 1, (int)(left * 1e3) + 1) <= 0)
            continue;
        ssize_t n = read(from, bytes + len, sizeof got - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    bytes[len] = '\0';
    if (sscanf(bytes, "ready %d\n", pid_out) == 1)
        return true;
    if (len != sizeof got)
        return prb_fail(err, PRB_INTERNAL, "the agent ended before it was connected");
    memcpy(&got, bytes, sizeof got);
    if (err)
        *err = got;
    return false;
}

bool prb_cluster_attach(const struct prb_cluster_agent_options *options,
                        struct prb_cluster_attached *out, struct prb_error *err)
{
    int told[2];
    *out = (struct prb_cluster_attached){0};
    PRB_AUTO_FD int lock = -1;
    struct prb_error why = {0};
    if (!prb_agent_lock_take(&lock, &out->pid, &why)) {
        if (why.code && err)
            *err = why;
        return out->already = !why.code;
    }
    if (pipe2(told, O_CLOEXEC) != 0)
        return prb_fail_sys(err, errno, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        pid_t agent = fork();
        if (agent == 0)
            agent_process(options, lock, told[1]);
        _exit(agent < 0);
    }
    int failed = errno;
    close(told[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
    bool good = child > 0 ? hear(told[0], &out->pid, err) : prb_fail_sys(err, failed, "a process");
    close(told[0]);
    return good;
}

static bool is_held(int lock)
{
    if (flock(lock, LOCK_EX | LOCK_NB) != 0)
        return true;
    flock(lock, LOCK_UN);
    return false;
}

bool prb_cluster_detach(bool *was_running, struct prb_error *err)
{
    *was_running = false;
    struct prb_error why = {0};
    PRB_AUTO_FD int lock = open_lock(0, &why);
    bool within = false;
    if (lock < 0 && why.sys != ENOENT && err)
        *err = why;
    if (lock < 0 || !is_held(lock))
        return lock >= 0 || why.sys == ENOENT;
    *was_running = true;
    int pid = holder(lock, &within);
    if (pid && within) {
        prb_fail(err, PRB_BUSY, "this host's agent is a part of process %d", pid);
        return prb_error_remedy(err, "it ends with that: `probing serve --agent`");
    }
    PRB_AUTO_FD int process = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pid && holder(lock, NULL) == pid) {
        if (process >= 0 ? syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0) != 0
                         : kill(pid, SIGTERM) != 0)
            if (errno != ESRCH)
                return prb_fail_sys(err, errno, "process %d", pid);
    }
    double until = prb_clock_s() + ENDS;
    while (is_held(lock)) {
        if (prb_clock_s() > until)
            return prb_fail(err, PRB_TIMEOUT, "this host's agent, process %d, does not end", pid);
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}
