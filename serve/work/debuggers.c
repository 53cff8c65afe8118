/* posix_spawn(3); what it prints first says where it listens, its complaints go to a file in memory. */
#include "serve/work/debuggers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "serve/text/command.h"

#define SAID_MAX 4096
#define LOOK_MS 50
#define ENDS_MS 1000 /* for one that has closed its output */
#define BEFORE "waiting for a debugger on "

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all, also while one starts */
static struct one {
    pid_t pid; /* of the debug server; 0: the place is free */
    pid_t target;
    struct prb_debug_server told;
} all[PRB_DEBUGGERS_MAX];

/* With the lock. */
static void forget_ended(void)
{
    for (size_t i = 0; i < PRB_DEBUGGERS_MAX; i++)
        if (all[i].pid && waitpid(all[i].pid, NULL, WNOHANG) != 0)
            all[i] = (struct one){0};
}

static struct one *of_target(pid_t target)
{
    for (size_t i = 0; i < PRB_DEBUGGERS_MAX; i++)
        if (target ? all[i].pid && all[i].target == target : !all[i].pid)
            return all + i;
    return NULL;
}

static void end(pid_t pid, int how)
{
    kill(pid, how);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* One that says no more: its exit status; -1: it had to be ended. */
static int end_of(pid_t pid)
{
    int status = -1;
    for (int i = 0; i < ENDS_MS; i++) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        usleep(1000);
    }
    end(pid, SIGKILL);
    return -1;
}

/* ---- starting ---- */

static bool spawn(const struct prb_debug_wanted *wanted, int out, int complaint, pid_t *pid,
                  struct prb_error *err)
{
    char number[16];
    const char *words[] = {
        wanted->program, "-p", number, "debug", wanted->pause ? "--pause" : "--listen", "--address",
        wanted->address, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    snprintf(number, sizeof number, "%d", (int)wanted->target);
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, complaint, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP); /* Ctrl-C is for us */
    int sys = posix_spawn(pid, wanted->program, &files, &attributes, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return sys == 0 || prb_fail_sys(err, sys, "running %s", wanted->program);
}

/* Its last line, which has the token, is whole. */
static bool has_token(const char *where)
{
    const char *token = where ? strstr(where, "?token=") : NULL;
    return token && strchr(token, '\n');
}

/* What it prints until it listens, or ends. */
static bool hear(const struct prb_debug_wanted *wanted, int from, char said[SAID_MAX],
                 struct prb_error *err)
{
    size_t len = 0;
    const char *where = NULL;
    while (!has_token(where)) {
        struct pollfd polled = {from, POLLIN, 0};
        int ready = poll(&polled, 1, LOOK_MS);
        if (!wanted->goes_on(wanted->context))
            return prb_fail(err, PRB_TIMEOUT, "the debug server did not begin to listen");
        if (ready <= 0)
            continue;
        ssize_t n = read(from, said + len, SAID_MAX - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        said[len] = '\0';
        where = strstr(said, BEFORE);
    }
    return where != NULL;
}

static bool take_told(const char *said, struct prb_debug_server *out)
{
    const char *where = strstr(said, BEFORE) + strlen(BEFORE), *token = strstr(where, "?token=");
    size_t len = strcspn(where, "\n"), token_len = token ? strcspn(token + 7, "\n") : 0;
    if (!len || len >= sizeof out->address || token_len >= sizeof out->token)
        return false;
    snprintf(out->address, sizeof out->address, "%.*s", (int)len, where);
    snprintf(out->token, sizeof out->token, "%.*s", (int)token_len, token ? token + 7 : "");
    out->paused = strstr(said, "is paused") != NULL;
    return true;
}

/* Its last complaint that is no note, and what stands below. */
static bool explain(int complaint, int status, struct prb_error *err)
{
    char text[SAID_MAX];
    ssize_t n = pread(complaint, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "probing: ");
    while (at && strncmp(at + 9, "note: ", 6) == 0)
        at = strstr(at + 9, "probing: ");
    if (!at)
        return prb_fail(err, PRB_INTERNAL, "the debug server ended without a word");
    size_t len = strcspn(at + 9, "\n");
    prb_fail(err, prb_command_code(status), "%.*s", (int)len, at + 9);
    const char *remedy = at + 9 + len;
    remedy += strspn(remedy, "\n ");
    return prb_error_remedy(err, "%.*s", (int)strcspn(remedy, "\n"), remedy);
}

/* With the lock. */
static bool begin(const struct prb_debug_wanted *wanted, struct one *place, struct prb_error *err)
{
    char said[SAID_MAX] = "";
    int ends[2];
    pid_t pid;
    struct prb_debug_server told;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return prb_fail_sys(err, errno, "making a pipe");
    PRB_AUTO_FD int from = ends[0];
    PRB_AUTO_FD int complaint = memfd_create("debugger", MFD_CLOEXEC);
    bool ok = complaint >= 0 ? spawn(wanted, ends[1], complaint, &pid, err)
                             : prb_fail_sys(err, errno, "making a file");
    close(ends[1]);
    if (!ok)
        return false;
    *err = (struct prb_error){0};
    if (hear(wanted, from, said, err) && take_told(said, &told)) {
        *place = (struct one){pid, wanted->target, told};
        explicit_bzero(said, sizeof said);
        return true;
    }
    if (err->code == PRB_OK)
        return explain(complaint, end_of(pid), err);
    end(pid, SIGKILL);
    return false;
}

bool prb_debugger_begin(const struct prb_debug_wanted *wanted, struct prb_debug_server *out,
                        bool *fresh, struct prb_error *err)
{
    pthread_mutex_lock(&lock);
    forget_ended();
    struct one *known = of_target(wanted->target), *place = known ? known : of_target(0);
    bool ok = known || (place ? begin(wanted, place, err)
                              : prb_fail(err, PRB_BUSY, "%d processes have a debug server already",
                                         PRB_DEBUGGERS_MAX));
    if (ok)
        *out = place->told;
    *fresh = !known;
    pthread_mutex_unlock(&lock);
    return ok;
}

bool prb_debugger_end(pid_t target, struct prb_error *err)
{
    pthread_mutex_lock(&lock);
    forget_ended();
    struct one *known = of_target(target);
    if (known) {
        end(known->pid, SIGTERM);
        *known = (struct one){0};
    }
    pthread_mutex_unlock(&lock);
    return known != NULL ||
           prb_fail(err, PRB_NOT_FOUND, "this server started no debug server for process %d",
                    (int)target);
}

void prb_debuggers_end(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < PRB_DEBUGGERS_MAX; i++)
        if (all[i].pid)
            end(all[i].pid, SIGTERM);
    memset(all, 0, sizeof all);
    pthread_mutex_unlock(&lock);
}
