/* How far a process is in its process groups, by the Flight Recorder of torch.distributed: evidence.h. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "fleet/hang/evidence.h"
#include "inject/control.h"
#include "inject/inject.h"

#define GROUPS_MOST 4096

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)
PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_recorder, struct prb_recorder, prb_recorder_free)

static bool in_time(void *end) { return prb_clock_s() < *(const double *)end; }

static json_int_t number(const json_t *entry, const char *key)
{
    return json_integer_value(json_object_get(entry, key));
}

/* The name of a group, which is the same in all ranks; the id beside it is the process's own count. */
static const char *group_of(const json_t *entry)
{
    return json_string_value(json_array_get(json_object_get(entry, "process_group"), 0));
}

static bool is_over(const json_t *entry)
{
    const char *state = json_string_value(json_object_get(entry, "state"));
    return json_is_true(json_object_get(entry, "retired")) ||
           (state && strcmp(state, "completed") == 0);
}

/* Of each group the entry that serves: the first collective that has not ended, else the last one. */
static void note(json_t *groups, const json_t *entry)
{
    const char *name = group_of(entry);
    const json_t *old = name ? json_object_get(groups, name) : NULL;
    if (!name || json_is_true(json_object_get(entry, "is_p2p")) ||
        json_object_size(groups) >= GROUPS_MOST)
        return;
    json_int_t sequence = number(entry, "collective_seq_id");
    bool later = !old || sequence > number(old, "collective_seq_id");
    bool better = !old || (is_over(old) ? later : !is_over(entry) && !later);
    if (better)
        json_object_set(groups, name, (json_t *)entry);
}

/* "gloo:all_reduce" without its backend. */
static const char *operation_of(const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "profiling_name"));
    const char *colon = name ? strrchr(name, ':') : NULL;
    return colon ? colon + 1 : name ? name : "";
}

static json_t *row_of(const char *name, const json_t *entry)
{
    PRB_AUTO_FREE char *sizes =
        json_dumps(json_object_get(entry, "input_sizes"), JSON_COMPACT | JSON_ENCODE_ANY);
    return json_pack("[s, I, b, s, s, f]", name, number(entry, "collective_seq_id"),
                     !is_over(entry), operation_of(entry), sizes ? sizes : "",
                     (double)number(entry, "time_created_ns") * 1e-9);
}

static json_t *rows_of(const json_t *groups)
{
    const char *name;
    json_t *entry, *rows = json_array();
    json_object_foreach((json_t *)groups, name, entry)
        json_array_append_new(rows, row_of(name, entry));
    return rows;
}

json_t *prb_evidence_groups(pid_t pid, bool load, double seconds)
{
    double end = prb_clock_s() + seconds;
    struct prb_inject_report report;
    if (!load && !prb_control_present(pid))
        return NULL;
    PRB_AUTO(prb_control)
    struct prb_control *control =
        load ? prb_ensure_probe(pid, &report, NULL) : prb_control_open(pid, NULL);
    PRB_AUTO(prb_recorder) struct prb_recorder recorder = {0};
    PRB_AUTO(json_t) json_t *groups = json_object();
    if (!control || !prb_control_recorder(control, false, in_time, &end, &recorder, NULL))
        return NULL;
    for (size_t i = 0; i < recorder.count; i++) {
        json_t *one = json_loadb(recorder.texts[i].data, recorder.texts[i].len, 0, NULL);
        const json_t *entries = json_object_get(one, "entries");
        for (size_t k = 0; k < json_array_size(entries); k++)
            note(groups, json_array_get(entries, k));
        json_decref(one);
    }
    return rows_of(groups);
}
