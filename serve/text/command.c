/* posix_spawn(3) with two pipes; the program is killed when nobody wants its output any more. */
#include "serve/text/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"

#define WORDS_MAX 24
#define LOOK_MS 50
#define PIECE 65536

extern char **environ;

bool prb_command_program(char *out, size_t size, struct prb_error *err)
{
    static const char *const places[] = {"probing", ".libs/probing"}; /* installed; in the build */
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < 2; i++) {
        int len = snprintf(out, size, "%s/%s", own, places[1 - i]);
        if (len > 0 && (size_t)len < size && access(out, X_OK) == 0)
            return true;
    }
    return prb_fail(err, PRB_NOT_FOUND, "there is no probing beside %s/probing-serve", own);
}

enum prb_code prb_command_code(int status)
{
    static const enum prb_code codes[] = {
#define CODE(name, text, exit_code) PRB_##name,
        PRB_CODES(CODE)
#undef CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (status > 0 && prb_code_exit(codes[i]) == status)
            return codes[i];
    return PRB_INTERNAL;
}

struct ends {
    int out[2], error[2];
};

static void shut(struct ends *ends)
{
    int *const all[] = {ends->out, ends->out + 1, ends->error, ends->error + 1};
    for (size_t i = 0; i < 4; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

static bool spawn(const struct prb_command_run *run, struct ends *ends, pid_t *pid)
{
    const char *words[WORDS_MAX + 1] = {run->program};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    for (size_t i = 0; run->arguments[i] && i + 1 < WORDS_MAX; i++)
        words[i + 1] = run->arguments[i];
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends->out[1], 1);
    posix_spawn_file_actions_adddup2(&files, ends->error[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int sys = posix_spawn(pid, run->program, &files, &attributes, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = sys;
    return sys == 0;
}

/* Pass on what comes until both pipes end.  False: it was not wanted to the end. */
static bool pass_on(const struct prb_command_run *run, const struct ends *ends)
{
    struct pollfd polled[] = {{ends->out[0], POLLIN, 0}, {ends->error[0], POLLIN, 0}};
    PRB_AUTO_FREE char *bytes = malloc(PIECE);
    if (!bytes)
        return false;
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        poll(polled, 2, LOOK_MS);
        if (!run->goes_on(run->context))
            return false;
        for (int i = 0; i < 2; i++) {
            if (polled[i].fd < 0 || !polled[i].revents)
                continue;
            ssize_t n = read(polled[i].fd, bytes, PIECE);
            if (n <= 0)
                polled[i].fd = -1;
            else if (!run->piece(run->context, i == 1, bytes, (size_t)n))
                return false;
        }
    }
    return true;
}

bool prb_command_run(const struct prb_command_run *run, int *status, struct prb_error *err)
{
    struct ends ends = {{-1, -1}, {-1, -1}};
    pid_t pid;
    int ended = 0;
    if (pipe2(ends.out, O_CLOEXEC) < 0 || pipe2(ends.error, O_CLOEXEC) < 0 ||
        !spawn(run, &ends, &pid)) {
        int sys = errno;
        shut(&ends);
        return prb_fail_sys(err, sys, "running %s", run->program);
    }
    close(ends.out[1]);
    close(ends.error[1]);
    ends.out[1] = ends.error[1] = -1;
    bool whole = pass_on(run, &ends);
    if (!whole)
        kill(pid, SIGKILL);
    shut(&ends);
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        ;
    *status = whole && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    return true;
}
