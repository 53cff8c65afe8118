/* probing -t @JOB backtrace: stacks of all ranks, merged, the odd ones first. */
#include "cli/fleet/stacks.h"

#include <jansson.h>
#include <string.h>

#include "cli/fleet/job.h"
#include "cli/look/stacks.h"
#include "cli/print/out.h"

static char *args_of(const struct prb_job_stacks *how)
{
    const struct prb_stack_options *options = how->options;
    json_t *args = json_pack("{s:b, s:b, s:b, s:b, s:b, s:I}", "native", options->native, "locals",
                             options->locals, "all_interpreters", options->all_interpreters,
                             "secrets", !options->hide_secrets, "by_function", how->by_function,
                             "repr", (json_int_t)options->repr_limit);
    if (args && how->thread)
        json_object_set_new(args, "thread", json_string(how->thread));
    char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    return text;
}

static void print_locals(FILE *out, const char *locals)
{
    for (const char *at = locals, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        fputs("        ", out);
        prb_out_cut(out, at, (size_t)(end - at), 0);
        fputc('\n', out);
    }
}

void prb_out_merged_frame(FILE *out, const struct prb_merged_frame *frame, bool verbose)
{
    const struct prb_frame one = {
        .kind = frame->kind,
        .name = frame->name,
        .qualname = frame->name,
        .filename = *frame->file ? frame->file : NULL,
        .short_filename = *frame->file ? frame->file : NULL,
        .line = frame->line,
        .column = -1,
    };
    prb_stacks_print_frame(&one, "    ", verbose, out);
    print_locals(out, frame->locals);
}

static void print_group(const struct prb_run *run, const struct prb_merged *merged, size_t i,
                        unsigned of, const char *things)
{
    const struct prb_merged_group *group = prb_merged_group(merged, i);
    unsigned ranks = prb_rank_set_size(&group->ranks);
    if (i)
        fputc('\n', stdout);
    prb_out_style(stdout, PRB_STYLE_TITLE);
    prb_out_ranks(stdout, &group->ranks, of);
    prb_out_style(stdout, PRB_STYLE_PLAIN);
    fputs("\n  ", stdout);
    prb_out_text(stdout, *group->thread ? group->thread : "(no name)");
    if (group->threads > ranks)
        printf(", %llu %s", (unsigned long long)group->threads, things);
    fputc('\n', stdout);
    if (!group->frame_count)
        fputs("    (no frames)\n", stdout);
    for (size_t k = 0; k < group->frame_count; k++)
        prb_out_merged_frame(stdout, prb_merged_frame(merged, group->frames[k]), run->verbose);
}

static void print_json(const struct prb_merged *merged, const struct prb_coverage *coverage)
{
    fputs("{\"rows\": ", stdout);
    prb_merged_json(merged, stdout);
    fputs(",\n\"coverage\": ", stdout);
    prb_coverage_json(coverage, stdout);
    fputs("}\n", stdout);
}

bool prb_job_backtrace(const struct prb_run *run, const struct prb_job_stacks *how,
                       struct prb_error *err)
{
    const struct prb_merged_options options = {.by_function = how->by_function};
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job(run, err);
    PRB_AUTO(prb_merged) struct prb_merged *merged = fleet ? prb_merged_new(&options, err) : NULL;
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO_FREE char *args = args_of(how);
    if (!args)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!merged || !prb_fleet_ask(fleet, "stacks", args, merged, &coverage, err) ||
        !prb_run_covered(run, &coverage, err))
        return false;
    prb_merged_sort(merged);
    if (how->json) {
        print_json(merged, &coverage);
        return true;
    }
    for (size_t i = 0; i < prb_merged_count(merged); i++)
        print_group(run, merged, i, (unsigned)coverage.count, "threads");
    prb_out_coverage(&coverage);
    return true;
}

bool prb_job_tasks(const struct prb_run *run, bool json, struct prb_error *err)
{
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job(run, err);
    PRB_AUTO(prb_merged) struct prb_merged *merged = fleet ? prb_merged_new(NULL, err) : NULL;
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    if (!merged || !prb_fleet_ask(fleet, "tasks", NULL, merged, &coverage, err) ||
        !prb_run_covered(run, &coverage, err))
        return false;
    prb_merged_sort(merged);
    if (json) {
        print_json(merged, &coverage);
        return true;
    }
    for (size_t i = 0; i < prb_merged_count(merged); i++)
        print_group(run, merged, i, (unsigned)coverage.count, "tasks");
    if (!prb_merged_count(merged))
        puts("No tasks: no rank has an unfinished task of asyncio.");
    prb_out_coverage(&coverage);
    return true;
}
