/* The tracks of a timeline: those of each process together, ranks in their order. */
#include <math.h>
#include <string.h>

#include "export/export.h"

#define COMMAND_LONGEST 80 /* bytes */
#define SCALE 256 /* of a track's place: its kind first, then the order in which they came */

/* A long command is known by its end: the script, and what it was given. */
static const char *end_of(const char *command)
{
    size_t len = strlen(command);
    if (len > COMMAND_LONGEST)
        command += len - COMMAND_LONGEST;
    while ((*command & 0xc0) == 0x80) /* within a character of UTF-8 */
        command++;
    return command;
}

static void name_process(const struct prb_export *export, const struct prb_export_process *process,
                         char *out, size_t cap)
{
    const char *command = process->pid == export->options->pid ? export->options->command : NULL;
    if (process->rank >= 0)
        snprintf(out, cap, "rank %d", process->rank);
    else if (process->pid)
        snprintf(out, cap, "process %d", (int)process->pid);
    else
        snprintf(out, cap, "process");
    if (process->host)
        snprintf(out + strlen(out), cap - strlen(out), " (%.60s)", process->host);
    if (command)
        snprintf(out + strlen(out), cap - strlen(out), ": %s%s",
                 strlen(command) > COMMAND_LONGEST ? "..." : "", end_of(command));
}

static uint32_t process_in_trace(struct prb_export *export,
                                 const struct prb_export_process *process)
{
    char name[128];
    if (process->track_of != PRB_TRACE_NONE)
        return process->track_of;
    name_process(export, process, name, sizeof name);
    int order = process->rank >= 0 ? process->rank : (int)(process - export->processes);
    uint32_t number = prb_trace_process(&export->trace, process->pid, name, order);
    export->processes[process - export->processes].track_of = number;
    return number;
}

static struct prb_hash_slot *slot_of(struct prb_export *export, uint32_t process,
                                     enum prb_export_track kind, uint64_t thread)
{
    uint64_t key = prb_hash_words((uint64_t)process << 8 | kind, thread);
    struct prb_hash_slot *slot = prb_hash_map_add(&export->tracks, key ? key : 1);
    export->failed |= !slot;
    return slot;
}

static int place(const struct prb_export *export, enum prb_export_track kind)
{
    size_t count = export->trace.track_count;
    return (int)kind * SCALE + (int)(count < SCALE ? count : SCALE - 1);
}

uint32_t prb_export_track_of(struct prb_export *export, const struct prb_export_process *process,
                             enum prb_export_track kind, uint64_t thread, const char *name)
{
    uint32_t number = process_in_trace(export, process);
    struct prb_hash_slot *slot = slot_of(export, number, kind, thread);
    if (slot && !slot->number)
        slot->number = 1 + prb_trace_track(&export->trace, number, name, place(export, kind));
    return slot ? (uint32_t)slot->number - 1 : 0;
}

uint32_t prb_export_counter_of(struct prb_export *export, const struct prb_export_process *process,
                               const char *name, const char *unit)
{
    uint32_t number = process_in_trace(export, process);
    struct prb_hash_slot *slot =
        slot_of(export, number, PRB_EXPORT_COUNTERS, prb_hash_bytes(name, strlen(name)));
    if (slot && !slot->number)
        slot->number = 1 + prb_trace_counter(&export->trace, number, name, unit,
                                             place(export, PRB_EXPORT_COUNTERS));
    return slot ? (uint32_t)slot->number - 1 : 0;
}

uint32_t prb_export_slice(struct prb_export *export, uint32_t track, const char *name, double begin,
                          double duration, uint32_t depth)
{
    int64_t from = prb_trace_ns(begin);
    int64_t length =
        isfinite(duration) && duration > 0 && duration < 1e9 ? (int64_t)(duration * 1e9 + 0.5) : 0;
    return prb_trace_slice(&export->trace, track, name, from,
                           from == INT64_MIN ? from : from + length, depth);
}

void prb_export_note(struct prb_export *export, const char *key, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        prb_trace_note_integer(&export->trace, key, value->integer);
    else if (value->type == PRB_REAL)
        prb_trace_note_real(&export->trace, key, value->real);
    else if (prb_export_text(value))
        prb_trace_note_text(&export->trace, key, value->text);
}

bool prb_export_timeline(struct prb_export *export, struct prb_error *err)
{
    static prb_export_part_fn *const parts[] = {
#define PART(name) prb_export_##name,
#include "export/parts.inc"
#undef PART
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!parts[i](export, err))
            return false;
    export->out->processes = export->trace.process_count;
    export->out->slices = export->trace.event_count;
    export->out->values = export->trace.value_count;
    export->out->arrows = export->trace.arrow_count;
    export->out->left_out = export->trace.left_out;
    return !export->failed || prb_nomem(err);
}
