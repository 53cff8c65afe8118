/*
 * Arming: everything that a handler uses is made while all is well, by one thread at a time.
 * sigaction(2).  Signals whose present handler belongs to a runtime that lives by them (a JVM's
 * null checks, Julia's safepoints) are left alone.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "base/rank_variables.h"
#include "inject/probe/crash/crash.h"
#include "inject/probe/libc.h"
#include "inject/probe/settings.h"
#include "inject/probe/socket_path.h"

#define ENVIRONMENT_MAX (1 << 20)

/* by_setting: NULL, or the setting that must be on, too. */
struct taken {
    int signal;
    const char *by_setting;
    _Atomic bool armed; /* previous holds what was there */
    _Atomic int handed; /* the process in which it was handed on */
    struct sigaction previous;
};

static struct taken signals[] = {
    {SIGSEGV, NULL},
    {SIGBUS, NULL},
    {SIGFPE, NULL},
    {SIGILL, NULL},
    {SIGTRAP, NULL},
    {SIGABRT, NULL},
    {SIGTERM, "probing.crash_term"},
};
enum { COUNT = sizeof signals / sizeof *signals };

struct prb_crash_plan prb_crash_plan;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool armed_once;
static _Atomic bool crash_is_on;

const struct sigaction *prb_crash_previous(int signal)
{
    for (size_t i = 0; i < COUNT; i++)
        if (signals[i].signal == signal)
            return atomic_load(&signals[i].armed) ? &signals[i].previous : NULL;
    return NULL;
}

bool prb_crash_may_hand_on(int signal)
{
    for (size_t i = 0; i < COUNT; i++)
        if (signals[i].signal == signal)
            return atomic_exchange(&signals[i].handed, getpid()) != getpid();
    return false;
}

/* ---- what the handler will need ---- */

static bool try_program(const char *folder, const char *below)
{
    char path[PATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s%s", folder, below);
    if (n < 0 || (size_t)n >= sizeof prb_crash_plan.program || path[0] != '/' ||
        fstatat(AT_FDCWD, path, &info, 0) != 0 || !S_ISREG(info.st_mode) || access(path, X_OK) != 0)
        return false;
    memcpy(prb_crash_plan.program, path, (size_t)n + 1);
    return true;
}

/* Beside this library: of the wheel and of a build folder, or where `make install` puts it. */
static bool find_beside(void)
{
    static const char *const below[] = {"/probing", "/../../bin/probing", "/../../../bin/probing"};
    Dl_info info;
    char path[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)find_beside, &info) || !info.dli_fname ||
        strlen(info.dli_fname) >= sizeof path)
        return false;
    strcpy(path, info.dli_fname);
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (try_program(path, below[i]))
            return true;
    return false;
}

static bool find_in_path(const char *folders)
{
    char folder[PATH_MAX];
    for (const char *at = folders; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        size_t n = strcspn(at, ":");
        if (n == 0 || n >= sizeof folder)
            continue;
        memcpy(folder, at, n);
        folder[n] = '\0';
        if (try_program(folder, "/probing"))
            return true;
    }
    return false;
}

static void find_program(void)
{
    char given[PRB_SETTING_TEXT_MAX];
    prb_crash_plan.program[0] = '\0';
    if (prb_settings_get("probing.crash_program", given, sizeof given) > 0 &&
        try_program(given, ""))
        return;
    if (!find_beside() && !find_in_path(secure_getenv("PATH")))
        find_in_path("/usr/local/bin:/usr/bin");
}

/* Not for the writer: what would start a probe in it, or a library that is meant for the program.
 */
static bool is_for_writer(const char *variable)
{
    return strncmp(variable, "PROBING=", 8) != 0 && strncmp(variable, "PROBE", 5) != 0 &&
           strncmp(variable, "LD_PRELOAD=", 11) != 0;
}

/* The environment that the process was started with, copied once. */
static void copy_environment(void)
{
    static char *none[] = {NULL};
    if (prb_crash_plan.environment)
        return;
    prb_crash_plan.environment = none;
    if (getauxval(AT_SECURE))
        return; /* it is the caller's, and the writer has this process's rights */
    PRB_AUTO_FREE char *text = malloc(ENVIRONMENT_MAX);
    long len = text ? prb_socket_path_self("environ", text, ENVIRONMENT_MAX) : -1;
    size_t count = 0;
    for (char *at = text; len > 0 && at < text + len; at += strlen(at) + 1)
        count++;
    char **variables = len > 0 ? calloc(count + 1, sizeof *variables) : NULL;
    if (!variables)
        return;
    size_t i = 0;
    for (char *at = text; at < text + len; at += strlen(at) + 1)
        if (is_for_writer(at))
            variables[i++] = at;
    prb_crash_plan.environment = variables;
    text = NULL; /* for as long as the process lives */
}

static void set_rank(void)
{
    static const char *const names[] = {PRB_RANK_VARIABLES};
    prb_crash_plan.rank[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);
        if (rank && *rank && strlen(rank) < 10 && rank[strspn(rank, "0123456789")] == '\0') {
            snprintf(prb_crash_plan.rank, sizeof prb_crash_plan.rank, "-rank%s", rank);
            return;
        }
    }
}

/* Documentation/admin-guide/LSM/Yama.rst */
static bool yama_is_on(void)
{
    char scope = '0';
    PRB_AUTO_FD int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &scope, 1) == 1 && scope == '1';
}

static void set_plan(void)
{
    char folder[PRB_SETTING_TEXT_MAX];
    if (prb_settings_get("probing.crash_dir", folder, sizeof folder) <= 0)
        folder[0] = '\0';
    snprintf(prb_crash_plan.folder, sizeof prb_crash_plan.folder, "%s", folder);
    prb_crash_plan.dump_bytes = (uint64_t)prb_settings_number("probing.crash_size", 0);
    prb_crash_plan.folder_bytes = (uint64_t)prb_settings_number("probing.crash_budget", 0);
    prb_crash_plan.wait_ns = (uint64_t)(prb_settings_number("probing.crash_wait", 10) * 1e9);
    prb_crash_plan.hold_ns = (uint64_t)(prb_settings_number("probing.crash_hold", 0) * 1e9);
    find_program();
    if (armed_once)
        return;
    copy_environment();
    set_rank();
    prb_crash_plan.name_tracer = yama_is_on();
    armed_once = true;
}

/* The program and its environment, for who starts it for another purpose. */
void prb_crash_plan_make(void)
{
    pthread_mutex_lock(&lock);
    set_plan();
    pthread_mutex_unlock(&lock);
}

/* ---- the signals ---- */

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == prb_crash_on_signal;
}

/* Whether faults are everyday life for who handles them now. */
static bool lives_by_it(const struct sigaction *action)
{
    static const char *const libraries[] = {"libjvm.so",  "libjulia",   "libmono",
                                            "libasan.so", "libtsan.so", "libmsan.so"};
    Dl_info info;
    if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN ||
        !dladdr((void *)(uintptr_t)action->sa_handler, &info) || !info.dli_fname)
        return false;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strstr(info.dli_fname, libraries[i]))
            return true;
    return false;
}

static void take(struct taken *one, bool again)
{
    struct sigaction now,
        own = {.sa_sigaction = prb_crash_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaction(one->signal, NULL, &now) != 0)
        return;
    if (is_ours(&now)) {
        atomic_store(&one->armed, true);
        return;
    }
    if ((atomic_load(&one->armed) && !again) || lives_by_it(&now))
        return; /* somebody came after us, and hands on to us */
    one->previous = now;
    sigfillset(&own.sa_mask);
    own.sa_flags |= now.sa_flags & SA_RESTART;
    atomic_store(&one->armed, true);
    if (sigaction(one->signal, &own, NULL) != 0)
        atomic_store(&one->armed, false);
}

static void release(struct taken *one)
{
    struct sigaction now;
    if (!atomic_load(&one->armed) || sigaction(one->signal, NULL, &now) != 0)
        return;
    if (is_ours(&now))
        sigaction(one->signal, &one->previous, NULL);
    else
        return; /* who came after us may still call us, and we hand on to who was before */
    atomic_store(&one->armed, false);
}

static bool is_on(const char *setting) { return prb_settings_number(setting, 0) > 0; }

bool prb_crash_is_on(void) { return atomic_load(&crash_is_on); }

void prb_crash_take_again(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; prb_crash_is_on() && i < COUNT; i++)
        if (atomic_load(&signals[i].armed))
            take(&signals[i], true);
    pthread_mutex_unlock(&lock);
}

void prb_crash_configure(void)
{
    bool on = is_on("probing.crash");
    pthread_mutex_lock(&lock);
    atomic_store(&crash_is_on, on);
    if (on || armed_once)
        set_plan();
    for (size_t i = 0; i < COUNT; i++) {
        if (on && (!signals[i].by_setting || is_on(signals[i].by_setting)))
            take(&signals[i], false);
        else
            release(&signals[i]);
    }
    pthread_mutex_unlock(&lock);
    prb_crash_watch_memory(on && is_on("probing.crash_memory"));
}

void prb_crash_end(void)
{
    prb_crash_watch_memory(false);
    pthread_mutex_lock(&lock);
    atomic_store(&crash_is_on, false);
    for (size_t i = 0; i < COUNT; i++)
        release(&signals[i]);
    pthread_mutex_unlock(&lock);
}

void prb_crash_forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    prb_crash_memory_forked();
    prb_crash_python_forked();
}
