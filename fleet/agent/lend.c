/* Processes that serve debuggers, and their streams: lend.h. */
#include "fleet/agent/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/syscalls.h"

#define SAID_MAX 4096
#define ENDS 5.0 /* s for a server to let its process go */
#define READY "waiting for a debugger on "
#define WORDS_MAX 20

struct lend {
    struct prb_lends *lends;
    bool used, running; /* guarded by lends->lock */
    pthread_t thread;
    struct prb_stream stream;
    char id[PRB_STREAM_ID], subject[PRB_BUS_SUBJECT];
    unsigned char secret[PRB_SECRET]; /* of both sides of the stream */
    char folder[32], path[48];        /* of the server's socket */
    pid_t server;
    int served_fd, rank;
};

struct prb_lends {
    struct prb_log_file *log;
    const char *program; /* NULL: this one */
    int stop_fd;
    pthread_mutex_t lock;
    struct lend all[PRB_LENDS_MAX];
};

/* ---- the server's process ---- */

/* Between fork and exec only what may be called there: the agent has other threads. */
static void become_server(const char *program, bool own, char *const *words, int out, int complaint,
                          pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    for (int i = 1; i < 32; i++)
        signal(i, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = open("/dev/null", O_RDONLY);
    if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(complaint, 2) < 0)
        _exit(127);
    prb_close_on_exec(3);
    execv(program, words);
    if (own)
        execv("/proc/self/exe", words); /* it was replaced by a newer one */
    _exit(127);
}

/* The words of the command; numbers: room for them. */
static void choose_words(const struct prb_lend_wanted *wanted, const struct lend *lend,
                         char numbers[2][32], const char *words[WORDS_MAX])
{
    const char *reached = json_string_value(json_object_get(wanted->args, "reached"));
    double resume = json_number_value(json_object_get(wanted->args, "resume_after"));
    size_t n = 0;
    snprintf(numbers[0], 32, "%d", (int)wanted->pid);
    words[n++] = "probing";
    words[n++] = "-p";
    words[n++] = numbers[0];
    words[n++] = "debug";
    words[n++] = "--address";
    words[n++] = lend->path;
    if (json_is_true(json_object_get(wanted->args, "look")))
        words[n++] = "--snapshot";
    else if (json_is_true(json_object_get(wanted->args, "pause")))
        words[n++] = "--pause";
    if (resume > 0) {
        snprintf(numbers[1], 32, "%.3f", resume);
        words[n++] = "--resume-after";
        words[n++] = numbers[1];
    }
    if (reached) {
        words[n++] = "--reached-at";
        words[n++] = reached;
    }
    words[n] = NULL;
}

/* What it prints until it listens, ends, or has no more time. */
static bool hear(int from, double until, struct prb_error *err)
{
    char said[SAID_MAX];
    size_t len = 0;
    for (double left; (left = until - prb_clock_s()) > 0 && len < sizeof said - 1;) {
        struct pollfd polled = {from, POLLIN, 0};
        if (poll(&polled, 1, (int)(left * 1e3) + 1) <= 0)
            continue;
        ssize_t n = read(from, said + len, sizeof said - 1 - len);
        if (n <= 0)
            return false; /* it has said why */
        said[len += (size_t)n] = '\0';
        if (strstr(said, READY))
            return true;
    }
    return prb_fail(err, PRB_TIMEOUT, "the debug server of the rank did not begin to listen");
}

/* Its last complaint that is no note. */
static bool explain(int complaint, struct prb_error *err)
{
    char text[SAID_MAX];
    ssize_t n = pread(complaint, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "probing: ");
    while (at && strncmp(at + 9, "note: ", 6) == 0)
        at = strstr(at + 9, "probing: ");
    return at ? prb_fail(err, PRB_IO, "%.*s", (int)strcspn(at + 9, "\n"), at + 9)
              : prb_fail(err, PRB_INTERNAL, "the debug server of the rank ended without a word");
}

static void remove_socket(const struct lend *lend)
{
    unlink(lend->path);
    rmdir(lend->folder);
}

static void end_server(struct lend *lend)
{
    struct pollfd ended = {lend->served_fd, POLLIN, 0};
    kill(lend->server, SIGTERM);
    kill(lend->server, SIGCONT);
    if (lend->served_fd < 0 || poll(&ended, 1, (int)(ENDS * 1e3)) <= 0)
        kill(lend->server, SIGKILL);
    while (waitpid(lend->server, NULL, 0) < 0 && errno == EINTR)
        ;
    if (lend->served_fd >= 0)
        close(lend->served_fd);
    remove_socket(lend);
}

static bool start_server(struct lend *lend, const struct prb_lend_wanted *wanted,
                         struct prb_error *err)
{
    const char *words[WORDS_MAX];
    char numbers[2][32];
    int out[2];
    double until = prb_clock_s() + wanted->budget;
    strcpy(lend->folder, "/tmp/probing-debug-XXXXXX");
    if (!mkdtemp(lend->folder))
        return prb_fail_sys(err, errno, "making a folder in /tmp");
    snprintf(lend->path, sizeof lend->path, "%s/socket", lend->folder);
    choose_words(wanted, lend, numbers, words);
    PRB_AUTO_FD int complaint = memfd_create("debug", MFD_CLOEXEC);
    if (complaint < 0 || pipe2(out, O_CLOEXEC) != 0) {
        remove_socket(lend);
        return prb_fail_sys(err, errno, "a pipe");
    }
    PRB_AUTO_FD int from = out[0];
    char program[PATH_MAX] = "";
    if (lend->lends->program)
        snprintf(program, sizeof program, "%s", lend->lends->program);
    else if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        *program = '\0';
    pid_t parent = getpid();
    lend->server = fork();
    if (lend->server == 0)
        become_server(program, !lend->lends->program, (char *const *)words, out[1], complaint,
                      parent);
    int sys = errno;
    close(out[1]);
    if (lend->server < 0) {
        remove_socket(lend);
        return prb_fail_sys(err, sys, "fork");
    }
    lend->served_fd = (int)syscall(SYS_pidfd_open, lend->server, 0);
    struct prb_error why = {0};
    if (hear(from, until, &why))
        return true;
    if (why.code == PRB_OK)
        explain(complaint, &why);
    end_server(lend);
    if (err)
        *err = why;
    return false;
}

static int connect_to_server(void *context, struct prb_error *err)
{
    const struct lend *lend = context;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    PRB_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, lend->path, strlen(lend->path) + 1);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        prb_fail_sys(err, errno, "the debug server of the rank");
        return -1;
    }
    return PRB_STEAL_FD(fd);
}

/* ---- the stream ---- */

static void *run(void *context)
{
    struct lend *lend = context;
    struct prb_lends *lends = lend->lends;
    char why[200];
    struct prb_error err = {0};
    bool good = prb_stream_run(&lend->stream, why, &err);
    prb_mailbox_free(lend->stream.box);
    explicit_bzero(lend->secret, sizeof lend->secret);
    end_server(lend);
    prb_log_file_add(lends->log, "eval stream %s: debugging of rank %d has ended%s%s", lend->id,
                     lend->rank, good ? "" : ": ", good ? "" : err.text);
    pthread_mutex_lock(&lends->lock);
    lend->running = false;
    pthread_mutex_unlock(&lends->lock);
    return NULL;
}

/* With the lock: those that have ended make room. */
static void reap(struct prb_lends *lends)
{
    for (size_t i = 0; i < PRB_LENDS_MAX; i++)
        if (lends->all[i].used && !lends->all[i].running) {
            pthread_join(lends->all[i].thread, NULL);
            lends->all[i].used = false;
        }
}

static struct lend *take_place(struct prb_lends *lends, struct prb_error *err)
{
    struct lend *found = NULL;
    pthread_mutex_lock(&lends->lock);
    reap(lends);
    for (size_t i = 0; i < PRB_LENDS_MAX && !found; i++)
        if (!lends->all[i].used)
            found = &lends->all[i];
    if (found)
        *found = (struct lend){.lends = lends, .used = true, .running = true, .served_fd = -1};
    pthread_mutex_unlock(&lends->lock);
    if (!found)
        prb_fail(err, PRB_BUSY, "%d ranks of this host are debugged already", PRB_LENDS_MAX);
    return found;
}

static void free_place(struct lend *lend)
{
    pthread_mutex_lock(&lend->lends->lock);
    lend->used = lend->running = false;
    pthread_mutex_unlock(&lend->lends->lock);
}

/* *out: "" where the asker, of an older release, signs each message. */
static bool exchange(struct lend *lend, const struct prb_lend_wanted *wanted,
                     char out[2 * PRB_SECRET + 1], struct prb_error *err)
{
    const char *hex = json_string_value(json_object_get(wanted->args, "exchange"));
    unsigned char theirs[PRB_SECRET];
    struct prb_exchange own;
    *out = '\0';
    if (!hex)
        return true;
    if (!prb_unhex(hex, theirs, sizeof theirs))
        return prb_fail(err, PRB_USAGE, "the key of the stream cannot be parsed");
    bool good = prb_exchange_make(&own, err) &&
                prb_exchange_secret(&own, theirs, theirs, lend->secret, err);
    if (good)
        prb_hex(own.public, sizeof own.public, out);
    explicit_bzero(&own, sizeof own);
    return good;
}

static bool hear_stream(struct lend *lend, const struct prb_lend_wanted *wanted, bool has_secret,
                        struct prb_error *err)
{
    unsigned char random[PRB_STREAM_ID / 2];
    char job[PRB_BUS_TOKEN];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return prb_fail(err, PRB_IO, "no random number for a stream");
    prb_hex(random, sizeof random, lend->id);
    prb_bus_token(wanted->job, job);
    snprintf(lend->subject, sizeof lend->subject, PRB_BUS_STREAM_SUBJECT, job, lend->id);
    lend->rank = wanted->rank;
    lend->stream = (struct prb_stream){
        .way = {.bus = wanted->bus,
                .id = lend->id,
                .from = lend->subject,
                .secret = has_secret ? lend->secret : NULL,
                .trusted = wanted->trusted},
        .listening = -1,
        .in = -1,
        .out = -1,
        .stop_fd = lend->lends->stop_fd,
        .served_fd = lend->served_fd,
        .open = connect_to_server,
        .context = lend,
    };
    lend->stream.box = prb_mailbox_new(wanted->bus, lend->subject, lend->id, err);
    return lend->stream.box != NULL;
}

bool prb_lend_begin(struct prb_lends *lends, const struct prb_lend_wanted *wanted,
                    struct prb_lend_begun *out, struct prb_error *err)
{
    struct lend *lend = take_place(lends, err);
    if (!lend)
        return false;
    bool served = exchange(lend, wanted, out->exchange, err) && start_server(lend, wanted, err);
    bool heard = served && hear_stream(lend, wanted, out->exchange[0], err);
    if (heard) {
        memcpy(out->id, lend->id, PRB_STREAM_ID);
        if (pthread_create(&lend->thread, NULL, run, lend) == 0)
            return true;
        prb_fail(err, PRB_NOMEM, "no thread can be made");
        prb_mailbox_free(lend->stream.box);
    }
    if (served)
        end_server(lend);
    free_place(lend);
    return false;
}

/* ---- life ---- */

struct prb_lends *prb_lends_new(struct prb_log_file *log, const char *program,
                                struct prb_error *err)
{
    struct prb_lends *lends = calloc(1, sizeof *lends);
    if (!lends)
        return PRB_NULL(prb_nomem(err));
    lends->log = log;
    lends->program = program;
    lends->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&lends->lock, NULL);
    if (lends->stop_fd >= 0)
        return lends;
    prb_fail_sys(err, errno, "an eventfd");
    prb_lends_free(lends);
    return NULL;
}

void prb_lends_end(struct prb_lends *lends)
{
    uint64_t count = 1;
    prb_write_all(lends->stop_fd, &count, sizeof count);
    for (size_t i = 0; i < PRB_LENDS_MAX; i++) {
        pthread_mutex_lock(&lends->lock);
        bool used = lends->all[i].used;
        pthread_mutex_unlock(&lends->lock);
        if (!used)
            continue;
        pthread_join(lends->all[i].thread, NULL);
        pthread_mutex_lock(&lends->lock);
        lends->all[i].used = false;
        pthread_mutex_unlock(&lends->lock);
    }
    if (read(lends->stop_fd, &count, sizeof count) < 0)
        errno = 0; /* nobody else reads it */
}

void prb_lends_free(struct prb_lends *lends)
{
    if (!lends)
        return;
    if (lends->stop_fd >= 0) {
        prb_lends_end(lends);
        close(lends->stop_fd);
    }
    pthread_mutex_destroy(&lends->lock);
    free(lends);
}
