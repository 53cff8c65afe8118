/*
 * Lines from a terminal by libedit, through its readline interface (libedit is BSD-licensed,
 * readline is GPL). It is opened when first used, as every other command does without; where it is
 * missing, lines come plain.
 */
#include "cli/repl/line.h"

#include <ctype.h>
#include <dlfcn.h>
#include <editline/readline.h>
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dlopen_note.h"
#include "base/state_folder.h"
#include "config.h"

#define HISTORY_LINES 2000
#define WORD_BREAKS " \t\n\"\\'`@$><=;|&{(+-*/%^~[]}:,!"
#define INDENTATION "    "
#define PASTE_MAX (1 << 20) /* bytes */
#define PASTE_MS 2000       /* without its end or another byte, a paste is over */
/* Bracketed paste (xterm's control sequences): the terminal marks what is pasted. */
#define PASTES_ON "\033[?2004h"
#define PASTES_OFF "\033[?2004l"
#define PASTE_END "\033[201~"

/* What is used of libedit: functions, then variables. */
#define SYMBOLS(S)                                                                                 \
    S(rl_initialize)                                                                               \
    S(rl_callback_handler_install)                                                                 \
    S(rl_callback_handler_remove)                                                                  \
    S(rl_callback_read_char)                                                                       \
    S(rl_insert_text)                                                                              \
    S(rl_add_defun)                                                                                \
    S(rl_parse_and_bind)                                                                           \
    S(add_history)                                                                                 \
    S(using_history)                                                                               \
    S(stifle_history)                                                                              \
    S(read_history)                                                                                \
    S(write_history)                                                                               \
    S(rl_attempted_completion_function)                                                            \
    S(rl_attempted_completion_over)                                                                \
    S(rl_basic_word_break_characters)                                                              \
    S(rl_completion_append_character)                                                              \
    S(rl_line_buffer) S(rl_point) S(rl_readline_name) S(rl_catch_signals)
static struct {
#define POINTER(symbol) __typeof__(symbol) *symbol;
    SYMBOLS(POINTER)
} edit;
static const char *const symbol_names[] = {
#define NAME(symbol) #symbol,
    SYMBOLS(NAME)};

PRB_DEFINE_AUTO(prb_strings, struct prb_strings, prb_strings_free)

static struct prb_line_reader user;
static bool typed, edited;
static char history_path[PATH_MAX];
static char *line_done; /* what the handler was given */
static bool is_done;
static char *pasted; /* lines that came at once; owned */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

PRB_DLOPEN_NOTE(edit, PRB_SONAME_EDIT, "recommended", "line editing in repl");

static bool open_libedit(void)
{
    void *library = dlopen(PRB_SONAME_EDIT, RTLD_NOW | RTLD_LOCAL);
    void **to = (void **)&edit;
    for (size_t i = 0; library && i < sizeof symbol_names / sizeof *symbol_names; i++)
        if (!(to[i] = dlsym(library, symbol_names[i])))
            return false;
    return library != NULL;
}

static bool find_history(void)
{
    struct prb_error err = {0};
    PRB_AUTO_FREE char *folder = prb_state_folder(true, &err);
    return folder && snprintf(history_path, sizeof history_path, "%s/history", folder) <
                         (int)sizeof history_path;
}

/* ---- completion ---- */

/* Where the dotted name at the end of word begins: libedit's idea of a word has more in it, such as
 * "(". */
static size_t name_start(const char *word)
{
    size_t at = strlen(word);
    while (at && (isalnum((unsigned char)word[at - 1]) || strchr("._", word[at - 1]) ||
                  (unsigned char)word[at - 1] >= 0x80))
        at--;
    return at;
}

/* item in place of the name that word ends in; some are given without what precedes the last
 * point. */
static char *replacement(const char *item, const char *word)
{
    const char *name = word + name_start(word), *point = strrchr(name, '.');
    size_t kept = (size_t)(name - word);
    char *text;
    if (point && strncmp(item, name, strlen(name)) != 0)
        kept = (size_t)(point - word + 1);
    return asprintf(&text, "%.*s%s", (int)kept, word, item) < 0 ? NULL : text;
}

static size_t common_length(char *const *items, size_t count)
{
    size_t len = strlen(items[0]);
    for (size_t i = 1; i < count; i++) {
        size_t same = 0;
        while (same < len && items[i][same] == items[0][same])
            same++;
        len = same;
    }
    return len;
}

/* As readline wants it: the common beginning, the matches, NULL; of malloc, freed by libedit. */
static char **matches(const struct prb_strings *names, const char *word)
{
    char **list = calloc(names->count + 2, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; list && i < names->count; i++)
        if ((list[count + 1] = replacement(names->items[i], word)))
            count++;
    if (count)
        list[0] = strndup(list[1], common_length(list + 1, count));
    if (list && list[0])
        return list;
    for (size_t i = 1; list && i <= count; i++)
        free(list[i]);
    free(list);
    return NULL;
}

static char **complete(const char *word, int start, int end)
{
    PRB_AUTO(prb_strings) struct prb_strings names = {0};
    const char *line = *edit.rl_line_buffer;
    (void)start;
    *edit.rl_attempted_completion_over = 1;
    *edit.rl_completion_append_character = '\0';
    if (strspn(line, " \t") >= (size_t)end) {
        edit.rl_insert_text(INDENTATION);
        return NULL;
    }
    if (!user.complete || !user.complete(user.context, line, (size_t)end, &names) || !names.count)
        return NULL;
    return matches(&names, word);
}

/* ---- pasting ---- */

/* What comes up to the mark of its end, which is cut off; NULL: out of memory. */
static char *read_paste(void)
{
    size_t len = 0, cap = 4096, mark = strlen(PASTE_END);
    char *text = malloc(cap);
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    while (text && len < PASTE_MAX && poll(&in, 1, PASTE_MS) > 0) {
        if (len + 1 == cap) {
            char *more = realloc(text, cap *= 2);
            if (!more)
                break;
            text = more;
        }
        /* A byte at a time: what follows the mark is libedit's. */
        if (read(STDIN_FILENO, text + len, 1) != 1)
            break;
        len++;
        if (len >= mark && memcmp(text + len - mark, PASTE_END, mark) == 0) {
            len -= mark;
            break;
        }
    }
    if (text)
        text[len] = '\0';
    return text;
}

/* Lines end as a terminal's Enter gives it, or as files have it; other control characters do
 * something to a line, and mean nothing in Python. */
static void clean(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at == '\r' && at[1] == '\n')
            continue;
        if (*at == '\r')
            *to++ = '\n';
        else if (*at == '\n' || *at == '\t' || ((unsigned char)*at >= ' ' && *at != 0x7f))
            *to++ = *at;
    }
    *to = '\0';
}

static int on_paste(int count, int key)
{
    (void)count, (void)key;
    PRB_AUTO_FREE char *text = read_paste();
    if (!text)
        return 0;
    clean(text);
    if (!strchr(text, '\n'))
        edit.rl_insert_text(text);
    else if (asprintf(&pasted, "%.*s%s", *edit.rl_point, *edit.rl_line_buffer, text) < 0)
        pasted = NULL;
    return 0;
}

/* libedit calls such a function by the last byte of its sequence, whose key stays what it is. */
static void bind_paste(void)
{
    edit.rl_add_defun("probing-paste", on_paste, '~');
    edit.rl_parse_and_bind("bind ~ ed-insert");
    edit.rl_parse_and_bind("bind ^[[200~ probing-paste");
}

/* ---- reading ---- */

bool prb_line_begin(const struct prb_line_reader *reader)
{
    user = *reader;
    typed = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    edited = typed && open_libedit();
    if (!edited)
        return typed;
    /* libedit takes characters apart by the process's locale. */
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    *edit.rl_readline_name = "probing";
    *edit.rl_catch_signals = 0;
    edit.rl_initialize();
    bind_paste();
    fputs(PASTES_ON, stdout);
    *edit.rl_attempted_completion_function = complete;
    *edit.rl_basic_word_break_characters = WORD_BREAKS;
    edit.using_history();
    edit.stifle_history(HISTORY_LINES);
    if (!find_history())
        history_path[0] = '\0';
    else
        edit.read_history(history_path);
    return true;
}

void prb_line_watch(int watched) { user.watched = watched; }

static void take_line(char *line)
{
    line_done = line;
    is_done = true;
    edit.rl_callback_handler_remove();
}

/* Until a line is there or something else happened; libedit owns the terminal meanwhile.  open: the
 * signals that are let through while waiting; SIGINT is blocked otherwise, so that none is missed.
 */
static enum prb_line_event wait_for_line(const sigset_t *open)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = user.watched, .events = POLLRDHUP}};
    while (!is_done && !pasted) {
        int ready = ppoll(fds, 2, NULL, open);
        if (interrupted)
            return PRB_LINE_INTERRUPTED;
        if (ready < 0 && errno != EINTR)
            return PRB_LINE_END;
        if (ready > 0 && fds[1].revents)
            return PRB_LINE_WATCHED;
        if (ready > 0 && fds[0].revents)
            edit.rl_callback_read_char();
    }
    return pasted ? PRB_LINE_PASTED : line_done ? PRB_LINE_READ : PRB_LINE_END;
}

/* Behind the prompt: the part of the line that was typed, and what was pasted. */
static char *take_pasted(size_t typed_bytes)
{
    for (const char *at = pasted + typed_bytes; *at; at++) {
        putchar(*at);
        if (*at == '\n' && at[1])
            fputs("... ", stdout);
    }
    size_t len = strlen(pasted);
    if (len && pasted[len - 1] != '\n')
        putchar('\n');
    return PRB_STEAL(pasted);
}

static enum prb_line_event read_edited(const char *prompt, char **line_out)
{
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    sigset_t closed, open;
    sigemptyset(&closed);
    sigaddset(&closed, SIGINT);
    is_done = false;
    line_done = NULL;
    interrupted = 0;
    sigprocmask(SIG_BLOCK, &closed, &open);
    sigaction(SIGINT, &action, &before);
    edit.rl_callback_handler_install(prompt, take_line);
    enum prb_line_event event = wait_for_line(&open);
    size_t typed_bytes = pasted ? (size_t)*edit.rl_point : 0;
    if (!is_done)
        edit.rl_callback_handler_remove();
    sigprocmask(SIG_SETMASK, &open, NULL);
    sigaction(SIGINT, &before, NULL);
    if (event == PRB_LINE_READ && line_done[strspn(line_done, " \t")])
        edit.add_history(line_done);
    if (event == PRB_LINE_PASTED)
        line_done = take_pasted(typed_bytes);
    else if (event != PRB_LINE_READ)
        putchar('\n');
    if (event == PRB_LINE_PASTED && interrupted) { /* while it was shown */
        free(PRB_STEAL(line_done));
        event = PRB_LINE_INTERRUPTED;
    }
    *line_out = line_done;
    return event;
}

static enum prb_line_event read_plain(const char *prompt, char **line_out)
{
    PRB_AUTO_FREE char *line = NULL;
    size_t size = 0;
    if (typed) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    ssize_t got = getline(&line, &size, stdin);
    if (got < 0)
        return PRB_LINE_END;
    while (got && strchr("\r\n", line[got - 1]))
        line[--got] = '\0';
    *line_out = PRB_STEAL(line);
    return PRB_LINE_READ;
}

enum prb_line_event prb_line_read(const char *prompt, char **line_out)
{
    *line_out = NULL;
    return edited ? read_edited(prompt, line_out) : read_plain(prompt, line_out);
}

void prb_line_end(void)
{
    if (edited)
        fputs(PASTES_OFF, stdout);
    if (edited && history_path[0])
        edit.write_history(history_path);
}
