/* probing repl: a conversation with a target, line by line; Python's rules for blocks, % for our
 * own commands. */
#include "cli/repl/repl.h"

#include <string.h>

#include "cli/print/out.h"
#include "cli/repl/line.h"

static const struct prb_option options[] = {
    PRB_EVAL_PLACE_OPTIONS,
    {0},
};

static void release(struct prb_repl *repl)
{
    free(repl->pending);
    if (repl->place.control)
        prb_control_close(repl->place.control);
}
PRB_DEFINE_AUTO(prb_repl, struct prb_repl, release)

/* ---- the connection ---- */

static void tell_lost(struct prb_repl *repl)
{
    char text[120];
    if (repl->place.control)
        prb_control_close(PRB_STEAL(repl->place.control));
    prb_line_watch(-1);
    if (prb_process_runs(repl->place.pid))
        snprintf(text, sizeof text,
                 "the probe of process %d ended; the next line searches for it again",
                 (int)repl->place.pid);
    else
        snprintf(text, sizeof text, "process %d ended; Ctrl-D leaves", (int)repl->place.pid);
    prb_out_note(text);
}

static bool connect(struct prb_repl *repl, struct prb_error *err)
{
    if (repl->place.control)
        return true;
    if (repl->place.pid && !prb_process_runs(repl->place.pid))
        return prb_cli_fail(err, PRB_GONE, "", "process %d ended", (int)repl->place.pid);
    repl->place.control = prb_run_control(repl->run, true, &repl->place.pid, err);
    if (repl->place.control)
        prb_line_watch(prb_control_fd(repl->place.control));
    return repl->place.control != NULL;
}

bool prb_repl_run(struct prb_repl *repl, const char *code, bool *incomplete_out,
                  struct prb_error *err)
{
    PRB_AUTO(prb_eval_result) struct prb_eval_result result = {0};
    struct prb_error why = {0};
    bool interrupted = false;
    if (!connect(repl, err))
        return false;
    bool ok = prb_evaluate(&repl->place, incomplete_out ? PRB_EVAL_SINGLE : PRB_EVAL_AUTO, code,
                           strlen(code), &result, &interrupted, &why);
    if (!ok && (why.code == PRB_GONE || why.code == PRB_IO))
        tell_lost(repl);
    if (!ok && err)
        *err = why;
    if (!ok)
        return false;
    if (incomplete_out)
        *incomplete_out = result.incomplete;
    prb_evaluation_print(&result);
    repl->failed = repl->failed || result.raised;
    return true;
}

/* ---- blocks ---- */

static bool begins_with_word(const char *line, const char *word)
{
    size_t len = strlen(word);
    return strncmp(line, word, len) == 0 && (line[len] == ':' || line[len] == ' ');
}

/* Whether a line may begin a new statement after an unfinished block: pasted code has no empty line
 * between. */
static bool begins_statement(const struct prb_repl *repl, const char *line)
{
    static const char *const goes_on[] = {"else", "elif", "except", "finally"};
    const char *last = strrchr(repl->pending, '\n');
    last = last ? last + 1 : repl->pending;
    size_t len = strlen(last);
    if (!*line || strchr(" \t#)]}", *line) || *last == '@' || (len && last[len - 1] == '\\'))
        return false;
    for (size_t i = 0; i < sizeof goes_on / sizeof *goes_on; i++)
        if (begins_with_word(line, goes_on[i]))
            return false;
    return true;
}

static bool append(struct prb_repl *repl, const char *line, struct prb_error *err)
{
    char *all;
    if (asprintf(&all, "%s%s%s", repl->pending ? repl->pending : "", repl->pending ? "\n" : "",
                 line) < 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    free(repl->pending);
    repl->pending = all;
    return true;
}

/* Run what is pending, unless more lines are needed.  closed: as if an empty line followed.
 */
static bool submit(struct prb_repl *repl, bool closed, struct prb_error *err)
{
    bool incomplete = false;
    PRB_AUTO_FREE char *code = NULL;
    if (asprintf(&code, "%s%s", repl->pending, closed ? "\n" : "") < 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    bool ok = prb_repl_run(repl, code, &incomplete, err);
    if (!ok || !incomplete)
        free(PRB_STEAL(repl->pending));
    return ok;
}

/* Pasted lines run together when Enter is pressed, several statements and empty lines among them. */
static bool take_pasted(struct prb_repl *repl, const char *lines, struct prb_error *err)
{
    repl->pasted = true;
    return append(repl, lines, err);
}

static bool run_pasted(struct prb_repl *repl, struct prb_error *err)
{
    PRB_AUTO_FREE char *code = PRB_STEAL(repl->pending);
    repl->pasted = false;
    return prb_repl_run(repl, code, NULL, err);
}

static bool take_line(struct prb_repl *repl, const char *line, struct prb_error *err)
{
    static const char *const leave[] = {"exit", "quit", "exit()", "quit()"};
    const char *text = line + strspn(line, " \t");
    if (repl->pending && repl->pasted)
        return *text ? append(repl, line, err) : run_pasted(repl, err);
    if (repl->pending && begins_statement(repl, line) && !submit(repl, true, err))
        return false;
    if (!repl->pending) {
        if (!*text || *text == '#')
            return true;
        if (*text == '%')
            return prb_repl_command(repl, text, err);
        for (size_t i = 0; i < sizeof leave / sizeof *leave; i++)
            repl->leave = repl->leave || strcmp(text, leave[i]) == 0;
        if (repl->leave)
            return true;
    }
    bool empty = repl->pending && !*text;
    if (!append(repl, line, err))
        return false;
    /* In a script a block may contain an empty line. */
    return (empty && !repl->typed) || submit(repl, false, err);
}

static bool finish_block(struct prb_repl *repl, struct prb_error *err)
{
    if (repl->pending && repl->pasted)
        return run_pasted(repl, err);
    if (!repl->pending || !submit(repl, true, err))
        return !repl->pending;
    return !repl->pending ||
           prb_cli_fail(err, PRB_USAGE, "", "the input ends in the middle of a statement");
}

/* ---- the conversation ---- */

static bool complete(void *context, const char *line, size_t cursor, struct prb_strings *out)
{
    struct prb_repl *repl = context;
    if (*line == '%' && memchr(line, ' ', cursor) == NULL)
        return prb_repl_complete_command(line, cursor, out);
    return repl->place.control &&
           prb_control_complete(repl->place.control, line, cursor, repl->place.thread, out, NULL);
}

/* A failed line ends a script only when the target is gone. */
static bool tell(struct prb_repl *repl, bool ok, struct prb_error *err)
{
    fflush(stdout);
    if (ok)
        return true;
    repl->failed = true;
    if (!repl->typed && !repl->place.control && err->code == PRB_GONE)
        return false;
    prb_out_error(err);
    return true;
}

static bool converse(struct prb_repl *repl, struct prb_error *err)
{
    enum prb_line_event event = PRB_LINE_READ;
    while (!repl->leave && event != PRB_LINE_END) {
        PRB_AUTO_FREE char *line = NULL;
        struct prb_error why = {0};
        bool ok = true;
        event = prb_line_read(repl->pending ? "... " : ">>> ", &line);
        if (event == PRB_LINE_INTERRUPTED) {
            free(PRB_STEAL(repl->pending));
            repl->pasted = false;
        } else if (event == PRB_LINE_WATCHED)
            tell_lost(repl);
        else if (event == PRB_LINE_PASTED)
            ok = line && take_pasted(repl, line, &why);
        else
            ok = line ? take_line(repl, line, &why) : finish_block(repl, &why);
        if (!tell(repl, ok, &why)) {
            *err = why;
            return false;
        }
    }
    return true;
}

static bool run_repl(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_repl) struct prb_repl repl = {.run = run};
    struct prb_error why = {0};
    if (!prb_eval_place_options(run, &repl.place, err) || !connect(&repl, err))
        return false;
    if (!prb_eval_place_choose(run, &repl.place, err))
        return false;
    const struct prb_line_reader reader = {complete, &repl, prb_control_fd(repl.place.control)};
    repl.typed = prb_line_begin(&reader);
    if (repl.typed)
        printf("probing %s in process %d; %%help lists the commands, Ctrl-D leaves\n%s",
               prb_version(), (int)repl.place.pid,
               repl.place.thread || repl.place.namespace
                   ? ""
                   : "it reads the names of __main__; what you assign is your own\n");
    bool ok = converse(&repl, &why);
    prb_line_end();
    if (!ok && err)
        *err = why;
    if (ok && repl.failed && !repl.typed)
        *run->status = PRB_STATUS_RAISED;
    return ok;
}

const struct prb_command prb_command_repl = {
    .name = "repl",
    .aliases = "r",
    .summary = "an interactive Python prompt inside the target",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description =
        "Runs what is typed inside the target, as `probing eval` does, with names of its own over "
        "those of __main__, and prints values as the interactive interpreter does; _ is the last "
        "one. Blocks go on until an empty line, or until a line that "
        "begins a new statement. Tab completes names of live objects; the history is saved in "
        "$XDG_STATE_HOME/probing/history (~/.local/state). Ctrl-C interrupts what runs, and at "
        "the prompt drops the line.\n\n"
        "Lines that begin with % are Probing's own: %bt, %query SQL, %tables, %inspect EXPR, "
        "%thread, %config, %help. %thread, or --thread and --frame, make the names those of the "
        "frame that a thread runs.\n\n"
        "Input from a pipe is a script: no prompts, and the exit status is 1 when a line of it "
        "failed.",
    .options = options,
    .examples = "probing 12345 repl\n"
                "probing 12345 repl --thread MainThread\n"
                "echo '%query SELECT count(*) FROM python.threads' | probing 12345 repl\n",
    .run = run_repl,
};
