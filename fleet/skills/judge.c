/* The verdict on all ranks as findings: a rank by itself cannot know who waits for whom. */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "fleet/hang.h"
#include "fleet/skills/findings.h"

#define EVERY 2.0 /* s between the two views */
#define SKILL "hang"

/* "sync_grads (train.py:47)" as skills write it: "train.py:47 in sync_grads". */
static char *where_of(const struct prb_hang_rank *rank)
{
    PRB_AUTO(prb_buf) struct prb_buf where = {0};
    const char *file = strstr(rank->site, " (");
    size_t len = file ? strlen(file) : 0;
    if (len < 3)
        return NULL;
    prb_buf_addf(&where, "%.*s in %.*s", (int)(len - 3), file + 2, (int)(file - rank->site),
                 rank->site);
    return prb_buf_steal(&where);
}

/* "it is in no collective", "they are …": what is said of a part, without its place, which stands below. */
static void sentence(const struct prb_hang_part *part, const char *before, const char *behind,
                     char *out, size_t size)
{
    const char *site = part->example->site, *who = "";
    size_t len = strlen(part->text), tail = *site ? strlen(site) + strlen(" at ") : 0;
    if (tail && len > tail && strncmp(part->text + len - tail, " at ", 4) == 0 &&
        strcmp(part->text + len - tail + 4, site) == 0)
        len -= tail;
    len -= len && part->text[len - 1] == ',';
    if (strncmp(part->text, "all ", 4) != 0)
        who = prb_rank_set_size(&part->ranks) > 1 ? "they " : "it ";
    snprintf(out, size, "%s%s%.*s%s", who, before, (int)len, part->text, behind);
}

struct telling {
    struct prb_job_diagnosis *diagnosis;
    const struct prb_hang *hang;
    char job[200]; /* "@NAME" */
};

static bool tell(const struct telling *telling, const struct prb_hang_part *part,
                 enum prb_severity severity, const char *text, const char *next,
                 struct prb_error *err)
{
    PRB_AUTO_FREE char *where = where_of(part->example);
    const struct prb_finding finding = {
        .skill = SKILL, .severity = severity, .finding = text, .where = where, .next = next};
    return prb_job_diagnosis_say(telling->diagnosis, &finding, &part->ranks, err);
}

static bool tell_cause(const struct telling *telling, const struct prb_hang_part *part,
                       struct prb_error *err)
{
    char since[80], behind[100], text[640], next[320];
    prb_hang_since_text(telling->hang, since, sizeof since);
    snprintf(behind, sizeof behind, " (%s)", since);
    sentence(part, "", behind, text, sizeof text);
    prb_hang_next(telling->hang, part, telling->job, next, sizeof next);
    return tell(telling, part, PRB_SEVERITY_HIGH, text, next, err);
}

static bool tell_slow(const struct telling *telling, const struct prb_hang_part *part,
                      struct prb_error *err)
{
    char text[640];
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&part->ranks);
    PRB_AUTO(prb_buf) struct prb_buf next = {0};
    sentence(part, "", "", text, sizeof text);
    prb_buf_addf(&next, "what takes the time: probing -t %s:%s profile", telling->job,
                 ranks ? ranks : "");
    return tell(telling, part, PRB_SEVERITY_MEDIUM, text, next.data, err);
}

static bool tell_waiting(const struct telling *telling, const struct prb_hang_part *part,
                         struct prb_error *err)
{
    char text[640];
    sentence(part, prb_rank_set_size(&part->ranks) > 1 ? "wait in " : "waits in ", "", text,
             sizeof text);
    return tell(telling, part, PRB_SEVERITY_INFO, text, NULL, err);
}

static bool tell_all(const struct telling *telling, struct prb_error *err)
{
    const struct prb_hang *hang = telling->hang;
    char text[260];
    bool ok = true;
    if (!hang->hung) {
        const struct prb_finding goes_on = {
            .skill = SKILL, .severity = PRB_SEVERITY_INFO, .finding = text};
        snprintf(text, sizeof text, "the job goes on: %s", hang->summary);
        ok = prb_job_diagnosis_say(telling->diagnosis, &goes_on, NULL, err);
    }
    for (size_t i = 0; ok && i < hang->cause.count; i++)
        ok = tell_cause(telling, &hang->cause.items[i], err);
    for (size_t i = 0; ok && i < hang->slow.count; i++)
        ok = tell_slow(telling, &hang->slow.items[i], err);
    for (size_t i = 0; ok && i < hang->waiting.count; i++)
        ok = tell_waiting(telling, &hang->waiting.items[i], err);
    return ok;
}

bool prb_job_diagnosis_judge(struct prb_job_diagnosis *diagnosis, struct prb_fleet *fleet,
                             double seconds, struct prb_coverage *coverage, struct prb_error *err)
{
    PRB_AUTO(prb_hang) struct prb_hang hang = {0};
    struct telling telling = {.diagnosis = diagnosis, .hang = &hang};
    struct prb_error why = {0};
    char args[80];
    snprintf(args, sizeof args, "{\"every\": %.3f, \"views\": 2}", seconds > 0 ? seconds : EVERY);
    if (!prb_fleet_ask(fleet, "hang", args, &hang, coverage, err))
        return false;
    snprintf(telling.job, sizeof telling.job, "@%.190s", prb_fleet_info(fleet)->job);
    if (prb_hang_judge(&hang, coverage, &why))
        return tell_all(&telling, err);
    if (why.code == PRB_NOMEM)
        return prb_nomem(err);
    snprintf(diagnosis->note, sizeof diagnosis->note, SKILL ": %.280s", why.text);
    return true;
}
