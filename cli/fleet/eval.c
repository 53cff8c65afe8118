/* probing -t @JOB eval: what code says in each rank, equal answers together. */
#include "cli/fleet/eval.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "cli/probe/evaluate.h"
#include "fleet/eval_answers.h"

#define MORE 5.0 /* s beside the code's own time: loading a probe, waiting for the GIL */

static char *args_of(const struct prb_job_code *code, struct prb_error *err)
{
    json_t *args = json_pack("{s:s}", "code", code->code);
    if (!args) {
        prb_cli_fail(err, PRB_USAGE, "", "the code is not UTF-8");
        return NULL;
    }
    if (code->name_space)
        json_object_set_new(args, "name_space", json_string(code->name_space));
    json_object_set_new(args, "gil_timeout", json_real(code->gil_timeout));
    char *text = json_dumps(args, JSON_COMPACT);
    json_decref(args);
    if (!text)
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return text;
}

/* On a terminal the user is asked, once for several ranks. */
static bool is_wanted(const struct prb_fleet_info *info, struct prb_error *err)
{
    unsigned ranks = prb_rank_set_size(info->asked);
    char answer[16] = "";
    if (ranks < 2 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    fprintf(stderr, "Run this in %u ranks? [y/N] ", ranks);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    return prb_cli_fail(err, PRB_USAGE, "", "nothing was run");
}

static void print_answer(const struct prb_eval_answer *answer, unsigned of)
{
    const char *text = answer->text;
    prb_out_style(stdout, PRB_STYLE_TITLE);
    prb_out_ranks(stdout, &answer->ranks, of);
    prb_out_style(stdout, PRB_STYLE_PLAIN);
    fputs(answer->raised ? ": raised\n" : ":\n", stdout);
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        fputs("    ", stdout);
        prb_out_cut(stdout, at, (size_t)(end - at), 0);
        fputc('\n', stdout);
    }
}

bool prb_job_eval(const struct prb_run *run, const struct prb_job_code *code, struct prb_error *err)
{
    double budget = code->timeout > 0 ? code->timeout / 0.72 + MORE : 0;
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job_for(run, budget, err);
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_eval_answers) struct prb_eval_answers answers = {0};
    PRB_AUTO_FREE char *args = fleet ? args_of(code, err) : NULL;
    if (!args || !is_wanted(prb_fleet_info(fleet), err) ||
        !prb_fleet_ask(fleet, "eval", args, &answers, &coverage, err) ||
        !prb_run_covered(run, &coverage, err))
        return false;
    prb_eval_answers_sort(&answers);
    if (code->json) {
        fputs("{\"rows\": ", stdout);
        prb_eval_answers_json(&answers, stdout);
        fputs(",\n \"coverage\": ", stdout);
        prb_coverage_json(&coverage, stdout);
        puts("}");
    }
    for (size_t i = 0; i < answers.count; i++) {
        if (!code->json)
            print_answer(&answers.items[i], (unsigned)coverage.count);
        if (answers.items[i].raised && !*run->status)
            *run->status = PRB_STATUS_RAISED;
    }
    if (!code->json)
        prb_out_coverage(&coverage);
    return true;
}
