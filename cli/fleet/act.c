/* See act.h. */
#include "cli/fleet/act.h"

#include <string.h>
#include <unistd.h>

#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "cli/probe/evaluate.h"
#include "fleet/eval_answers.h"

/* On a terminal the user is asked, once for several ranks. */
static bool is_wanted(const struct prb_fleet_info *info, const char *question,
                      struct prb_error *err)
{
    unsigned ranks = prb_rank_set_size(info->asked);
    char answer[16] = "";
    if (!question || ranks < 2 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    fprintf(stderr, "%s in %u ranks? [y/N] ", question, ranks);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    return prb_cli_fail(err, PRB_USAGE, "", "nothing was done");
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

static void print_json(const struct prb_eval_answers *answers, const struct prb_coverage *coverage)
{
    fputs("{\"rows\": ", stdout);
    prb_eval_answers_json(answers, stdout);
    fputs(",\n \"coverage\": ", stdout);
    prb_coverage_json(coverage, stdout);
    puts("}");
}

bool prb_job_act(const struct prb_run *run, struct prb_job_act *act, struct prb_error *err)
{
    PRB_AUTO_FREE char *args = act->args ? json_dumps(act->args, JSON_COMPACT) : NULL;
    bool room = args || !act->args;
    json_decref(act->args);
    act->args = NULL;
    PRB_AUTO(prb_fleet)
    struct prb_fleet *fleet = room ? prb_run_open_job_for(run, act->budget, err) : NULL;
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_eval_answers) struct prb_eval_answers answers = {0};
    if (!fleet)
        return room ? false : prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!is_wanted(prb_fleet_info(fleet), act->question, err) ||
        !prb_fleet_ask(fleet, act->kind, args, &answers, &coverage, err) ||
        !prb_run_covered(run, &coverage, err))
        return false;
    prb_eval_answers_sort(&answers);
    if (act->json)
        print_json(&answers, &coverage);
    for (size_t i = 0; i < answers.count; i++) {
        if (!act->json)
            print_answer(&answers.items[i], (unsigned)coverage.count);
        if (answers.items[i].raised && !*run->status)
            *run->status = PRB_STATUS_RAISED;
    }
    if (!act->json)
        prb_out_coverage(&coverage);
    return true;
}
