/* Starting a program for the debugger: see program.h. */
#include "dap/attach/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "base/utf8.h"
#include "dap/attach/program_command.h"
#include "dap/attach/tree.h"

#define START_MS 60000 /* for the interpreter to start; a terminal runs the user's profile first */
#define END_MS 3000    /* for a program that got SIGTERM */
#define DRAIN_S 10     /* for the rest of its output, which takes a CPU alone */
#define READ_AT_ONCE 8192
#define ROUND_MS 200

struct prb_dap_program {
    struct prb_dap_session *session;
    char folder[64];     /* of the socket; "" once it is removed */
    int listening, gate; /* gate: a byte lets the program run */
    pid_t pid;
    int pidfd;
    bool child;                   /* our child, not the terminal's */
    int output[2];                /* stdout, stderr; -1: not ours */
    struct prb_dap_tree children; /* that are to end with it */
    pthread_t reader;
    bool reading;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool drained, stopping; /* drained: all that it wrote before its end was read */
};

/* ---- the start ---- */

static bool make_gate(struct prb_dap_program *program, struct prb_error *err)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    snprintf(program->folder, sizeof program->folder, "/tmp/probing-launch-XXXXXX");
    if (!mkdtemp(program->folder)) {
        program->folder[0] = '\0';
        return prb_fail_sys(err, errno, "making a folder in /tmp");
    }
    snprintf(place.sun_path, sizeof place.sun_path, "%s/gate", program->folder);
    program->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (program->listening < 0 ||
        bind(program->listening, (struct sockaddr *)&place, sizeof place) != 0 ||
        listen(program->listening, 1) != 0)
        return prb_fail_sys(err, errno, "making %s", place.sun_path);
    return true;
}

static void remove_gate(struct prb_dap_program *program)
{
    char path[sizeof program->folder + 8];
    if (program->listening >= 0)
        close(PRB_STEAL_FD(program->listening));
    if (!program->folder[0])
        return;
    snprintf(path, sizeof path, "%s/gate", program->folder);
    unlink(path);
    rmdir(program->folder);
    program->folder[0] = '\0';
}

/* What the child is to be.  posix_spawn(3) has a folder since glibc 2.29 only. */
struct start {
    char *const *words, *const *environment;
    const char *cwd;         /* NULL: ours */
    int out, errors, failed; /* pipes' writing ends; failed: gets an errno */
};

/* In the child.  Other threads were at work when it was made: calls alone that take no lock. */
static _Noreturn void become(const struct start *start)
{
    sigset_t none;
    sigemptyset(&none);
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(start->out, STDOUT_FILENO) >= 0 &&
        dup2(start->errors, STDERR_FILENO) >= 0 && setpgid(0, 0) == 0 &&
        (!start->cwd || chdir(start->cwd) == 0)) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvpe(start->words[0], start->words, start->environment);
    }
    int why = errno;
    ssize_t told = write(start->failed, &why, sizeof why);
    _exit(told == sizeof why ? 127 : 126);
}

/* 0, or an errno of the child, which has ended. */
static int start_child(const struct start *start, int failed_end, pid_t *pid_out)
{
    int why = 0;
    *pid_out = fork();
    if (*pid_out == 0)
        become(start);
    close(start->failed);
    if (*pid_out < 0)
        return errno;
    while (read(failed_end, &why, sizeof why) < 0 && errno == EINTR)
        continue;
    if (why)
        waitpid(*pid_out, NULL, 0);
    return why;
}

static bool spawn(struct prb_dap_program *program, const json_t *arguments,
                  struct prb_dap_words *command, struct prb_error *err)
{
    PRB_AUTO(prb_dap_words) struct prb_dap_words environment = {0};
    int out[2], errors[2], failed[2];
    if (!prb_dap_program_environment(arguments, &environment, err))
        return false;
    if (pipe2(out, O_CLOEXEC) != 0)
        return prb_fail_sys(err, errno, "making a pipe");
    PRB_AUTO_FD int out_end = out[1];
    program->output[0] = out[0];
    if (pipe2(errors, O_CLOEXEC) != 0)
        return prb_fail_sys(err, errno, "making a pipe");
    PRB_AUTO_FD int errors_end = errors[1];
    program->output[1] = errors[0];
    if (pipe2(failed, O_CLOEXEC) != 0)
        return prb_fail_sys(err, errno, "making a pipe");
    PRB_AUTO_FD int failed_end = failed[0];
    const struct start start = {.words = command->items,
                                .environment = environment.items,
                                .cwd = json_string_value(prb_dap_get(arguments, "cwd")),
                                .out = out[1],
                                .errors = errors[1],
                                .failed = failed[1]};
    int why = start_child(&start, failed_end, &program->pid);
    program->child = !why;
    return !why || prb_fail_sys(err, why, "starting %s", command->items[0]);
}

/* A word as a shell reads it literally. */
static json_t *quoted(const char *word)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_buf_adds(&text, "'");
    for (const char *p = word; *p; p++)
        prb_buf_addf(&text, *p == '\'' ? "'\\%c'" : "%c", *p);
    prb_buf_adds(&text, "'");
    return json_string(text.data ? text.data : "");
}

static bool run_in_terminal(struct prb_dap_program *program, const json_t *arguments,
                            const char *console, const struct prb_dap_words *command,
                            struct prb_error *err)
{
    json_t *words = json_array(), *env = prb_dap_get(arguments, "env");
    const char *cwd = json_string_value(prb_dap_get(arguments, "cwd"));
    for (size_t i = 0; i < command->count; i++)
        json_array_append_new(words, command->typed && i + 1 < command->count
                                         ? quoted(command->items[i])
                                         : json_string(command->items[i]));
    json_t *wanted = json_pack("{s:s, s:s, s:s, s:o}", "kind",
                               strcmp(console, "externalTerminal") == 0 ? "external" : "integrated",
                               "title", "Probing", "cwd", cwd ? cwd : "", "args", words);
    if (command->typed)
        json_object_set_new(wanted, "argsCanBeInterpretedByShell", json_true());
    if (json_is_object(env))
        json_object_set(wanted, "env", env);
    return prb_dap_request_client(program->session, "runInTerminal", wanted, START_MS / 1000, NULL,
                                  err);
}

/* The interpreter connects when it has started; the peer is its process. */
static bool wait_for_interpreter(struct prb_dap_program *program, struct prb_error *err)
{
    struct pollfd fds[] = {{.fd = program->listening, .events = POLLIN},
                           {.fd = program->pidfd, .events = POLLIN}};
    struct ucred who;
    socklen_t size = sizeof who;
    double until = prb_clock_s() + START_MS / 1000.0;
    while (poll(fds, 2, ROUND_MS) <= 0) {
        if (prb_dap_is_cancelled(program->session))
            return prb_fail(err, PRB_TIMEOUT, "cancelled");
        if (prb_clock_s() >= until)
            return prb_fail(err, PRB_TIMEOUT, "the interpreter did not start within %d s",
                            START_MS / 1000);
    }
    if (!fds[0].revents)
        return prb_fail(err, PRB_GONE, "the interpreter ended before the program began");
    program->gate = accept4(program->listening, NULL, NULL, SOCK_CLOEXEC);
    if (program->gate < 0 || getsockopt(program->gate, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
        who.uid != geteuid() || !who.pid)
        return prb_fail(err, PRB_PERMISSION,
                        "another process connected in place of the interpreter");
    program->pid = who.pid;
    return true;
}

/* ---- its output ---- */

static void send_output(struct prb_dap_session *session, int which, struct prb_buf *text, bool all)
{
    PRB_AUTO(prb_buf) struct prb_buf clean = {0};
    size_t at = 0;
    while (at < text->len) {
        size_t n = prb_utf8_length(text->data + at, text->len - at);
        if (!n && !all && text->len - at < 4)
            break; /* the rest of a character may follow */
        if (n)
            prb_buf_add(&clean, text->data + at, n);
        else
            prb_buf_adds(&clean, PRB_UTF8_REPLACEMENT);
        at += n ? n : 1;
    }
    if (clean.len)
        prb_dap_send(session, "output",
                     json_pack("{s:s, s:s#}", "category", which ? "stderr" : "stdout", "output",
                               clean.data, (int)clean.len));
    memmove(text->data, text->data + at, text->len - at);
    text->len -= at;
}

static bool is_stopping(struct prb_dap_program *program)
{
    pthread_mutex_lock(&program->lock);
    bool stopping = program->stopping;
    pthread_mutex_unlock(&program->lock);
    return stopping;
}

static void set_drained(struct prb_dap_program *program)
{
    pthread_mutex_lock(&program->lock);
    program->drained = true;
    pthread_cond_broadcast(&program->changed);
    pthread_mutex_unlock(&program->lock);
}

/* Of what the program wrote before its end, how much is still to be read.  Another process may have
 * its output open then, and may write on. */
static void count_left(const struct pollfd *fds, int left[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i].fd < 0 || ioctl(fds[i].fd, FIONREAD, &left[i]) != 0)
            left[i] = 0;
}

static void *read_output(void *context)
{
    struct prb_dap_program *program = context;
    PRB_AUTO(prb_buf) struct prb_buf out = {0}, errors = {0};
    struct prb_buf *texts[] = {&out, &errors};
    struct pollfd fds[] = {{.fd = program->output[0], .events = POLLIN},
                           {.fd = program->output[1], .events = POLLIN},
                           {.fd = program->pidfd, .events = POLLIN}};
    bool ended = false;
    int left[2];
    while ((fds[0].fd >= 0 || fds[1].fd >= 0) && !is_stopping(program)) {
        if (poll(fds, 3, ROUND_MS) <= 0)
            continue;
        if (fds[2].revents) {
            ended = true;
            fds[2].fd = -1;
            count_left(fds, left);
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t n = prb_buf_read_some(texts[i], fds[i].fd, READ_AT_ONCE);
            if (n <= 0)
                fds[i].fd = -1;
            if (texts[i]->len)
                send_output(program->session, i, texts[i], n <= 0);
            if (ended)
                left[i] -= n > 0 ? (int)n : left[i];
        }
        if (ended && left[0] <= 0 && left[1] <= 0)
            set_drained(program);
    }
    set_drained(program);
    return NULL;
}

/* ---- the whole ---- */

static bool is_console(const char *name)
{
    static const char *const names[] = {"internalConsole", "integratedTerminal",
                                        "externalTerminal"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool start(struct prb_dap_program *program, const json_t *arguments, struct prb_error *err)
{
    PRB_AUTO(prb_dap_words) struct prb_dap_words command = {0};
    const char *console = "internalConsole";
    char gate[sizeof program->folder + 8];
    if (!prb_dap_get_string(arguments, "console", &console, err))
        return false;
    if (!is_console(console))
        return prb_fail(
            err, PRB_USAGE,
            "console must be internalConsole, integratedTerminal or externalTerminal, not "
            "\"%s\"",
            console);
    if (!make_gate(program, err))
        return false;
    snprintf(gate, sizeof gate, "%s/gate", program->folder);
    bool terminal =
        strcmp(console, "internalConsole") != 0 && program->session->client.run_in_terminal;
    bool shell = terminal && program->session->client.shell_args;
    if (!prb_dap_program_command(gate, arguments, shell, &command, err))
        return false;
    if (!(terminal ? run_in_terminal(program, arguments, console, &command, err)
                   : spawn(program, arguments, &command, err)))
        return false;
    if (program->child) {
        program->pidfd = (int)syscall(SYS_pidfd_open, program->pid, 0);
        program->reading = pthread_create(&program->reader, NULL, read_output, program) == 0;
    }
    return wait_for_interpreter(program, err);
}

struct prb_dap_program *prb_dap_program_start(struct prb_dap_session *session,
                                              const json_t *arguments, struct prb_error *err)
{
    struct prb_dap_program *program = calloc(1, sizeof *program);
    if (!program)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    *program = (struct prb_dap_program){
        .session = session, .listening = -1, .gate = -1, .pidfd = -1, .output = {-1, -1}};
    pthread_mutex_init(&program->lock, NULL);
    prb_clock_cond_init(&program->changed);
    bool good = start(program, arguments, err);
    remove_gate(program);
    if (good)
        return program;
    prb_dap_program_close(program, false);
    return NULL;
}

pid_t prb_dap_program_pid(const struct prb_dap_program *program) { return program->pid; }
bool prb_dap_program_is_read(const struct prb_dap_program *program) { return program->reading; }

void prb_dap_program_let_go(struct prb_dap_program *program)
{
    if (program->gate < 0)
        return;
    ssize_t sent = send(program->gate, "g", 1, MSG_NOSIGNAL);
    (void)sent; /* failed: it has ended, which is reported elsewhere */
    close(PRB_STEAL_FD(program->gate));
}

bool prb_dap_program_status(struct prb_dap_program *program, int *status_out)
{
    struct timespec until = prb_clock_timespec(prb_clock_s() + DRAIN_S);
    pthread_mutex_lock(&program->lock);
    while (program->reading && !program->drained)
        if (pthread_cond_timedwait(&program->changed, &program->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&program->lock);
    siginfo_t info = {0};
    if (!program->child ||
        waitid(P_PID, (id_t)program->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
        return false;
    *status_out = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
    return true;
}

static bool ends_within(const struct prb_dap_program *program, int wait_ms)
{
    struct pollfd fd = {.fd = program->pidfd, .events = POLLIN};
    return program->pidfd >= 0 && poll(&fd, 1, wait_ms) == 1;
}

void prb_dap_program_end_children(struct prb_dap_program *program)
{
    prb_dap_tree_add(&program->children, program->pid);
    prb_dap_tree_signal(&program->children, SIGTERM);
}

static void end(struct prb_dap_program *program)
{
    if (!ends_within(program, 0)) {
        prb_dap_program_end_children(program);
        kill(program->pid, SIGTERM);
        if (!ends_within(program, END_MS))
            kill(program->pid, SIGKILL);
        ends_within(program, END_MS);
    }
}

void prb_dap_program_close(struct prb_dap_program *program, bool leave)
{
    if (!program)
        return;
    remove_gate(program);
    if (program->gate >= 0)
        close(program->gate); /* without a byte: it ends */
    if (program->child && !leave)
        end(program);
    if (!leave && !prb_dap_tree_has_ended(&program->children, END_MS))
        prb_dap_tree_signal(&program->children, SIGKILL);
    prb_dap_tree_deinit(&program->children);
    if (program->child)
        waitpid(program->pid, NULL, leave ? WNOHANG : 0);
    pthread_mutex_lock(&program->lock);
    program->stopping = true;
    pthread_mutex_unlock(&program->lock);
    if (program->reading)
        pthread_join(program->reader, NULL);
    for (int i = 0; i < 2; i++)
        if (program->output[i] >= 0)
            close(program->output[i]);
    if (program->pidfd >= 0)
        close(program->pidfd);
    pthread_cond_destroy(&program->changed);
    pthread_mutex_destroy(&program->lock);
    free(program);
}
