/* Tracebacks (traceback.h). */
#include "inspect/traceback.h"

#include "py/object/reader.h"

/* What of the object is its frame (3.11+ has it beside or inside, older ones are one), and the code
 * that it runs. */
static bool read_frame(struct prb_objects *objects, struct prb_traceback_entry *entry)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t frame = entry->object, code;
    if (PRB_HAS(layout, frame_object, frame) &&
        !PRB_GET(objects, entry->object, frame_object, frame, &frame))
        return false;
    if (!PRB_GET(objects, frame, frame, code, &code))
        return false;
    entry->raw.frame = frame;
    entry->raw.code = PRB_IS(layout, reference, TAGGED)
                          ? code & ~(uint64_t)PRB_NUM(layout, reference_mask)
                          : code;
    return entry->raw.code != 0;
}

static bool read_entry(struct prb_objects *objects, prb_addr traceback,
                       struct prb_traceback_entry *out)
{
    uint64_t frame, lasti, line;
    if (!PRB_GET(objects, traceback, traceback, frame, &frame) ||
        !PRB_GET(objects, traceback, traceback, lasti, &lasti) ||
        !PRB_GET(objects, traceback, traceback, lineno, &line))
        return false;
    *out = (struct prb_traceback_entry){
        .object = frame,
        .raw.instruction = (int32_t)(uint32_t)lasti,
        .line = (int)(int32_t)(uint32_t)line,
    };
    return read_frame(objects, out);
}

void prb_traceback_each(struct prb_objects *objects, prb_addr exception, prb_traceback_fn *each,
                        void *context)
{
    struct prb_traceback_entry entry;
    uint64_t at;
    if (!PRB_GET(objects, exception, exception, traceback, &at))
        return;
    for (size_t i = 0; at && i < PRB_TRACEBACK_MAX; i++)
        if (!read_entry(objects, at, &entry) || !each(context, &entry) ||
            !PRB_GET(objects, at, traceback, next, &at))
            return;
}
