/*
 * The frames that were running when the hook came: nobody tells when they end, so what a caller of
 * theirs wants must be on in their thread until then.  A set of addresses, never followed; frames
 * leave it when they run again under the hook.
 */
#include <stdlib.h>

#include "inject/probe/debug/evaluation.h"

#define GONE ((const char *)1)

static const char **slots;
static size_t mask;
size_t prb_evaluation_noted;

static size_t start(const char *frame)
{
    return (size_t)(((uintptr_t)frame >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
}

/* Its slot, or the free one where it would be. */
static const char **find(const char *frame)
{
    size_t i = start(frame);
    while (slots[i] && slots[i] != frame)
        i = (i + 1) & mask;
    return &slots[i];
}

bool prb_evaluation_is_noted(const char *frame)
{
    return prb_evaluation_noted && *find(frame) == frame;
}

void prb_evaluation_forget_frame(const char *frame)
{
    const char **slot = find(frame);
    if (*slot == frame) {
        *slot = GONE;
        prb_evaluation_noted--;
    }
}

void prb_evaluation_forget_frames(void)
{
    free(slots);
    slots = NULL;
    mask = 0;
    prb_evaluation_noted = 0;
}

static size_t each_frame(void (*visit)(const char *frame))
{
    size_t count = 0;
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp); thread;
         thread = prb_evaluation.next_thread(thread))
        for (char *frame = prb_evaluation_frame(thread); frame && count < PRB_EVALUATION_FRAMES_MAX;
             frame = prb_evaluation_caller(frame)) {
            if (visit)
                visit(frame);
            count++;
        }
    return count;
}

static void note(const char *frame)
{
    const char **slot = find(frame);
    if (!*slot)
        prb_evaluation_noted++;
    *slot = frame;
}

bool prb_evaluation_note_frames(void)
{
    size_t count = each_frame(NULL), room = 16;
    while (room < count * 4)
        room *= 2;
    const char **new = calloc(room, sizeof *new);
    if (!new)
        return false;
    prb_evaluation_forget_frames();
    slots = new;
    mask = room - 1;
    each_frame(note);
    return true;
}
