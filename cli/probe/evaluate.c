/* One evaluation: see evaluate.h.  What code prints goes to a file as it is, to a terminal made
 * harmless. */
#include "cli/probe/evaluate.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/print/out.h"

#define TERMINAL_MAX 65536 /* bytes of a value; a file or pipe gets all that came */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    if (++interrupts > 1)
        _exit(PRB_STATUS_INTERRUPTED);
}

struct streams {
    struct prb_out_stream out, err;
    bool announced; /* that it is being interrupted */
};

static bool take_output(void *context, int stream, const char *text, size_t len)
{
    struct streams *streams = context;
    struct prb_out_stream *to = stream == 2 ? &streams->err : &streams->out;
    return prb_out_stream(to, text, len);
}

static bool is_cancelled(void *context)
{
    struct streams *streams = context;
    if (interrupts && !streams->announced)
        prb_out_note("interrupting it; Ctrl-C again leaves at once");
    streams->announced = streams->announced || interrupts;
    return interrupts != 0;
}

static void advise_on_gil(pid_t pid, struct prb_error *err)
{
    snprintf(err->remedy, sizeof err->remedy,
             "--gil-timeout SECONDS waits longer; `probing %d backtrace --native` needs no GIL",
             (int)pid);
}

bool prb_evaluate(const struct prb_eval_place *place, enum prb_eval_mode mode, const char *code,
                  size_t code_len, struct prb_eval_result *result, bool *interrupted_out,
                  struct prb_error *err)
{
    struct streams streams = {.out = {.file = stdout}, .err = {.file = stderr}};
    const struct prb_eval_options options = {
        .mode = mode,
        .code = code,
        .code_len = code_len,
        .name_space = place->namespace,
        .thread = place->thread,
        .frame = place->frame,
        .function = *place->function ? place->function : NULL,
        .gil_timeout = place->gil_timeout,
        .timeout = place->timeout,
        .output = take_output,
        .cancelled = is_cancelled,
        .context = &streams,
    };
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    struct prb_error why = {0};
    interrupts = 0;
    sigaction(SIGINT, &action, &before);
    bool ok = prb_control_eval(place->control, &options, result, &why);
    sigaction(SIGINT, &before, NULL);
    prb_out_stream_end(&streams.out);
    prb_out_stream_end(&streams.err);
    if (interrupted_out)
        *interrupted_out = interrupts != 0;
    if (!ok && prb_explain_gil(place->pid, &why))
        advise_on_gil(place->pid, &why);
    if (!ok && err)
        *err = why;
    return ok;
}

/* A traceback, from the line of the exception on in a colour: what comes behind the last frame. */
static void print_traceback(const char *text, size_t len)
{
    struct prb_out_stream stream = {.file = stderr};
    size_t last = 0;
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
        const char *end = strchr(line, '\n');
        if (*line == ' ' && end)
            last = (size_t)(end + 1 - text);
    }
    bool colored = prb_out_is_colored() && isatty(fileno(stderr));
    prb_out_stream(&stream, text, last);
    if (colored)
        prb_out_style(stderr, PRB_STYLE_WARNING);
    prb_out_stream(&stream, text + last, len - last);
    if (text[len - 1] != '\n')
        prb_out_stream(&stream, "\n", 1);
    prb_out_stream_end(&stream);
    if (colored)
        prb_out_style(stderr, PRB_STYLE_PLAIN);
}

void prb_evaluation_print(const struct prb_eval_result *result)
{
    struct prb_out_stream stream = {.file = stdout};
    size_t len = result->text ? strlen(result->text) : 0;
    if (len == 0 || (result->none && !result->raised))
        return;
    if (result->raised) {
        print_traceback(result->text, len);
        return;
    }
    bool cut = len > TERMINAL_MAX + 256 && isatty(fileno(stream.file));
    size_t shown = cut ? TERMINAL_MAX : len;
    while (cut && (result->text[shown] & 0xc0) == 0x80) /* within a character */
        shown--;
    prb_out_stream(&stream, result->text, shown);
    prb_out_stream(&stream, "\n", 1);
    prb_out_stream_end(&stream);
    if (cut)
        prb_out_note("the rest is left out on a terminal; a file or pipe gets it");
}

/* The Python thread that a word means, or NULL. */
static const struct prb_thread *find_thread(const struct prb_stacks *stacks, pid_t pid,
                                            const char *word)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (stacks->threads[i].thread_id && prb_thread_is(&stacks->threads[i], pid, word))
            return &stacks->threads[i];
    return NULL;
}

bool prb_eval_place_thread(struct prb_eval_place *place, const char *word, struct prb_error *err)
{
    if (!place->pid)
        return prb_cli_fail(err, PRB_UNSUPPORTED, "",
                            "the threads of a process that is not visible from here are not known");
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open_pid(place->pid, err);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = target ? prb_stacks_take(target, NULL, err) : NULL;
    if (!stacks)
        return false;
    const struct prb_thread *thread = find_thread(stacks, place->pid, word);
    if (!thread)
        return prb_cli_fail(
            err, PRB_NOT_FOUND,
            "`probing PID backtrace` shows the threads with their numbers and names",
            "process %d has no Python thread \"%.60s\"", (int)place->pid, word);
    place->thread = thread->thread_id;
    return true;
}

bool prb_eval_place_choose(const struct prb_run *run, struct prb_eval_place *place,
                           struct prb_error *err)
{
    const struct prb_option_value *given = run->options;
    const char *word = given[PRB_EVAL_PLACE_THREAD].count  ? given[PRB_EVAL_PLACE_THREAD].text
                       : given[PRB_EVAL_PLACE_FRAME].count ? "MainThread"
                                                           : NULL;
    return !word || prb_eval_place_thread(place, word, err);
}

bool prb_parse_frame(const struct prb_run *run, const char *text, struct prb_eval_place *place,
                     struct prb_error *err)
{
    bool number = text[strspn(text, "0123456789")] == '\0';
    bool starts_name = !strchr("0123456789+-.", *text);
    if (number ? !*text || strlen(text) > 6
               : !starts_name || strlen(text) >= sizeof place->function)
        return prb_usage(run, err,
                         "\"%s\" is not a frame number or the name of a function; 0 is the "
                         "innermost",
                         text);
    place->frame = number ? (unsigned)strtoul(text, NULL, 10) : 0;
    snprintf(place->function, sizeof place->function, "%s", number ? "" : text);
    return true;
}

bool prb_eval_place_options(const struct prb_run *run, struct prb_eval_place *place,
                            struct prb_error *err)
{
    const struct prb_option_value *given = run->options, *frame = &given[PRB_EVAL_PLACE_FRAME];
    place->namespace = given[PRB_EVAL_PLACE_NAMESPACE].text;
    return (!frame->count || prb_parse_frame(run, frame->text, place, err)) &&
           prb_run_number(run, PRB_EVAL_PLACE_GIL_TIMEOUT, PRB_SECONDS_LEAST, PRB_SECONDS_MOST,
                          &place->gil_timeout, err);
}
