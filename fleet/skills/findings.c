/* See findings.h. */
#include "fleet/skills/findings.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/format.h"

#define FINDINGS_MAX 2000 /* different ones of a job */
#define TEXT_MAX 2000     /* bytes of a finding */

void prb_job_diagnosis_deinit(struct prb_job_diagnosis *diagnosis)
{
    for (size_t i = 0; i < diagnosis->count; i++) {
        struct prb_job_finding *one = &diagnosis->findings[i];
        free(one->key);
        free(one->finding);
        free(one->where);
        free(one->next);
        free(one->skill);
        prb_rank_set_deinit(&one->ranks);
    }
    free(diagnosis->findings);
    prb_coverage_deinit(&diagnosis->coverage);
    *diagnosis = (struct prb_job_diagnosis){0};
}

/* Without its numbers: those of ranks that are in the same trouble differ. */
static char *key_of(const char *severity, const char *skill, const char *finding, const char *where)
{
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    prb_buf_addf(&key, "%s %s ", severity, skill);
    for (size_t i = 0; i < TEXT_MAX && finding[i]; i++) {
        if (!isdigit((unsigned char)finding[i]))
            prb_buf_addc(&key, finding[i]);
        else if (!i || !isdigit((unsigned char)finding[i - 1]))
            prb_buf_addc(&key, '#');
    }
    prb_buf_addf(&key, " %.*s", TEXT_MAX, where ? where : "");
    return prb_buf_steal(&key);
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
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    size_t which;
    for (const char *at = next, *found; *at; at = found) {
        found = strstr(at, command);
        found = found ? found + strlen(command) : at + strlen(at);
        prb_buf_add(&out, at, (size_t)(found - at));
        size_t digits = strspn(found, "0123456789");
        if (!digits || found[digits] != ' ')
            continue;
        found += digits;
        for (which = 0; which < sizeof of_job / sizeof *of_job; which++)
            if (strncmp(found, of_job[which].rest, strlen(of_job[which].rest)) == 0)
                break;
        bool all = which < sizeof of_job / sizeof *of_job;
        prb_buf_addf(&out, all || rank < 0 ? "-t @%s" : "-t @%s:%d", job, rank);
        if (all)
            prb_buf_adds(&out, of_job[which].instead);
        found += all ? strlen(of_job[which].rest) : 0;
    }
    return prb_buf_steal(&out);
}

static bool take(struct prb_job_finding *out, const json_t *row, const char *job, int rank)
{
    const char *finding = text_of(row, "finding"), *where = text_of(row, "where"),
               *next = text_of(row, "next");
    int late = -1; /* whom comm names */
    if (rank < 0 && sscanf(finding, "rank %d makes", &late) != 1)
        late = -1;
    out->finding = strndup(finding, TEXT_MAX);
    out->skill = strndup(text_of(row, "skill"), TEXT_MAX);
    out->where = where ? strndup(where, TEXT_MAX) : NULL;
    out->next = next ? next_of(next, job, rank < 0 ? late : rank) : NULL;
    return out->finding && out->skill && (!where || out->where) && (!next || out->next);
}

bool prb_job_diagnosis_add(struct prb_job_diagnosis *diagnosis, const json_t *row, const char *job,
                           int rank, struct prb_error *err)
{
    const char *skill = text_of(row, "skill"), *finding = text_of(row, "finding"),
               *note = text_of(row, "note");
    int severity = severity_of(text_of(row, "severity"));
    if (note && !*diagnosis->note)
        snprintf(diagnosis->note, sizeof diagnosis->note, "rank %d: %s", rank, note);
    if (!skill || !finding || severity < 0)
        return true;
    PRB_AUTO_FREE char *key = key_of(prb_severity_name((enum prb_severity)severity), skill, finding,
                                     text_of(row, "where"));
    struct prb_job_finding *one = NULL;
    for (size_t i = 0; key && i < diagnosis->count && !one; i++)
        one = strcmp(diagnosis->findings[i].key, key) == 0 ? &diagnosis->findings[i] : NULL;
    if (key && !one && diagnosis->count == FINDINGS_MAX) {
        diagnosis->left_out++;
        return true;
    }
    if (key && !one && PRB_GROW(diagnosis->findings, diagnosis->count, diagnosis->cap)) {
        one = &diagnosis->findings[diagnosis->count];
        *one = (struct prb_job_finding){.severity = (enum prb_severity)severity,
                                        .key = PRB_STEAL(key),
                                        .order = diagnosis->count++};
        if (!take(one, row, job, rank))
            return prb_nomem(err);
    }
    if (!one || (rank >= 0 && !prb_rank_set_add(&one->ranks, rank, rank)))
        return prb_nomem(err);
    one->differ |= strncmp(one->finding, finding, TEXT_MAX) != 0;
    return true;
}

bool prb_job_diagnosis_say(struct prb_job_diagnosis *diagnosis, const struct prb_finding *finding,
                           const struct prb_rank_set *ranks, struct prb_error *err)
{
    if (diagnosis->count == FINDINGS_MAX) {
        diagnosis->left_out++;
        return true;
    }
    if (!PRB_GROW(diagnosis->findings, diagnosis->count, diagnosis->cap))
        return prb_nomem(err);
    struct prb_job_finding *one = &diagnosis->findings[diagnosis->count];
    *one = (struct prb_job_finding){
        .severity = finding->severity,
        .key = key_of(prb_severity_name(finding->severity), finding->skill, finding->finding,
                      finding->where),
        .skill = strdup(finding->skill),
        .finding = strdup(finding->finding),
        .where = finding->where ? strdup(finding->where) : NULL,
        .next = finding->next ? strdup(finding->next) : NULL,
        .order = diagnosis->count++,
    };
    return (one->key && one->skill && one->finding && (one->where || !finding->where) &&
            (one->next || !finding->next) && (!ranks || prb_rank_set_unite(&one->ranks, ranks))) ||
           prb_nomem(err);
}

static int worst_first(const void *a, const void *b)
{
    const struct prb_job_finding *x = a, *y = b;
    if (x->severity != y->severity)
        return x->severity < y->severity ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

void prb_job_diagnosis_sort(struct prb_job_diagnosis *diagnosis)
{
    if (diagnosis->count)
        qsort(diagnosis->findings, diagnosis->count, sizeof *diagnosis->findings, worst_first);
}

/* ---- as JSON ---- */

static void key_json(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    if (text)
        prb_out_json_text(out, text, strlen(text));
    else
        fputs("null", out);
}

void prb_job_diagnosis_json(const struct prb_job_diagnosis *diagnosis, FILE *out)
{
    fputs("{\"findings\": [", out);
    for (size_t i = 0; i < diagnosis->count; i++) {
        const struct prb_job_finding *one = &diagnosis->findings[i];
        PRB_AUTO_FREE char *ranks = prb_rank_set_text(&one->ranks);
        fprintf(out, "%s{\"severity\": \"%s\"", i ? ",\n " : "", prb_severity_name(one->severity));
        key_json(out, "finding", one->finding);
        key_json(out, "where", one->where);
        key_json(out, "next", one->next);
        key_json(out, "skill", one->skill);
        key_json(out, "ranks", ranks);
        fprintf(out, ", \"count\": %u, \"alike\": %s}", prb_rank_set_size(&one->ranks),
                one->differ ? "true" : "false");
    }
    fputs("],\n\"tables\": [], \"notes\": [", out);
    if (*diagnosis->note)
        prb_out_json_text(out, diagnosis->note, strlen(diagnosis->note));
    fputs("],\n\"coverage\": ", out);
    prb_coverage_json(&diagnosis->coverage, out);
    fputs("}\n", out);
}
