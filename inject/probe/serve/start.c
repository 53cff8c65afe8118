/*
 * The program is no child that the job could see: a process without a signal of its end makes it and
 * ends at once (clone(2), CLONE_VM and CLONE_VFORK: nothing of a large process is copied), so it is
 * init's.  Where this process is init, the server becomes its child as every orphan does, and ends
 * after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/raw.h"
#include "inject/probe/crash/crash.h"
#include "inject/probe/libc.h"
#include "inject/probe/outside/outside.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/serve/serve.h"
#include "inject/probe/settings.h"

#define STACK_BYTES 16384
#define START_S 20    /* until it listens */
#define SAID_MAX 2000 /* bytes of what it says */
#define NICER 10
#define OOM_SCORE "500" /* it goes before the job does */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static uint8_t stacks[2][STACK_BYTES] __attribute__((aligned(64)));
static char program[512], pid_text[16], address_text[PRB_SERVE_ADDRESS_MAX], allow_text[64];
static int told;              /* where the server says its address */
static volatile long started; /* its pid, or what failed, negative */

void prb_serve_start_forked(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

/* ---- the program ---- */

static bool try_program(const char *folder, size_t len, const char *below)
{
    char path[sizeof program];
    struct stat info;
    int n = snprintf(path, sizeof path, "%.*s%s", (int)len, folder, below);
    if (n < 0 || (size_t)n >= sizeof path || path[0] != '/' ||
        fstatat(AT_FDCWD, path, &info, 0) != 0 || !S_ISREG(info.st_mode) || access(path, X_OK) != 0)
        return false;
    memcpy(program, path, (size_t)n + 1);
    return true;
}

/* The one that is set, else beside the program `probing`; in a build one folder above it. */
static bool find_program(struct prb_error *err)
{
    char given[PRB_SETTING_TEXT_MAX];
    prb_crash_plan_make();
    const char *slash = strrchr(prb_crash_plan.program, '/');
    size_t len = slash ? (size_t)(slash - prb_crash_plan.program) : 0;
    if (prb_settings_get("probing.serve_program", given, sizeof given) > 0)
        return try_program(given, strlen(given), "") ||
               prb_fail(err, PRB_NOT_FOUND, "probing.serve_program is no program: %.200s", given);
    if (slash && (try_program(prb_crash_plan.program, len, "/probing-serve") ||
                  try_program(prb_crash_plan.program, len, "/../probing-serve")))
        return true;
    prb_fail(err, PRB_NOT_FOUND, "the program probing-serve is not there");
    return prb_error_remedy(err, "probing.serve_program names it; `probing PID inject -l` starts "
                                 "it from outside");
}

/* ---- in the memory of both ---- */

/* It must take no time and no memory from the job. */
static void step_back(void)
{
    long now = PRB_RAW2(SYS_getpriority, PRIO_PROCESS, 0); /* 20 less the niceness */
    if (now > 0)
        PRB_RAW3(SYS_setpriority, PRIO_PROCESS, 0, 20 - now + NICER);
    long fd = PRB_RAW4(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0);
    if (fd >= 0) {
        PRB_RAW3(SYS_write, fd, OOM_SCORE, sizeof OOM_SCORE - 1);
        PRB_RAW1(SYS_close, fd);
    }
}

static int run_server(void *nothing)
{
    char *arguments[] = {
        (char *)"probing-serve", (char *)"--target", pid_text, (char *)"--address", address_text,
        (char *)"--allow",       allow_text,         NULL};
    if (!*allow_text)
        arguments[5] = NULL;
    (void)nothing;
    PRB_RAW0(SYS_setsid);
    step_back();
    started = PRB_RAW3(SYS_execve, program, arguments, prb_crash_plan.environment);
    return 127;
}

static int run_between(void *nothing)
{
    (void)nothing;
    prb_outside_reset_signals();
    long null = PRB_RAW4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    if (told < 3) { /* of a program that closed its standard descriptors */
        long high = PRB_RAW3(SYS_fcntl, told, F_DUPFD, 3);
        told = high >= 0 ? (int)high : told;
    }
    PRB_RAW3(SYS_dup3, null, 0, 0);
    PRB_RAW3(SYS_dup3, told, 1, 0);
    PRB_RAW3(SYS_dup3, told, 2, 0);
    prb_close_descriptors(3, UINT_MAX);
    long pid = prb_raw_clone(CLONE_VM | CLONE_VFORK, stacks[1] + STACK_BYTES, run_server, NULL);
    if (pid < 0 || !started) /* run_server says why it could not execute */
        started = pid;
    return 0;
}

/* ---- what it says ---- */

/* explicit_bzero(3) is of glibc 2.25, and the probe needs less. */
void prb_serve_wipe(void *bytes, size_t count)
{
    volatile char *at = bytes;
    while (count--)
        *at++ = 0;
}

/* Its lines, to the end or for so long: "http://…" and "process PID", or "probing: …". */
static bool listen_to(int fd, char said[SAID_MAX], struct prb_error *err)
{
    uint64_t until = prb_clock_ns() + (uint64_t)START_S * 1000000000;
    size_t len = 0;
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        uint64_t now = prb_clock_ns();
        int left = now < until ? (int)((until - now) / 1000000 + 1) : 0;
        int ready = poll(&polled, 1, left);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return prb_fail(err, PRB_TIMEOUT, "the server did not begin to listen in %d s",
                            START_S);
        ssize_t n = ready > 0 ? read(fd, said + len, SAID_MAX - 1 - len) : -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0)
            len += (size_t)n;
        said[len] = '\0';
        if (n <= 0 || len == SAID_MAX - 1 || strstr(said, "\nprocess "))
            return true;
    }
}

static bool take_url(const char *said, char url[PRB_SERVE_URL_MAX], struct prb_error *err)
{
    size_t len = strcspn(said, "\n");
    if (strncmp(said, "http", 4) == 0 && len < PRB_SERVE_URL_MAX) {
        snprintf(url, PRB_SERVE_URL_MAX, "%.*s", (int)len, said);
        return true;
    }
    const char *text = strncmp(said, "probing: ", 9) == 0 ? said + 9 : said;
    return prb_fail(err, PRB_IO, "no server: %.*s", (int)strcspn(text, "\n"),
                    *text ? text : "it ended without a word");
}

/* Documentation/admin-guide/LSM/Yama.rst: of several ranks the server may be another's. */
static void name_tracer(const char *said)
{
    const char *line = strstr(said, "\nprocess ");
    long pid = line ? strtol(line + 9, NULL, 10) : started;
    if (prb_crash_plan.name_tracer && pid > 0)
        prctl(PR_SET_PTRACER, pid);
}

/* ---- starting ---- */

static int make_pipe(void *context)
{
    int *ends = context;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    return ends[0];
}

static void reap(long pid)
{
    while (PRB_RAW4(SYS_wait4, pid, NULL, __WALL, NULL) == -EINTR)
        ;
}

static bool start_there(char url[PRB_SERVE_URL_MAX], struct prb_error *err)
{
    char said[SAID_MAX] = "";
    int ends[2];
    if (!find_program(err))
        return false;
    if (prb_own_fd_make(make_pipe, ends) < 0)
        return prb_fail_sys(err, errno, "making a pipe");
    snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
    told = ends[1];
    started = 0;
    long between =
        prb_raw_clone(CLONE_VM | CLONE_VFORK, stacks[0] + STACK_BYTES, run_between, NULL);
    close(ends[1]);
    if (between > 0)
        reap(between);
    long failed = between < 0 ? between : started < 0 ? started : 0;
    bool ok = failed ? prb_fail_sys(err, (int)-failed, "starting %s", program)
                     : (name_tracer(""), listen_to(ends[0], said, err));
    prb_own_fd_close(ends[0]);
    if (!ok)
        return false;
    name_tracer(said);
    ok = take_url(said, url, err);
    prb_serve_wipe(said, sizeof said);
    return ok;
}

bool prb_serve_start(const char *address, const char *allow, char url[PRB_SERVE_URL_MAX],
                     struct prb_error *err)
{
    if (allow && strlen(allow) >= sizeof allow_text)
        return prb_fail(err, PRB_USAGE, "\"%.60s\" is none of look, control and eval", allow);
    pthread_mutex_lock(&lock);
    prb_serve_address_whole(address, address_text);
    snprintf(allow_text, sizeof allow_text, "%s", allow ? allow : "");
    bool ok = start_there(url, err);
    pthread_mutex_unlock(&lock);
    return ok;
}
