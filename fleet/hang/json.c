/* The verdict as JSON, and of one process: hang.h. */
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "fleet/hang/evidence.h"
#include "format/format.h"

static void text_json(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\": ", key);
    prb_out_json_text(out, text, strlen(text));
}

static void frames_json(FILE *out, const struct prb_hang_rank *rank)
{
    fputs("\"frames\": [", out);
    for (size_t i = 0; i < rank->frame_count; i++) {
        fputs(i ? ", {" : "{", out);
        text_json(out, "name", rank->frames[i].name);
        fputs(", ", out);
        text_json(out, "file", rank->frames[i].file);
        fprintf(out, ", \"line\": %d}", rank->frames[i].line);
    }
    fputc(']', out);
}

static void part_json(FILE *out, const struct prb_hang_part *part)
{
    const struct prb_hang_rank *rank = part->example;
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&part->ranks);
    fprintf(out, "{\"ranks\": \"%s\", ", ranks ? ranks : "");
    text_json(out, "host", rank->host);
    fprintf(out, ", \"pid\": %d, ", (int)rank->pid);
    text_json(out, "kind", prb_hang_kind_name(part->kind));
    fputs(", ", out);
    text_json(out, "text", part->text);
    fputs(", ", out);
    text_json(out, "operation", rank->operation);
    fputs(", ", out);
    text_json(out, "site", rank->site);
    fputs(", ", out);
    text_json(out, "inside", rank->inside);
    fputs(", ", out);
    frames_json(out, rank);
    fputc('}', out);
}

static void parts_json(FILE *out, const char *key, const struct prb_hang_parts *parts)
{
    fprintf(out, ",\n\"%s\": [", key);
    for (size_t i = 0; i < parts->count; i++) {
        fputs(i ? ",\n  " : "", out);
        part_json(out, &parts->items[i]);
    }
    fputc(']', out);
}

void prb_hang_json(const struct prb_hang *hang, const struct prb_coverage *coverage, FILE *out)
{
    fprintf(out, "{\"hung\": %s, ", hang->hung ? "true" : "false");
    text_json(out, "summary", hang->summary);
    fprintf(out, ", \"span\": %.3f, \"since\": ", hang->span);
    if (hang->hung)
        fprintf(out, "%.3f", hang->since);
    else
        fputs("null", out);
    fprintf(out, ", \"since_at_least\": %s, \"recorders\": %zu",
            hang->hung && !hang->since_exact ? "true" : "false", hang->recorders);
    parts_json(out, "cause", &hang->cause);
    parts_json(out, "waiting", &hang->waiting);
    parts_json(out, "slow", &hang->slow);
    if (coverage) {
        fputs(",\n\"coverage\": ", out);
        prb_coverage_json(coverage, out);
    }
    fputs("}\n", out);
}

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

bool prb_hang_look(pid_t pid, double every, int views, struct prb_hang *out, struct prb_error *err)
{
    const struct prb_evidence_options options = {.every = every, .views = views};
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open_pid(pid, err);
    json_t *object = target ? prb_evidence_take(target, &options, err) : NULL;
    *out = (struct prb_hang){0};
    if (!object)
        return false;
    out->kept = object;
    if (!PRB_GROW(out->ranks, out->count, out->cap))
        return prb_nomem(err);
    out->ranks[out->count] =
        (struct prb_hang_rank){.rank = -1, .pid = pid, .host = "", .state = PRB_COVERAGE_ANSWERED};
    out->count++;
    return prb_evidence_read(object, &out->ranks[0], err) && prb_hang_judge(out, NULL, err);
}
