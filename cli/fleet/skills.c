/* probing -t @JOB skill run: each rank is looked at on its host, and what is found in several is
 * said once. */
#include "cli/fleet/skills.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "fleet/objects.h"
#include "fleet/sql.h"

PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)
PRB_DEFINE_AUTO_PTR(prb_diagnosis, struct prb_diagnosis, prb_diagnosis_free)

#define LIKE_MAX 2000 /* different findings of a job that are kept */
#define LONGEST 60.0  /* s that all skills of one process take */
#define TEXT_MAX 2000 /* bytes of a finding */
#define COMM "comm"

/* What is found in some ranks, or (none) of the job as a whole; the words are those of the lowest. */
struct like {
    int severity;
    char *key, *finding, *where, *next, *skill;
    struct prb_rank_set ranks;
    bool differ; /* but for their numbers the ranks say the same */
};

struct likes {
    struct like *items;
    size_t count, left_out;
    char note[300]; /* what could not be looked at, in the lowest rank */
};

static void likes_deinit(struct likes *likes)
{
    for (size_t i = 0; i < likes->count; i++) {
        struct like *one = &likes->items[i];
        free(one->key);
        free(one->finding);
        free(one->where);
        free(one->next);
        free(one->skill);
        prb_rank_set_deinit(&one->ranks);
    }
    free(likes->items);
}
PRB_DEFINE_AUTO(likes, struct likes, likes_deinit)

/* Without its numbers: those of ranks that are in the same trouble differ. */
static char *key_of(const char *severity, const char *skill, const char *finding, const char *where)
{
    char *text = NULL;
    size_t len = 0, at = 0;
    FILE *to = open_memstream(&text, &len);
    if (!to)
        return NULL;
    fprintf(to, "%s %s %.*s", severity, skill, TEXT_MAX, finding);
    fflush(to);
    for (size_t i = 0; text && i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            text[at++] = text[i];
        else if (!at || text[at - 1] != '#')
            text[at++] = '#';
    }
    fseeko(to, (off_t)at, SEEK_SET);
    fprintf(to, " %.*s", TEXT_MAX, where ? where : "");
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static int severity_of(const char *name)
{
    for (int i = PRB_SEVERITY_INFO; name && i <= PRB_SEVERITY_HIGH; i++)
        if (strcmp(prb_severity_name((enum prb_severity)i), name) == 0)
            return i;
    return -1;
}

static const char *text_of(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

/* What a command of a skill is of a job: its rank's, where nothing is in its place. */
static const struct {
    const char *rest, *instead;
} of_job[] = {{" skill run comm", " hang"}, {" backtrace --ranks", " backtrace"}};

/* A process id says nothing on another host: "probing 4711 profile" is "probing -t @JOB:3 profile". */
static char *next_of(const char *next, const char *job, int rank)
{
    static const char command[] = "probing ";
    char *text = NULL;
    size_t len = 0, which;
    FILE *to = next ? open_memstream(&text, &len) : NULL;
    if (!to)
        return NULL;
    for (const char *at = next, *found; *at; at = found) {
        found = strstr(at, command);
        found = found ? found + strlen(command) : at + strlen(at);
        fwrite(at, 1, (size_t)(found - at), to);
        size_t digits = strspn(found, "0123456789");
        if (!digits || found[digits] != ' ')
            continue;
        found += digits;
        for (which = 0; which < sizeof of_job / sizeof *of_job; which++)
            if (strncmp(found, of_job[which].rest, strlen(of_job[which].rest)) == 0)
                break;
        bool all = which < sizeof of_job / sizeof *of_job;
        fprintf(to, all || rank < 0 ? "-t @%s" : "-t @%s:%d", job, rank);
        if (all)
            fputs(of_job[which].instead, to);
        found += all ? strlen(of_job[which].rest) : 0;
    }
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static bool add(struct likes *likes, const json_t *row, const char *job, int rank,
                struct prb_error *err)
{
    const char *skill = text_of(row, "skill"), *finding = text_of(row, "finding"),
               *where = text_of(row, "where"), *note = text_of(row, "note");
    int severity = severity_of(text_of(row, "severity"));
    int late = -1; /* whom comm names */
    if (note && !*likes->note)
        snprintf(likes->note, sizeof likes->note, "rank %d: %s", rank, note);
    if (!skill || !finding || severity < 0)
        return true; /* an agent of another release */
    if (rank < 0 && sscanf(finding, "rank %d makes", &late) != 1)
        late = -1;
    PRB_AUTO_FREE char *key =
        key_of(prb_severity_name((enum prb_severity)severity), skill, finding, where);
    struct like *one = NULL;
    for (size_t i = 0; key && i < likes->count && !one; i++)
        one = strcmp(likes->items[i].key, key) == 0 ? &likes->items[i] : NULL;
    if (key && !one && likes->count == LIKE_MAX) {
        likes->left_out++;
        return true;
    }
    if (key && !one) {
        one = &likes->items[likes->count++];
        *one = (struct like){.severity = severity,
                             .key = PRB_STEAL(key),
                             .finding = strndup(finding, TEXT_MAX),
                             .where = where ? strndup(where, TEXT_MAX) : NULL,
                             .next = next_of(text_of(row, "next"), job, rank < 0 ? late : rank),
                             .skill = strndup(skill, TEXT_MAX)};
    }
    if (!one || !one->finding || !one->skill ||
        (rank >= 0 && !prb_rank_set_add(&one->ranks, rank, rank)))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    one->differ |= strncmp(one->finding, finding, TEXT_MAX) != 0;
    return true;
}

static int worst_first(const void *a, const void *b)
{
    const struct like *x = a, *y = b;
    if (x->severity != y->severity)
        return y->severity - x->severity;
    int rank = prb_rank_set_next(&x->ranks, -1), other = prb_rank_set_next(&y->ranks, -1);
    return rank != other ? (rank > other) - (rank < other) : strcmp(x->key, y->key);
}

/* ---- asking ---- */

static char *args_of(const struct prb_job_skills *how, struct prb_error *err)
{
    json_t *args = json_pack("{s:f}", "seconds", how->seconds);
    if (args && how->name)
        json_object_set_new(args, "skills", json_pack("[s]", how->name));
    char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    if (!text)
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return text;
}

static bool ask_ranks(struct prb_fleet *fleet, const struct prb_job_skills *how,
                      struct likes *likes, struct prb_coverage *coverage, struct prb_error *err)
{
    PRB_AUTO(prb_rank_objects) struct prb_rank_objects objects = {0};
    PRB_AUTO_FREE char *args = args_of(how, err);
    if (!args || !prb_fleet_ask(fleet, "skills", args, &objects, coverage, err))
        return false;
    prb_rank_objects_sort(&objects);
    for (size_t i = 0; i < objects.count; i++)
        for (size_t k = 0; k < json_array_size(objects.items[i].list); k++)
            if (!add(likes, json_array_get(objects.items[i].list, k), prb_fleet_info(fleet)->job,
                     objects.items[i].rank, err))
                return false;
    return true;
}

/* Of the tables of all ranks; what it finds is the job's. */
static bool compare_ranks(struct prb_fleet *fleet, const struct prb_job_skills *how,
                          const struct prb_skill *comm, struct likes *likes,
                          struct prb_coverage *coverage, struct prb_error *err)
{
    const struct prb_diagnose_options options = {.seconds = how->seconds};
    PRB_AUTO(prb_db) struct prb_db *db = prb_fleet_db(fleet, false, coverage, err);
    PRB_AUTO(prb_diagnosis)
    struct prb_diagnosis *found = db ? prb_diagnose(NULL, db, &comm, 1, &options, err) : NULL;
    bool good = found;
    for (size_t i = 0; good && i < found->finding_count; i++) {
        const struct prb_finding *one = &found->findings[i];
        json_t *row = json_pack("{ss ss ss ss? ss?}", "skill", one->skill, "severity",
                                prb_severity_name(one->severity), "finding", one->finding, "where",
                                one->where, "next", one->next);
        good = add(likes, row, prb_fleet_info(fleet)->job, -1, err);
        json_decref(row);
    }
    if (good && found->note_count && !*likes->note)
        snprintf(likes->note, sizeof likes->note, "%s", found->notes[0]);
    return good;
}

/* ---- printing ---- */

static void print_key(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    if (text)
        prb_out_json_text(stdout, text, strlen(text));
    else
        fputs("null", stdout);
}

static void print_json(const struct likes *likes, const struct prb_coverage *coverage)
{
    fputs("{\"findings\": [", stdout);
    for (size_t i = 0; i < likes->count; i++) {
        const struct like *one = &likes->items[i];
        PRB_AUTO_FREE char *ranks = prb_rank_set_text(&one->ranks);
        printf("%s{\"severity\": \"%s\"", i ? ",\n " : "",
               prb_severity_name((enum prb_severity)one->severity));
        print_key("finding", one->finding);
        print_key("where", one->where);
        print_key("next", one->next);
        print_key("skill", one->skill);
        print_key("ranks", ranks);
        printf(", \"count\": %u, \"alike\": %s}", prb_rank_set_size(&one->ranks),
               one->differ ? "true" : "false");
    }
    fputs("],\n\"tables\": [], \"notes\": [", stdout);
    if (*likes->note)
        prb_out_json_text(stdout, likes->note, strlen(likes->note));
    fputs("],\n\"coverage\": ", stdout);
    prb_coverage_json(coverage, stdout);
    puts("}");
}

static void print_one(const struct like *one, bool named, unsigned of)
{
    static const enum prb_style styles[] = {PRB_STYLE_SUBTLE, PRB_STYLE_PLAIN, PRB_STYLE_WARNING,
                                            PRB_STYLE_WARNING};
    prb_out_style(stdout, styles[one->severity]);
    printf("%-6s ", prb_severity_name((enum prb_severity)one->severity));
    prb_out_style(stdout, PRB_STYLE_PLAIN);
    if (one->ranks.count) {
        prb_out_ranks(stdout, &one->ranks, of);
        fputs(": ", stdout);
    }
    printf("%s%s", named ? one->skill : "", named ? ": " : "");
    prb_out_text(stdout, one->finding);
    if (one->differ)
        printf(" (rank %d; the others alike)", prb_rank_set_next(&one->ranks, -1));
    if (one->where) {
        fputs("\n       at ", stdout);
        prb_out_style(stdout, PRB_STYLE_PLACE);
        prb_out_text(stdout, one->where);
        prb_out_style(stdout, PRB_STYLE_PLAIN);
    }
    if (one->next) {
        fputs("\n       then: ", stdout);
        prb_out_text(stdout, one->next);
    }
    fputc('\n', stdout);
}

static void print(const struct prb_run *run, const struct prb_job_skills *how,
                  const struct likes *likes, const struct prb_coverage *coverage)
{
    for (size_t i = 0; i < likes->count; i++)
        print_one(&likes->items[i], !how->name, (unsigned)coverage->count);
    if (!likes->count)
        puts("Nothing was found.");
    if (likes->left_out)
        printf("%zu more findings are left out.\n", likes->left_out);
    if (run->verbose && *likes->note)
        prb_out_note(likes->note);
    prb_out_coverage(coverage);
}

/* One of ours that a job can be asked for. */
static bool is_askable(const struct prb_skill *skill, const char *name, struct prb_error *err)
{
    return (skill && !skill->path && strcmp(name, "crash") != 0) ||
           prb_cli_fail(err, PRB_USAGE,
                        "health, hang, slow, leak, nan, overhead and comm are; this one is of one "
                        "rank: -t @JOB:N",
                        "the skill %.60s is not for all ranks of a job", name);
}

bool prb_job_skills(const struct prb_run *run, const struct prb_job_skills *how,
                    struct prb_error *err)
{
    double budget = (how->seconds > 0 ? 2 * how->seconds : 0) + LONGEST;
    PRB_AUTO(prb_skills) struct prb_skills *skills = prb_skills_find(NULL, err);
    const struct prb_skill *named =
        skills && how->name ? prb_skill_named(skills, how->name, err) : NULL;
    const struct prb_skill *comm = skills ? prb_skill_named(skills, COMM, err) : NULL;
    if (!comm || (how->name && (!named || !is_askable(named, how->name, err))))
        return false;
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job_for(run, budget, err);
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(likes)
    struct likes likes = {.items = calloc(LIKE_MAX, sizeof *likes.items)};
    if (!fleet || !likes.items)
        return fleet ? prb_cli_fail(err, PRB_NOMEM, "", "out of memory") : false;
    if (named != comm && !ask_ranks(fleet, how, &likes, &coverage, err))
        return false;
    if (named != comm && !prb_run_covered(run, &coverage, err))
        return false;
    if (named == comm || (!named && coverage.count > 1)) {
        PRB_AUTO(prb_coverage) struct prb_coverage of_comm = {0};
        if (!compare_ranks(fleet, how, comm, &likes, &of_comm, err) ||
            !prb_run_covered(run, &of_comm, err))
            return false;
        if (named) {
            prb_coverage_deinit(&coverage);
            coverage = of_comm;
            of_comm = (struct prb_coverage){0};
        }
    }
    qsort(likes.items, likes.count, sizeof *likes.items, worst_first);
    if (!*run->status && likes.count && likes.items[0].severity == PRB_SEVERITY_HIGH)
        *run->status = 1;
    if (how->json)
        print_json(&likes, &coverage);
    else
        print(run, how, &likes, &coverage);
    return true;
}
