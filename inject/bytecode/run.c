/*
 * The process that compiles: see run.h.  Between fork(2) and the program there are system calls
 * only, as other threads of ours may hold any lock.
 */
#include "inject/bytecode/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "inject/bytecode/confined.h"
#include "inject/probe/python/bytecode_form.h"
#include "inject/probe/python/sources.h"

#define LIMIT_NS 3000000000u
#define CPU_S 3
#define MEMORY_MAX (2ull << 30)

/*
 * Strings and bytes follow their lengths (4 bytes, little endian).  In: the mark that ends a
 * piece, then file name and text of each source, last an empty name.  Out: the magic number,
 * sys.version, then as bytecode_form.h says.
 */
static const char program[] =
    "import sys, marshal\n"
    "from _frozen_importlib_external import MAGIC_NUMBER\n"
    "read, write = sys.stdin.buffer.read, sys.stdout.buffer.write\n"
    "def get():\n"
    "    return read(int.from_bytes(read(4), 'little')).decode()\n"
    "def put(data):\n"
    "    write(len(data).to_bytes(4, 'little') + data)\n"
    "put(MAGIC_NUMBER)\n"
    "put(sys.version.encode())\n"
    "end = get()\n"
    "file = get()\n"
    "while file:\n"
    "    line, codes = 0, []\n"
    "    for piece in get().split(end):\n"
    "        codes.append(compile('\\n' * line + piece + '\\n', file, 'exec', 0, True))\n"
    "        line += piece.count('\\n') + len(end)\n"
    "    put(marshal.dumps(tuple(codes)))\n"
    "    file = get()\n"
    "sys.stdout.buffer.flush()\n";

/* ---- input and output ---- */

static void put(struct prb_buf *to, const char *data, size_t len)
{
    uint32_t size = (uint32_t)len;
    prb_buf_add(to, &size, sizeof size);
    prb_buf_add(to, data, len);
}

static bool add_sources(struct prb_buf *to)
{
    put(to, PRB_PY_PIECE_END, strlen(PRB_PY_PIECE_END));
    for (const struct prb_py_source *one = prb_py_sources; one->name; one++) {
        put(to, one->file, strlen(one->file));
        put(to, one->text, one->len);
    }
    put(to, "", 0);
    return prb_buf_ok(to);
}

/* The output as a sealed blob. */
static bool take(const struct prb_buf *told, struct prb_buf *out)
{
    struct prb_bytecode_head head = {0};
    uint32_t len;
    if (told->len < 2 * sizeof len + sizeof head.magic)
        return false;
    memcpy(&len, told->data, sizeof len);
    if (len != sizeof head.magic)
        return false;
    memcpy(head.magic, told->data + sizeof len, sizeof head.magic);
    size_t at = sizeof len + sizeof head.magic;
    memcpy(&head.version_len, told->data + at, sizeof head.version_len);
    at += sizeof head.version_len;
    PRB_AUTO(prb_buf) struct prb_buf blob = {0};
    prb_buf_add(&blob, &head, sizeof head);
    prb_buf_add(&blob, told->data + at, told->len - at);
    if (!prb_buf_ok(&blob))
        return false;
    prb_bytecode_seal(blob.data, blob.len);
    if (prb_bytecode_sound(blob.data, blob.len))
        prb_buf_add(out, blob.data, blob.len);
    return out->len && prb_buf_ok(out);
}

/* ---- the child ---- */

struct child {
    const struct prb_confined *confined;
    int in[2], out[2]; /* pipes */
    int null;
    int tool; /* pidfd_open(2) of this process */
    char *const *arguments, *const *environment;
};

static void set_limits(void)
{
    static const struct {
        int what;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CPU, CPU_S}, {RLIMIT_AS, MEMORY_MAX}, {RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        setrlimit(limits[i].what, &(struct rlimit){limits[i].most, limits[i].most});
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int signal_ = 1; signal_ < NSIG; signal_++)
        signal(signal_, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Whether the tool has ended; getppid(2) does not show it across pid namespaces. */
static bool orphaned(int tool)
{
    struct pollfd fd = {.fd = tool, .events = POLLIN};
    return poll(&fd, 1, 0) != 0;
}

/* Never returns. */
static void be_child(const struct child *child)
{
    const struct prb_confined *confined = child->confined;
    bool ok = dup2(child->in[0], 0) == 0 && dup2(child->out[1], 1) == 1 &&
              dup2(child->null, 2) == 2 && setsid() >= 0;
    ok = (prb_close_on_exec(3) || !confined->drops) && ok;
    set_limits();
    reset_signals();
    ok = ok && prb_confined_enter(confined) && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
         !orphaned(child->tool);
    if (ok)
        syscall(SYS_execveat, confined->program, "", child->arguments, child->environment,
                AT_EMPTY_PATH);
    _exit(127);
}

/* ---- talking to it ---- */

/* False: it failed, wrote too much, or took too long. */
static bool talk(int in, int out, const struct prb_buf *sources, struct prb_buf *told)
{
    uint64_t until = prb_clock_ns() + LIMIT_NS;
    size_t sent = 0;
    PRB_AUTO_FD int to = in;
    for (;;) {
        uint64_t now = prb_clock_ns();
        struct pollfd fds[] = {{.fd = out, .events = POLLIN}, {.fd = to, .events = POLLOUT}};
        if (now >= until || poll(fds, 2, (int)((until - now) / 1000000u) + 1) < 0)
            return false;
        if (fds[1].revents) {
            ssize_t n = write(to, sources->data + sent, sources->len - sent);
            if (n < 0 && errno != EAGAIN)
                return false;
            sent += n > 0 ? (size_t)n : 0;
            if (sent == sources->len) {
                close(to);
                to = -1;
            }
        }
        if (!fds[0].revents)
            continue;
        ssize_t n = told->len < PRB_BYTECODE_MAX ? prb_buf_read_some(told, out, 1u << 16) : -1;
        if (n <= 0)
            return n == 0;
    }
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/*
 * As fork(2), without atfork handlers.  The child is the first of a pid namespace, where we have
 * the right to make one: when it ends, whatever it started ends, too.
 */
static pid_t begin(void)
{
    long pid = syscall(SYS_clone, (long)CLONE_NEWPID | SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid < 0)
        pid = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    return (pid_t)pid;
}

static bool run(struct child *child, const struct prb_buf *sources, struct prb_buf *told)
{
    pid_t pid = begin();
    if (pid == 0)
        be_child(child);
    close(child->in[0]);
    close(child->out[1]);
    child->in[0] = child->out[1] = -1;
    if (pid < 0)
        return false;
    int in = PRB_STEAL_FD(child->in[1]);
    bool ok = talk(in, child->out[0], sources, told);
    end_child(pid);
    return ok;
}

static void close_child(struct child *child)
{
    const int fds[] = {child->in[0],  child->in[1], child->out[0],
                       child->out[1], child->null,  child->tool};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}
PRB_DEFINE_AUTO(child, struct child, close_child)

/* A broken pipe is reported by write(2), not by a signal that ends us. */
static void hold_sigpipe(void)
{
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, NULL);
}

bool prb_bytecode_make(pid_t pid, struct prb_buf *out, bool *ours_out)
{
    PRB_AUTO(prb_confined) struct prb_confined confined;
    PRB_AUTO(prb_buf) struct prb_buf sources = {0}, told = {0};
    PRB_AUTO(child)
    struct child child = {
        .confined = &confined, .in = {-1, -1}, .out = {-1, -1}, .null = -1, .tool = -1};
    if (!prb_confined_look(&confined, pid) || !add_sources(&sources))
        return false;
    child.null = open("/dev/null", O_RDWR | O_CLOEXEC);
    child.tool = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (child.null < 3 || child.tool < 0 || pipe2(child.in, O_CLOEXEC) != 0 ||
        pipe2(child.out, O_CLOEXEC) != 0 || fcntl(child.in[1], F_SETFL, O_NONBLOCK) != 0)
        return false;
    char *arguments[] = {confined.path, confined.home ? "-sSB" : "-ISB", "-c", (char *)program,
                         NULL};
    char *environment[] = {confined.libraries, confined.home, NULL};
    child.arguments = arguments;
    child.environment = confined.libraries ? environment : environment + 1;
    hold_sigpipe();
    bool made = run(&child, &sources, &told) && take(&told, out);
    *ours_out = confined.ours;
    return made;
}
