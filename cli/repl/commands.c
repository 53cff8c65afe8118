/* The REPL's % commands: what needs no code in the target, beside what does. */
#include <ctype.h>
#include <string.h>

#include "cli/print/out.h"
#include "cli/probe/config_command.h"
#include "cli/repl/repl.h"

#define WORDS_MAX 8
#define WORD_BYTES 512
#define TEXT_REPR 200 /* characters of a local's value */

struct words {
    char text[WORD_BYTES];
    char *items[WORDS_MAX];
    size_t count;
};

static bool split(const char *rest, struct words *words, struct prb_error *err)
{
    char *state = NULL;
    words->count = 0;
    if (strlen(rest) >= sizeof words->text)
        return prb_cli_fail(err, PRB_USAGE, "", "the line is too long");
    strcpy(words->text, rest);
    for (char *word = strtok_r(words->text, " \t", &state); word;
         word = strtok_r(NULL, " \t", &state)) {
        if (words->count == WORDS_MAX)
            return prb_cli_fail(err, PRB_USAGE, "", "too many words");
        words->items[words->count++] = word;
    }
    return true;
}

static bool run_bt(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    struct prb_stack_options options = {.repr_limit = TEXT_REPR, .hide_secrets = true};
    struct words words;
    if (!split(rest, &words, err))
        return false;
    for (size_t i = 0; i < words.count; i++) {
        const char *word = words.items[i] + strspn(words.items[i], "-");
        char *end;
        if (strcmp(word, "native") == 0)
            options.native = true;
        else if (strcmp(word, "locals") == 0)
            options.locals = true;
        else if (!isdigit((unsigned char)*word) ||
                 !(options.only_thread = strtoull(word, &end, 0)) || *end)
            return prb_cli_fail(err, PRB_USAGE, "%bt [TID] [native] [locals]",
                                "\"%.60s\" is not a thread id", words.items[i]);
    }
    return prb_backtrace(repl->run, &options, err);
}

static bool run_query(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    if (!*rest)
        return prb_cli_fail(err, PRB_USAGE, "%query SELECT ...", "SQL is missing");
    return prb_query_print(repl->run, rest, NULL, false, err);
}

static bool run_tables(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    char sql[WORD_BYTES];
    snprintf(sql, sizeof sql, *rest ? "DESCRIBE %.400s" : "SHOW TABLES", rest);
    return prb_query_print(repl->run, sql, NULL, false, err);
}

/*
 * One expression, so that it leaves no name behind.  Attributes are read from the instance's
 * dictionary: no property runs.
 */
static const char inspect_head[] =
    "(lambda o, short=__import__('reprlib').repr: print('\\n'.join("
    "['{}.{} at {:#x}'.format(type(o).__module__, type(o).__qualname__, id(o)), short(o)]"
    " + ['{} = {}'.format(k, short(getattr(o, k))) for k in ('shape', 'dtype', 'device',"
    " 'requires_grad') if type(o).__module__.split('.')[0] in ('torch', 'numpy') and hasattr(o, k)]"
    " + (['len = {}'.format(len(o))] if hasattr(type(o), '__len__') else [])"
    " + ['    {}: {} = {}'.format(k, type(v).__name__, short(v)) for k, v in"
    " sorted(getattr(o, '__dict__', {}).items())[:60]]"
    " + [line for line in [(type(o).__doc__ or '').strip().split('\\n')[0]] if line])))(\n";

static bool run_inspect(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    PRB_AUTO_FREE char *code = NULL;
    if (!*rest)
        return prb_cli_fail(err, PRB_USAGE, "%inspect model", "an expression is missing");
    if (asprintf(&code, "%s%s\n)", inspect_head, rest) < 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return prb_repl_run(repl, code, NULL, err);
}

static bool add_thread(struct prb_grid *grid, const struct prb_thread *thread, bool chosen)
{
    const struct prb_frame *frame = NULL;
    for (size_t i = 0; i < thread->frame_count && !frame; i++)
        if (thread->frames[i].kind == PRB_FRAME_PYTHON)
            frame = &thread->frames[i];
    const char *file = !frame                  ? ""
                       : frame->short_filename ? frame->short_filename
                                               : frame->filename;
    return prb_grid_adds(grid, chosen ? "*" : "") &&
           prb_grid_addf(grid, "%d", (int)thread->os_thread_id) &&
           prb_grid_adds(grid, thread->name) &&
           prb_grid_adds(grid, thread->gil == PRB_GIL_HOLDING ? "held" : "") &&
           (frame ? prb_grid_addf(grid, "%s (%s:%d)", frame->qualname ? frame->qualname : "?",
                                  file ? file : "?", frame->line)
                  : prb_grid_adds(grid, ""));
}

static bool list_threads(struct prb_repl *repl, struct prb_error *err)
{
    static const char *const columns[] = {"", "TID", "NAME", "GIL", "AT"};
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(repl->run, err);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = target ? prb_stacks_take(target, NULL, err) : NULL;
    PRB_AUTO(prb_grid) struct prb_grid *grid = stacks ? prb_grid_new(columns, 5) : NULL;
    if (!stacks)
        return false;
    bool ok = grid != NULL;
    for (size_t i = 0; ok && i < stacks->thread_count; i++)
        if (stacks->threads[i].thread_id)
            ok = add_thread(grid, &stacks->threads[i],
                            stacks->threads[i].thread_id == repl->place.thread);
    if (!ok)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}

static bool run_thread(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    struct words words;
    struct prb_eval_place place = repl->place;
    if (!split(rest, &words, err))
        return false;
    if (words.count == 0)
        return list_threads(repl, err);
    place.frame = 0;
    place.function[0] = '\0';
    place.thread = 0;
    if (words.count > 2 ||
        (words.count == 2 && !prb_parse_frame(repl->run, words.items[1], &place, err)))
        return prb_cli_fail(err, PRB_USAGE, "%thread [THREAD [FRAME]], %thread off",
                            "a thread and a frame's number or function are meant");
    if (strcmp(words.items[0], "off") != 0 && !prb_eval_place_thread(&place, words.items[0], err))
        return false;
    repl->place = place;
    if (place.thread && *place.function)
        printf("names are those of %s in thread %.100s\n", place.function, words.items[0]);
    else if (place.thread)
        printf("names are those of frame %u of thread %.100s\n", place.frame, words.items[0]);
    else
        puts("names are those of __main__; what you assign is your own");
    return true;
}

static bool run_config(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    struct words words;
    bool ok = true;
    if (!repl->place.control)
        return prb_cli_fail(err, PRB_GONE, "", "the probe is gone");
    if (!*rest)
        return prb_config_list(repl->place.control, false, err);
    if (!split(rest, &words, err))
        return false;
    for (size_t i = 0; ok && i < words.count; i++)
        ok = prb_config_word(repl->place.control, words.items[i], err);
    return ok;
}

static bool run_quit(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    (void)rest, (void)err;
    repl->leave = true;
    return true;
}

static bool run_help(struct prb_repl *repl, const char *rest, struct prb_error *err);

static const struct {
    const char *name, *arguments, *help;
    bool (*run)(struct prb_repl *repl, const char *rest, struct prb_error *err);
} commands[] = {
    {"bt", "[TID] [native] [locals]", "the stack of every thread; needs no probe", run_bt},
    {"query", "SQL", "ask the target's tables; needs no probe", run_query},
    {"tables", "[TABLE]", "the tables, or one's columns", run_tables},
    {"inspect", "EXPR", "type, value and attributes of an object", run_inspect},
    {"thread", "[THREAD [FRAME]]", "list them, or use one frame's names; off: not", run_thread},
    {"config", "[KEY[=VALUE]]", "the probe's settings", run_config},
    {"help", "", "this", run_help},
    {"quit", "", "leave; so do Ctrl-D, exit and quit", run_quit},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static bool run_help(struct prb_repl *repl, const char *rest, struct prb_error *err)
{
    (void)repl, (void)rest, (void)err;
    puts("Python runs in the target; a block ends with an empty line; Tab completes;\n"
         "Ctrl-C interrupts.");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int used = printf("  %%%s %s", commands[i].name, commands[i].arguments);
        printf("%*s %s\n", used < 30 ? 30 - used : 0, "", commands[i].help);
    }
    return true;
}

bool prb_repl_command(struct prb_repl *repl, const char *line, struct prb_error *err)
{
    const char *name = line + 1, *rest;
    size_t len = strcspn(name, " \t");
    rest = name + len + strspn(name + len, " \t");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strlen(commands[i].name) == len && strncmp(commands[i].name, name, len) == 0)
            return commands[i].run(repl, rest, err);
    return prb_cli_fail(err, PRB_USAGE, "%help lists them", "unknown command %%%.*s",
                        (int)(len < 40 ? len : 40), name);
}

bool prb_repl_complete_command(const char *line, size_t len, struct prb_strings *out)
{
    out->items = calloc(COMMAND_COUNT, sizeof *out->items);
    for (size_t i = 0; out->items && i < COMMAND_COUNT; i++)
        if (len && strncmp(commands[i].name, line + 1, len - 1) == 0 &&
            (out->items[out->count] = strdup(commands[i].name)))
            out->count++;
    return out->count > 0;
}
