/* probing eval: run code inside a target; its value, its output, its traceback. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet/eval.h"
#include "cli/options.h"
#include "cli/print/out.h"
#include "cli/probe/evaluate.h"

#define CODE_MAX (4u << 20) /* bytes; the protocol's messages hold twice that */

enum { TIMEOUT = PRB_EVAL_PLACE_OPTION_COUNT, JSON };

static const struct prb_option options[] = {
    PRB_EVAL_PLACE_OPTIONS,
    [TIMEOUT] = {0, "timeout", "SECONDS", "interrupt the code after so long", NULL},
    [JSON] = {'j', "json", NULL, "JSON, of a job: who says what, and who did not answer", NULL},
    {0},
};

static bool too_long(size_t len, struct prb_error *err)
{
    return len <= CODE_MAX || prb_cli_fail(err, PRB_USAGE, "import it from a file instead",
                                           "the code is longer than %u bytes", CODE_MAX);
}

static bool copy_input(FILE *to, struct prb_error *err)
{
    char block[1 << 16];
    size_t got, all = 0;
    while ((got = fread(block, 1, sizeof block, stdin)) > 0) {
        all += got;
        if (!too_long(all, err))
            return false;
        fwrite(block, 1, got, to);
    }
    return !ferror(stdin) || prb_cli_fail(err, PRB_IO, "", "standard input cannot be read");
}

/* Every argument is a line or several; "-" is standard input. */
static char *gather(const struct prb_run *run, size_t *len_out, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    FILE *to = open_memstream(&text, len_out);
    bool ok = to != NULL, read = false;
    for (size_t i = 0; ok && i < run->argument_count; i++) {
        const char *word = run->arguments[i];
        fputs(i ? "\n" : "", to);
        if (strcmp(word, "-") != 0)
            fputs(word, to);
        else if (read)
            ok = prb_usage(run, err, "standard input can be read once only");
        else
            ok = read = copy_input(to, err);
    }
    if (!to || fclose(to) != 0) {
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        return NULL;
    }
    return ok && too_long(*len_out, err) ? PRB_STEAL(text) : NULL;
}

/* `eval train.py` is an attribute of a name that nothing has, where a file was meant. */
static bool is_code(const struct prb_run *run, struct prb_error *err)
{
    const char *word = run->arguments[0], *end = strrchr(word, '.');
    if (run->argument_count != 1 || !end || strcmp(end, ".py") != 0 || access(word, R_OK) != 0)
        return true;
    prb_usage(run, err, "%.100s is a file, and eval takes code", word);
    if (err)
        snprintf(err->remedy, sizeof err->remedy, "`probing PID eval - < %.100s` runs the file",
                 word);
    return false;
}

static bool read_options(const struct prb_run *run, struct prb_eval_place *place,
                         struct prb_error *err)
{
    return prb_eval_place_options(run, place, err) &&
           prb_run_number(run, TIMEOUT, PRB_SECONDS_LEAST, PRB_SECONDS_MOST, &place->timeout, err);
}

/* In all ranks of a job, each on its own. */
static bool of_job(const struct prb_run *run, struct prb_error *err)
{
    struct prb_eval_place place = {0};
    size_t len = 0;
    if (run->options[PRB_EVAL_PLACE_THREAD].count || run->options[PRB_EVAL_PLACE_FRAME].count)
        return prb_usage(run, err, "--thread and --frame are for one process, and %s is a job",
                         prb_run_job(run));
    if (!is_code(run, err) || !read_options(run, &place, err))
        return false;
    PRB_AUTO_FREE char *code = gather(run, &len, err);
    if (!code)
        return false;
    const struct prb_job_code all = {.code = code,
                                     .name_space = place.namespace,
                                     .gil_timeout = place.gil_timeout,
                                     .timeout = place.timeout,
                                     .json = run->options[JSON].count};
    return prb_job_eval(run, &all, err);
}

static bool run_eval(const struct prb_run *run, struct prb_error *err)
{
    struct prb_eval_place place = {0};
    size_t len = 0;
    bool interrupted = false;
    PRB_AUTO(prb_eval_result) struct prb_eval_result result = {0};
    if (prb_run_job(run))
        return of_job(run, err);
    if (run->options[JSON].count)
        return prb_usage(run, err, "--json is for the ranks of a job: -t @JOB");
    if (!is_code(run, err) || !read_options(run, &place, err))
        return false;
    PRB_AUTO_FREE char *code = gather(run, &len, err);
    PRB_AUTO(prb_control)
    struct prb_control *control = code ? prb_run_control(run, true, &place.pid, err) : NULL;
    if (!control)
        return false;
    place.control = control;
    if (!prb_eval_place_choose(run, &place, err))
        return false;
    bool ok = prb_evaluate(&place, PRB_EVAL_AUTO, code, len, &result, &interrupted, err);
    if (interrupted)
        *run->status = PRB_STATUS_INTERRUPTED;
    if (!ok)
        return false;
    prb_evaluation_print(&result);
    if (run->verbose)
        fprintf(stderr, "probing: %.3f ms in the target\n", result.seconds * 1e3);
    if (result.raised && !interrupted)
        *run->status = PRB_STATUS_RAISED;
    return true;
}

const struct prb_command prb_command_eval = {
    .name = "eval",
    .aliases = "e",
    .summary = "run Python code inside the target",
    .arguments = "CODE...|-",
    .arguments_min = 1,
    .arguments_max = PRB_WORDS_MAX,
    .target = PRB_USES_TARGET,
    .description =
        "Runs code in the target, on a thread of its own that takes the GIL, and prints the value "
        "of the last expression. Several arguments are lines; `-` reads them from standard input; "
        "code that begins with a minus sign goes after `--`. The code reads the names of __main__, "
        "or with --thread or --frame those of a frame that runs. What it assigns or imports "
        "stays in names of its own, which later evaluations share; --namespace __main__ assigns "
        "in the job itself.\n\n"
        "The output is passed on as it is printed, standard error on standard error. A value "
        "longer "
        "than 64 KiB is cut on a terminal, one of more than a million characters everywhere; "
        "print() "
        "is not. When the code "
        "raises, the traceback goes to standard error and the exit status is 1. Ctrl-C raises "
        "KeyboardInterrupt in the code and gives status 130; a second Ctrl-C leaves at once. When "
        "the GIL cannot be acquired, nothing runs; the message says which thread has the GIL and "
        "where that thread is.\n\n"
        "If there is no probe, it is loaded first, as `probing inject` does, and a line on "
        "standard error says so. With PROBING_AUTO_INJECT=off, in the environment of this command "
        "or of the target, eval refuses instead.",
    .options = options,
    .examples =
        "probing 12345 eval \"import torch; print(torch.cuda.is_available())\"\n"
        "probing 12345 eval --frame train_step \"loss\"  # where it trains\n"
        "probing 12345 eval --namespace __main__ \"lr = 1e-4\"  # changes the job\n"
        "probing 12345 e - < look.py\n"
        "probing -t @ eval \"import torch; torch.__version__\"  # in all ranks: who says what\n"
        "probing -t @llama:0-7 eval -f json \"step\"  # for programs\n",
    .run = run_eval,
};
