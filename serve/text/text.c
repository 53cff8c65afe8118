/*
 * A session of plain text: blocking, in a thread of its own.  Nothing is sent before the first line:
 * a browser opens sockets ahead of time and would take a greeting for an answer.  Commands run as
 * the command line (command.h); their output is escaped as for a terminal.
 */
#include "serve/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "format/format.h"
#include "format/log_file.h"
#include "probing.h"
#include "serve/doors/access.h"
#include "serve/doors/life.h"
#include "serve/text/command.h"
#include "serve/text/looks.h"
#include "serve/text/text_python.h"
#include "serve/work/stacks_text.h"

#define LINE_BYTES 65536
#define IDLE_MS (3600 * 1000)
#define COMMAND_SECONDS 310
#define WRONG_MAX 3
#define WORDS_MAX 20

/* All sessions: the server ends after the last of them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
PRB_CLOCK_COND(changed)
static unsigned sessions, known; /* known: those that have shown who they are */

struct session {
    struct prb_serve *serve;
    struct prb_guest *guest;
    int fd;          /* the guest's */
    unsigned grants; /* 0: it has not shown who it is */
    unsigned wrong;
    bool counted;          /* among those of KNOWN_MAX */
    char target[32];       /* pid N */
    struct prb_buf in;     /* bytes of lines that are not taken yet */
    struct prb_buf out[2]; /* the end of a line that is not whole yet: of output and of errors */
    struct prb_text_python python;
    double until;
    bool ended; /* nobody reads any more */
};

/* ---- in and out ---- */

/* Until the socket is ready; false: the time is over, or the server ends. */
static bool wait_for(const struct session *session, short events, double ms)
{
    struct pollfd polled[] = {{session->fd, events, 0},
                              {session->serve->options->stop_fd, POLLIN, 0}};
    return poll(polled, 2, ms > 0 ? (int)ms : 0) > 0 && !polled[1].revents;
}

static bool say(struct session *session, const char *text, size_t count)
{
    while (count && !session->ended) {
        ssize_t n = send(session->fd, text, count, MSG_NOSIGNAL);
        if (n > 0) {
            text += n;
            count -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            session->ended = !wait_for(session, POLLOUT, (session->until - prb_clock_s()) * 1000);
        } else if (n >= 0 || errno != EINTR) {
            session->ended = true;
        }
    }
    return !session->ended;
}

static bool says(struct session *session, const char *text)
{
    return say(session, text, strlen(text)) && say(session, "\n", 1);
}

/* One line of output, harmless for a terminal; tabs stay. */
static bool say_line(struct session *session, const char *text, size_t count)
{
    PRB_AUTO(prb_buf) struct prb_buf line = {0};
    for (size_t at = 0; at <= count;) {
        const char *tab = memchr(text + at, '\t', count - at);
        size_t piece = tab ? (size_t)(tab - text) - at : count - at;
        PRB_AUTO_FREE char *safe = prb_text_safe(text + at, piece, 0);
        prb_buf_adds(&line, safe ? safe : "");
        if (tab)
            prb_buf_addc(&line, '\t');
        at += piece + 1;
    }
    prb_buf_addc(&line, '\n');
    return prb_buf_ok(&line) && say(session, line.data, line.len);
}

static bool take_output(void *context, bool error, const char *bytes, size_t count)
{
    struct session *session = context;
    struct prb_buf *held = session->out + error;
    prb_buf_add(held, bytes, count);
    if (!prb_buf_ok(held))
        return false;
    size_t begin = 0;
    for (char *end; (end = memchr(held->data + begin, '\n', held->len - begin));
         begin = (size_t)(end - held->data) + 1)
        if (!say_line(session, held->data + begin, (size_t)(end - held->data) - begin))
            return false;
    if (held->len - begin > LINE_BYTES) {
        if (!say_line(session, held->data + begin, held->len - begin))
            return false;
        begin = held->len;
    }
    memmove(held->data, held->data + begin, held->len - begin);
    held->len -= begin;
    return true;
}

/* Take what has come; false: the other end has closed it. */
static bool receive(struct session *session)
{
    char bytes[4096];
    ssize_t n = recv(session->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n > 0)
        prb_buf_add(&session->in, bytes, (size_t)n);
    return n > 0 && prb_buf_ok(&session->in);
}

static bool goes_on(void *context)
{
    struct session *session = context;
    struct pollfd polled[] = {{session->fd, 0, 0}, {session->serve->options->stop_fd, POLLIN, 0}};
    bool lost = poll(polled, 2, 0) > 0 && (polled[0].revents || polled[1].revents);
    char next = 0;
    bool interrupted = recv(session->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && next == 3;
    if (interrupted)
        (void)!recv(session->fd, &next, 1, MSG_DONTWAIT);
    return !lost && !interrupted && prb_clock_s() < session->until;
}

/* The next line without its end, the caller frees it; NULL: there is none. */
static char *next_line(struct session *session)
{
    for (bool more = true;;) {
        char *end = session->in.len ? memchr(session->in.data, '\n', session->in.len) : NULL;
        size_t len = end ? (size_t)(end - session->in.data) : session->in.len;
        if (end || (!more && len)) {
            size_t taken = len + (end != NULL);
            while (len && session->in.data[len - 1] == '\r')
                len--;
            char *line =
                memchr(session->in.data, '\0', len) ? NULL : strndup(session->in.data, len);
            memmove(session->in.data, session->in.data + taken, session->in.len - taken);
            session->in.len -= taken;
            return line;
        }
        if (!more || len > LINE_BYTES || !wait_for(session, POLLIN, IDLE_MS))
            return NULL;
        more = receive(session);
    }
}

/* ---- commands ---- */

#define LISTED 30

/* Those that `pid N` may choose. */
static void list_targets(struct session *session, const struct prb_process_list *list, size_t count)
{
    char line[120];
    size_t shown = 0;
    says(session,
         count ? "which process?  `pid N` chooses one of these:" : "no Python process is running");
    for (size_t i = 0; list && i < list->count && shown < LISTED; i++) {
        const struct prb_process *one = list->items + i;
        if (!prb_serve_has(session->serve, one->pid))
            continue;
        snprintf(line, sizeof line, "%d  %.100s", (int)one->pid,
                 one->command && *one->command ? one->command : one->name);
        say_line(session, line, strlen(line));
        shown++;
    }
    if (count > LISTED)
        says(session, "and others: `list` shows all");
}

/* The one Python process that this server has, when there is one alone. */
static bool choose_target(struct session *session)
{
    struct prb_error err;
    struct prb_process_list *list = *session->target ? NULL : prb_process_list(&err);
    pid_t pid = 0;
    size_t count = 0;
    for (size_t i = 0; list && i < list->count; i++)
        if (prb_serve_has(session->serve, list->items[i].pid) && count++ == 0)
            pid = list->items[i].pid;
    if (count == 1)
        snprintf(session->target, sizeof session->target, "%d", (int)pid);
    if (!*session->target)
        list_targets(session, list, count);
    prb_process_list_free(list);
    return *session->target;
}

/* The words of a line, split; of a query the statement as it is. */
static bool split(const struct prb_look *look, char *rest, const char **given, size_t *count)
{
    if (look->argument == PRB_LOOK_SQL) {
        given[(*count)++] = "--";
        given[(*count)++] = rest;
        return *rest;
    }
    for (char *save = NULL, *word = strtok_r(rest, " \t", &save); word;
         word = strtok_r(NULL, " \t", &save)) {
        if (*count == WORDS_MAX)
            return false;
        given[(*count)++] = word;
    }
    return true;
}

/* The end of a line that is not whole yet. */
static void flush(struct session *session)
{
    for (size_t i = 0; i < 2; i++) {
        if (session->out[i].len)
            say_line(session, session->out[i].data, session->out[i].len);
        session->out[i].len = 0;
    }
}

/* `bt` by a target that is open already.  False: the command is to be run. */
static bool run_stacks(struct session *session, const char *const *given, size_t count)
{
    const struct prb_serve_wanted wanted = {.serve = session->serve,
                                            .targets = session->serve->targets,
                                            .name = session->target,
                                            .until = prb_clock_s() + prb_route_stacks.seconds};
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    bool native = false, locals = false, group = false;
    for (size_t i = 0; i < count; i++) {
        bool *found = !strcmp(given[i], "--native")                              ? &native
                      : !strcmp(given[i], "--locals") || !strcmp(given[i], "-l") ? &locals
                      : !strcmp(given[i], "--group") || !strcmp(given[i], "-g")  ? &group
                                                                                 : NULL;
        if (!found)
            return false;
        *found = true;
    }
    PRB_AUTO(prb_serve_target)
    struct prb_serve_target *held = prb_serve_target_hold_wanted(&wanted, NULL);
    if (!held || !prb_stacks_text(held, native, locals, group, &text))
        return false;
    session->until = prb_clock_s() + COMMAND_SECONDS;
    take_output(session, false, text.data, text.len);
    return true;
}

/* *said is false when something of it is no word of the command. */
static bool run(struct session *session, const struct prb_look *look, char *rest, bool *said)
{
    const char *words[PRB_LOOK_WORDS + 1] = {"--color", "never"}, *given[WORDS_MAX];
    struct prb_error err;
    size_t count = 2, given_count = 0;
    int status;
    PRB_AUTO_FREE char *copy = strdup(rest);
    char target[sizeof session->target + 8] = "", room[PRB_LOOK_ROOM];
    *said = copy && split(look, copy, given, &given_count);
    if (*said && look->target && *session->target) {
        words[count++] = "--pid";
        words[count++] = session->target;
    }
    size_t before = count;
    *said = *said && prb_look_take(look, given, given_count, words, &count);
    if (!*said)
        return true;
    if (look->target && look->argument != PRB_LOOK_SQL && !*session->target) {
        if (!choose_target(session))
            return true;
        snprintf(target, sizeof target, "--pid=%s", session->target);
        memmove(words + before + 1, words + before, (count - before) * sizeof *words);
        words[before] = target;
    }
    if (strcmp(look->name, "backtrace") == 0 && run_stacks(session, given, given_count))
        return !session->ended;
    if (!prb_look_bind(session->serve, look, (pid_t)strtol(session->target, NULL, 10), words,
                       &count, room, &err))
        return says(session, err.text);
    const struct prb_command_run asked = {session->serve->program, words, goes_on, take_output,
                                          session};
    session->until = prb_clock_s() + COMMAND_SECONDS;
    if (!prb_command_run(&asked, &status, &err))
        return says(session, err.text);
    flush(session);
    return status >= 0 || says(session, "(ended)");
}

static bool help(struct session *session)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (const struct prb_look *look = prb_looks; look->word; look++)
        if (look->help)
            prb_buf_addf(&text, "%-10s %s\n", look->word, look->help);
    prb_buf_addf(&text, "%-10s %s\n%-10s %s\n", "pid", "which process: pid N", "quit", "the end");
    if (session->grants & PRB_MAY_EVAL)
        prb_buf_adds(&text, "Any other line is Python, and runs in that process.\n");
    return prb_buf_ok(&text) && say(session, text.data, text.len);
}

/* ---- Python ---- */

static bool take_printed(void *context, int stream, const char *bytes, size_t count)
{
    return take_output(context, stream == 2, bytes, count);
}

static bool is_interrupted(void *context) { return !goes_on(context); }

/* Whether the client waits: nothing more has come, and its input has not ended. */
static bool is_waiting(const struct session *session)
{
    struct pollfd polled = {session->fd, POLLIN | POLLRDHUP, 0};
    return !session->in.len && poll(&polled, 1, 0) == 0;
}

static bool evaluate(struct session *session, const char *text)
{
    struct prb_error err = {0};
    if (!choose_target(session))
        return true;
    const struct prb_text_line line = {(pid_t)strtol(session->target, NULL, 10), text, take_printed,
                                       is_interrupted, session};
    session->until = prb_clock_s() + COMMAND_SECONDS;
    bool begun = session->python.block.len > 0;
    bool ok = prb_text_python_line(&session->python, &line, &err);
    flush(session);
    if (!begun || !ok)
        prb_log_file_add(session->serve->log, "text eval by %s, process %s: %.200s: %s",
                         session->guest->peer.name, session->target, text, ok ? "done" : err.text);
    if (!ok && (!says(session, err.text) || (*err.remedy && !says(session, err.remedy))))
        return false;
    const char *prompt = session->python.block.len ? "... " : ">>> ";
    return !is_waiting(session) || say(session, prompt, 4);
}

static bool choose_pid(struct session *session, const char *rest)
{
    struct prb_error err = {0};
    if (strspn(rest, "0123456789") != strlen(rest) || !*rest || strlen(rest) > 10)
        return says(session, "pid needs a number");
    if (!prb_serve_check_has(session->serve, (pid_t)strtol(rest, NULL, 10), &err))
        return says(session, err.text);
    snprintf(session->target, sizeof session->target, "%s", rest);
    return true;
}

/* A thread each: they are few. */
static bool let_in(struct session *session)
{
    if (session->counted)
        return true;
    pthread_mutex_lock(&lock);
    bool room = known < PRB_SERVE_TEXTS_MAX;
    known += room;
    pthread_mutex_unlock(&lock);
    session->counted = room;
    return (room && prb_guest_let_in(session->guest)) ||
           (says(session, "too many sessions of plain text"), false);
}

static bool show_token(struct session *session, const char *token)
{
    char name[PRB_TOKEN_NAME];
    int status;
    struct prb_error err = {0};
    session->grants = prb_access_token(session->serve, session->guest, token, name, &status, &err);
    if (session->grants)
        return let_in(session);
    prb_log_file_add(session->serve->log, "refused %s: %s", session->guest->peer.name, err.text);
    return says(session, err.text) && ++session->wrong < WRONG_MAX;
}

static bool not_understood(struct session *session, const struct prb_look *look)
{
    if (look)
        return says(session, "not understood; `help` says what may stand behind a command");
    return says(session, "no command; `help` lists them.  Python needs the grant eval: "
                         "`probing serve --url --allow eval` prints a token that has it");
}

/* A command, or Python when it is granted. */
static bool take_line(struct session *session, char *line, char *word, size_t len, char *rest)
{
    bool may = session->grants & PRB_MAY_EVAL, said = false;
    const struct prb_look *look =
        session->python.block.len || line != word ? NULL : prb_look_named(word, len);
    if (look && !run(session, look, rest, &said))
        return false;
    if (said)
        return true;
    return may ? evaluate(session, line) : not_understood(session, look);
}

/* False: the session ends. */
static bool answer(struct session *session, char *line)
{
    for (const char *at = line; *at; at++)
        if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
            return says(session, "a line holds no control characters");
    bool block = session->python.block.len > 0;
    char *word = line + strspn(line, " \t");
    size_t len = strcspn(word, " \t");
    char *rest = word + len + strspn(word + len, " \t");
    if (!len && !block)
        return true;
    if (len == 5 && !strncmp(word, "token", 5) && !block)
        return show_token(session, rest);
    if (!session->grants)
        return says(session, "first a line `token T`; `probing serve --url` has it") && false;
    if (block)
        return take_line(session, line, word, len, rest);
    if (len == 4 && (!strncmp(word, "quit", 4) || !strncmp(word, "exit", 4)))
        return false;
    if (len == 4 && !strncmp(word, "help", 4))
        return help(session);
    if (len == 3 && !strncmp(word, "pid", 3))
        return choose_pid(session, rest);
    return take_line(session, session->grants & PRB_MAY_EVAL ? line : word, word, len, rest);
}

static void enter(void)
{
    pthread_mutex_lock(&lock);
    sessions++;
    pthread_mutex_unlock(&lock);
}

static void leave(bool counted)
{
    pthread_mutex_lock(&lock);
    sessions--;
    known -= counted;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* A request line, RFC 9112 section 3.  A browser sends any word as the method where the page's name
 * means this machine (DNS rebinding), and a proxy passes it on; both speak for somebody else. */
static bool is_http(const struct session *session, const char *line)
{
    const char *version = strrchr(line, ' ');
    if (!version || strncmp(version, " HTTP/", 6) != 0)
        return false;
    prb_log_file_add(session->serve->log, "refused %s: HTTP of an unknown method: %.80s",
                     session->guest->peer.name, line);
    return true;
}

static void *serve(void *context)
{
    struct session *session = context;
    bool first = true;
    session->until = prb_clock_s() + PRB_STRANGER_SECONDS;
    session->ended = session->grants && !let_in(session);
    for (char *line; !session->ended && (line = next_line(session));) {
        session->until = prb_clock_s() + 30; /* for a reader to take an answer of ours */
        bool more = !(first && is_http(session, line)) && answer(session, line);
        first = false;
        free(line);
        if (!more)
            break;
    }
    shutdown(session->fd, SHUT_WR);
    prb_guest_free(session->guest);
    prb_buf_deinit(&session->in);
    prb_text_python_deinit(&session->python);
    prb_buf_deinit(session->out);
    prb_buf_deinit(session->out + 1);
    bool counted = session->counted;
    free(session);
    leave(counted);
    return NULL;
}

void prb_text_begin(struct prb_serve *server, struct prb_guest *guest)
{
    pthread_t thread;
    struct session *session = calloc(1, sizeof *session);
    enter();
    if (session) {
        *session = (struct session){.serve = server,
                                    .guest = guest,
                                    .fd = guest->fd,
                                    .grants = guest->peer.local     ? PRB_MAY_ALL
                                              : guest->peer.is_user ? server->grants
                                                                    : 0};
        if (pthread_create(&thread, NULL, serve, session) == 0) {
            pthread_detach(thread);
            return;
        }
    }
    free(session);
    prb_guest_free(guest);
    leave(false);
}

void prb_text_end(void)
{
    pthread_mutex_lock(&lock);
    while (sessions)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
