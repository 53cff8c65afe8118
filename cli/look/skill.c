/* probing skill: files that say what to look for, and running them. */
#include <string.h>

#include "cli/fleet/skills.h"
#include "cli/look/database.h"
#include "cli/print/out.h"

PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)
PRB_DEFINE_AUTO_PTR(prb_diagnosis, struct prb_diagnosis, prb_diagnosis_free)

#define PROJECT ".probing/skills"
#define AGENTS ".agents/skills"

enum { JSON, SECONDS, TABLES };

static const struct prb_option options[] = {
    [JSON] = {'j', "json", NULL, "JSON", NULL},
    [SECONDS] = {'s', "seconds", "SECONDS", "run: how long to look, instead of what the skill says",
                 NULL},
    [TABLES] = {0, "tables", NULL, "run: the rows that it rests on, too", NULL},
    {0},
};

static bool print_json(char *json, struct prb_error *err)
{
    if (!json)
        return false;
    prb_out_json(stdout, json, strlen(json));
    fputc('\n', stdout);
    free(json);
    return !ferror(stdout) || prb_out_finish(err);
}

/* ---- list, show, install ---- */

static void print_key(const char *key, const char *text, const char *end)
{
    printf("\"%s\": ", key);
    if (text)
        prb_out_json_text(stdout, text, strlen(text));
    else
        fputs("null", stdout);
    fputs(end, stdout);
}

static void print_list_json(const struct prb_skills *skills)
{
    for (size_t i = 0; i < skills->count; i++) {
        fputs(i ? ",\n {" : "[{", stdout);
        print_key("name", skills->items[i]->name, ", ");
        print_key("description", skills->items[i]->description, ", ");
        print_key("path", skills->items[i]->path, "}");
    }
    puts("]");
}

static bool list(const struct prb_run *run, const struct prb_skills *skills, struct prb_error *err)
{
    static const char *const names[] = {"skill", "what"};
    if (run->options[JSON].count) {
        print_list_json(skills);
        return true;
    }
    PRB_AUTO(prb_grid) struct prb_grid *grid = prb_grid_new(names, 2);
    bool ok = grid;
    for (size_t i = 0; ok && i < skills->count; i++) {
        const char *text = skills->items[i]->description, *stop = strstr(text, ". ");
        size_t len = stop ? (size_t)(stop - text) : strlen(text);
        ok = prb_grid_adds(grid, skills->items[i]->name) && prb_grid_add(grid, text, len, false);
    }
    if (!ok)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}

static bool show(const struct prb_skill *skill, struct prb_error *err)
{
    struct prb_out_stream stream = {.file = stdout};
    if (!prb_out_stream(&stream, skill->text, strlen(skill->text)))
        return prb_out_finish(err);
    prb_out_stream_end(&stream);
    return true;
}

static bool install(const struct prb_skills *skills, const char *folder, struct prb_error *err)
{
    size_t count;
    if (!prb_skills_install(skills, folder, &count, err))
        return false;
    printf("%zu skills written to ", count);
    prb_out_text(stdout, folder);
    fputc('\n', stdout);
    return true;
}

/* ---- run ---- */

static void print_finding(const struct prb_finding *finding, bool named)
{
    prb_out_finding_begin(finding->severity);
    printf("%s%s", named ? finding->skill : "", named ? ": " : "");
    prb_out_text(stdout, finding->finding);
    prb_out_finding_end(finding->where, finding->next);
}

static bool print_table(const struct prb_evidence *table, struct prb_error *err)
{
    PRB_AUTO(prb_grid) struct prb_grid *grid = prb_grid_new(table->columns, table->column_count);
    bool ok = grid;
    for (size_t i = 0; ok && i < table->row_count * table->column_count; i++) {
        const struct prb_value *cell = &table->cells[i];
        ok = cell->type == PRB_INTEGER ? prb_grid_addf(grid, "%lld", (long long)cell->integer)
             : cell->type == PRB_REAL  ? prb_grid_addf(grid, "%.6g", cell->real)
             : cell->type == PRB_TEXT  ? prb_grid_add(grid, cell->text, cell->length, false)
                                       : prb_grid_adds(grid, "");
    }
    if (!ok)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    fputc('\n', stdout);
    prb_out_style(stdout, PRB_STYLE_TITLE);
    prb_out_text(stdout, table->title);
    prb_out_style(stdout, PRB_STYLE_PLAIN);
    fputc('\n', stdout);
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}

static bool print(const struct prb_run *run, const struct prb_diagnosis *diagnosis, bool named,
                  struct prb_error *err)
{
    bool ok = true;
    for (size_t i = 0; i < diagnosis->finding_count; i++)
        print_finding(&diagnosis->findings[i], named);
    if (diagnosis->finding_count == 0)
        puts("Nothing was found.");
    for (size_t i = 0; ok && run->options[TABLES].count && i < diagnosis->table_count; i++)
        ok = print_table(&diagnosis->tables[i], err);
    for (size_t i = 0; run->verbose && i < diagnosis->note_count; i++)
        prb_out_note(diagnosis->notes[i]);
    return ok;
}

static bool take_seconds(const struct prb_run *run, double *out, struct prb_error *err)
{
    const char *text = run->options[SECONDS].text;
    char *end;
    if (!text)
        return true;
    *out = strtod(text, &end);
    return (end != text && !*end && *out >= 0.5 && *out <= 60) ||
           prb_usage(run, err, "--seconds=%s is not a number from 0.5 to 60", text);
}

static bool diagnose(const struct prb_run *run, const struct prb_skills *skills, const char *name,
                     struct prb_error *err)
{
    bool all = strcmp(name, "diagnose") == 0;
    if (prb_run_job(run)) {
        struct prb_job_skills of_job = {.name = all ? NULL : name,
                                        .json = run->options[JSON].count};
        return take_seconds(run, &of_job.seconds, err) && prb_job_skills(run, &of_job, err);
    }
    const struct prb_skill *one = all ? NULL : prb_skill_named(skills, name, err);
    struct prb_diagnose_options how = {0};
    PRB_AUTO_FREE const struct prb_skill **chosen = calloc(skills->count + 1, sizeof *chosen);
    size_t count = 0;
    if (!chosen)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if ((!all && !one) || !take_seconds(run, &how.seconds, err))
        return false;
    for (size_t i = 0; i < skills->count; i++)
        if (all ? !skills->items[i]->path : skills->items[i] == one)
            chosen[count++] = skills->items[i];
    PRB_AUTO(prb_database) struct prb_database database = {0};
    if (!prb_database_open(run, false, false, &database, err))
        return false;
    PRB_AUTO(prb_diagnosis)
    struct prb_diagnosis *diagnosis = prb_diagnose(
        database.target, database.target ? NULL : database.db, chosen, count, &how, err);
    if (!diagnosis)
        return false;
    bool high = diagnosis->finding_count && diagnosis->findings[0].severity == PRB_SEVERITY_HIGH;
    *run->status = high;
    return run->options[JSON].count ? print_json(prb_diagnosis_json(diagnosis, err), err)
                                    : print(run, diagnosis, all, err);
}

/* ---- the command ---- */

static bool run_skill(const struct prb_run *run, struct prb_error *err)
{
    const char *verb = run->arguments[0];
    const char *name = run->argument_count > 1 ? run->arguments[1] : NULL;
    PRB_AUTO(prb_skills) struct prb_skills *skills = prb_skills_find(PROJECT, err);
    if (!skills)
        return false;
    if (skills->warning && (run->verbose || strcmp(verb, "list") == 0))
        prb_out_note(skills->warning);
    if (strcmp(verb, "list") == 0 && !name)
        return list(run, skills, err);
    if (strcmp(verb, "install") == 0)
        return install(skills, name ? name : AGENTS, err);
    if (strcmp(verb, "run") == 0)
        return (prb_run_has_target(run) || prb_usage(run, err, "skill run needs a target")) &&
               diagnose(run, skills, name ? name : "diagnose", err);
    if (strcmp(verb, "show") != 0 && strcmp(verb, "list") != 0)
        return prb_usage_word(run, err);
    if (strcmp(verb, "list") == 0 || !name)
        return prb_usage(run, err, name ? "skill list takes no name" : "skill show needs a name");
    const struct prb_skill *skill = prb_skill_named(skills, name, err);
    return skill && show(skill, err);
}

const struct prb_command prb_command_skill = {
    .name = "skill",
    .aliases = "skills",
    .summary = "look for what is wrong, by playbooks in SQL",
    .arguments = "list|show|run|install [NAME|FOLDER]",
    .words = "list show run install",
    .arguments_min = 1,
    .arguments_max = 2,
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description =
        "A skill is a Markdown file whose SQL blocks return findings: how severe (info, low, "
        "medium, "
        "high), what, where, and what to do next, the worst first. `run` without a name runs all "
        "that "
        "come with Probing, which takes about ten seconds; `hang` and `leak` look for that long, "
        "the "
        "others for less. Exit status 1: something of severity high was found. With -t @JOB each "
        "rank is looked at on its host, what is found in several ranks is said once, and comm "
        "compares the ranks of all hosts.\n\n"
        "More skills are read from $XDG_CONFIG_HOME/probing/skills (~/.config/probing/skills), and "
        "from " PROJECT
        " in the current folder; `run` without a name leaves these out. They can only "
        "read: tables of the one target, for a bounded time.\n\n"
        "`install` writes ours as FOLDER/NAME/SKILL.md, where agents find them (" AGENTS "); the "
        "SQL in them is what runs.",
    .options = options,
    .examples = "probing 12345 skill run  # all of them\n"
                "probing 12345 skill run hang --tables\n"
                "probing -t crash-1.snap skill run crash --json\n"
                "probing -t @ skill run health  # all ranks of a job\n"
                "probing skill install .claude/skills",
    .run = run_skill,
};
