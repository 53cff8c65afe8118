/*
 * A session of plain text: blocking, in a thread of its own.  Nothing is sent before the first line:
 * a browser opens sockets ahead of time and would take a greeting for an answer.  Commands run as
 * the command line (command.h); their output is escaped as for a terminal.
 */
#include "serve/text.h"

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
#include "net/token.h"
#include "probing.h"
#include "serve/command.h"
#include "serve/log.h"
#include "serve/words.h"

#define LINE_BYTES 65536
#define IDLE_MS (3600 * 1000)
#define COMMAND_SECONDS 310
#define WRONG_MAX 3
#define WORDS_MAX 20

/* All sessions: the server ends after the last of them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned sessions;

struct session {
    struct prb_serve *serve;
    int fd;
    struct prb_peer peer;
    bool known; /* has shown who it is */
    unsigned wrong;
    char target[32];       /* pid N */
    struct prb_buf in;     /* bytes of lines that are not taken yet */
    struct prb_buf out[2]; /* the end of a line that is not whole yet: of output and of errors */
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

struct command {
    const char *word, *name; /* as the client and as the command line have it */
    const char *options;     /* what a client may say behind it, separated by spaces */
    enum { NO_TARGET, TARGET } target;
    enum { NONE, THREAD, SQL, KEY, SECONDS } argument;
    const char *help;
};

static const struct command commands[] = {
    {"list", "list", "", NO_TARGET, NONE, "the Python processes"},
    {"bt", "backtrace", "--native -n --locals -l --group", TARGET, THREAD,
     "stacks of all threads, or of one: bt [TID] [--native] [--locals]"},
    {"backtrace", "backtrace", "--native -n --locals -l --group", TARGET, THREAD, NULL},
    {"tasks", "tasks", "", TARGET, NONE, "asyncio tasks and what they wait for"},
    {"query", "query", "", TARGET, SQL, "rows: query SELECT …"},
    {"tables", "tables", "", TARGET, NONE, "the tables there are"},
    {"memory", "memory", "", TARGET, NONE, "how much memory it has"},
    {"config", "config", "", TARGET, KEY, "settings of its probe: config [KEY]"},
    {"profile", "profile", "--native -n --idle -i --gil -g", TARGET, SECONDS,
     "where the time goes, as collapsed stacks: profile SECONDS"},
    {"crashes", "crash", "", NO_TARGET, NONE, "crash dumps"},
};

static const struct command *command_of(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].word) == len && strncmp(commands[i].word, word, len) == 0)
            return commands + i;
    return NULL;
}

static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits &&
           (!text[digits] ||
            (text[digits] == '.' && !text[digits + 1 + strspn(text + digits + 1, "0123456789")]));
}

static bool is_key(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz_.0123456789")] == '\0';
}

/* Add what the client said behind a command; false: it may not be said. */
static bool take_words(const struct command *command, char *rest, const char **words, size_t *count)
{
    bool argument = false;
    if (command->argument == SQL) {
        words[(*count)++] = "--";
        words[(*count)++] = rest;
        return *rest;
    }
    for (char *save = NULL, *word = strtok_r(rest, " \t", &save); word;
         word = strtok_r(NULL, " \t", &save)) {
        if (*count + 4 >= WORDS_MAX)
            return false;
        if (*word == '-' && prb_has_word(command->options, word)) {
            words[(*count)++] = word;
            continue;
        }
        bool fits =
            command->argument == KEY ? is_key(word) : command->argument != NONE && is_number(word);
        if (argument || !fits)
            return false;
        argument = true;
        if (command->argument == SECONDS) {
            words[(*count)++] = "--duration";
            words[(*count)++] = word;
        } else {
            words[(*count)++] = word;
        }
    }
    return argument || command->argument != SECONDS;
}

/* The one Python process of the user, when there is one alone. */
static bool choose_target(struct session *session)
{
    struct prb_error err;
    struct prb_process_list *list = *session->target ? NULL : prb_process_list(&err);
    if (list && list->count == 1)
        snprintf(session->target, sizeof session->target, "%d", (int)list->items[0].pid);
    prb_process_list_free(list);
    return *session->target ||
           (says(session, "which process? `list` shows them, `pid N` chooses one"), false);
}

static bool run(struct session *session, const struct command *command, char *rest)
{
    const char *words[WORDS_MAX + 1] = {0};
    struct prb_error err;
    size_t count = 0;
    int status;
    words[count++] = "--color";
    words[count++] = "never";
    if (command->target == TARGET && command->argument != SQL && !choose_target(session))
        return true;
    if (*session->target && command->target == TARGET) {
        words[count++] = "--pid";
        words[count++] = session->target;
    }
    words[count++] = command->name;
    if (command->argument == SECONDS) {
        words[count++] = "--format";
        words[count++] = "collapsed";
        words[count++] = "--output";
        words[count++] = "-";
    }
    if (!take_words(command, rest, words, &count))
        return says(session, "not understood; `help` says what may stand behind a command");
    if (strcmp(command->name, "crash") == 0)
        words[count++] = "list";
    const struct prb_command_run asked = {session->serve->program, words, goes_on, take_output,
                                          session};
    session->until = prb_clock_s() + COMMAND_SECONDS;
    if (!prb_command_run(&asked, &status, &err))
        return says(session, err.text);
    for (size_t i = 0; i < 2; i++) {
        if (session->out[i].len)
            say_line(session, session->out[i].data, session->out[i].len);
        session->out[i].len = 0;
    }
    return status >= 0 || says(session, "(ended)");
}

static bool help(struct session *session)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].help)
            prb_buf_addf(&text, "%-10s %s\n", commands[i].word, commands[i].help);
    prb_buf_addf(&text, "%-10s %s\n%-10s %s\n", "pid", "which process: pid N", "quit", "the end");
    return prb_buf_ok(&text) && say(session, text.data, text.len);
}

static bool choose_pid(struct session *session, const char *rest)
{
    if (strspn(rest, "0123456789") != strlen(rest) || !*rest || strlen(rest) > 10)
        return says(session, "pid needs a number");
    snprintf(session->target, sizeof session->target, "%s", rest);
    return true;
}

static bool show_token(struct session *session, const char *token)
{
    session->known = *session->serve->token && prb_net_token_same(session->serve->token, token);
    if (session->known)
        return true;
    prb_serve_log(session->serve->log, "refused %s: a wrong token", session->peer.name);
    return ++session->wrong < WRONG_MAX && says(session, "the token is wrong");
}

/* False: the session ends. */
static bool answer(struct session *session, char *line)
{
    for (const char *at = line; *at; at++)
        if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
            return says(session, "a line holds no control characters");
    line += strspn(line, " \t");
    size_t len = strcspn(line, " \t");
    char *rest = line + len + strspn(line + len, " \t");
    if (!len)
        return true;
    if (len == 5 && !strncmp(line, "token", 5))
        return show_token(session, rest);
    if (!session->known)
        return says(session, "first a line `token T`; `probing serve --url` has it") && false;
    if ((len == 4 && !strncmp(line, "quit", 4)) || (len == 4 && !strncmp(line, "exit", 4)))
        return false;
    if (len == 4 && !strncmp(line, "help", 4))
        return help(session);
    if (len == 3 && !strncmp(line, "pid", 3))
        return choose_pid(session, rest);
    const struct command *command = command_of(line, len);
    if (!command)
        return says(session, "no command; `help` lists them.  Python is not evaluated here: "
                             "`probing PID eval CODE` does");
    return run(session, command, rest);
}

static bool enter(void)
{
    pthread_mutex_lock(&lock);
    bool room = sessions < PRB_SERVE_TEXTS_MAX;
    sessions += room;
    pthread_mutex_unlock(&lock);
    return room;
}

static void leave(void)
{
    pthread_mutex_lock(&lock);
    sessions--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *serve(void *context)
{
    struct session *session = context;
    for (char *line; !session->ended && (line = next_line(session));) {
        session->until = prb_clock_s() + 30; /* for a reader to take an answer of ours */
        bool more = answer(session, line);
        free(line);
        if (!more)
            break;
    }
    shutdown(session->fd, SHUT_WR);
    close(session->fd);
    prb_buf_deinit(&session->in);
    prb_buf_deinit(session->out);
    prb_buf_deinit(session->out + 1);
    free(session);
    leave();
    return NULL;
}

void prb_text_begin(struct prb_serve *server, int fd, const struct prb_peer *peer)
{
    pthread_t thread;
    bool room = enter();
    struct session *session = room ? calloc(1, sizeof *session) : NULL;
    if (session) {
        *session =
            (struct session){.serve = server, .fd = fd, .peer = *peer, .known = peer->is_user};
        if (pthread_create(&thread, NULL, serve, session) == 0) {
            pthread_detach(thread);
            return;
        }
    }
    free(session);
    close(fd);
    if (room)
        leave();
}

void prb_text_end(void)
{
    pthread_mutex_lock(&lock);
    while (sessions)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
