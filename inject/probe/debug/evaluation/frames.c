/*
 * The frames that were running when the hook came: no event says when they end, so what a caller of
 * theirs wants must be on in their thread until then.  A set of addresses, never followed; frames
 * leave it when they run again under the hook.
 */
#include <limits.h>
#include <stdlib.h>

#include "inject/probe/debug/evaluation/evaluation.h"

#define GONE ((const char *)1)

static const char **slots;
static size_t mask;
size_t prb_evaluation_noted;
unsigned char prb_evaluation_noted_places[PRB_EVALUATION_NOTED_PLACES];

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

/* At its limit a place counts no more. */
static void count(const char *frame, int step)
{
    unsigned char *place = prb_evaluation_noted_place(frame);
    if (*place != UCHAR_MAX)
        *place = (unsigned char)(*place + step);
}

void prb_evaluation_forget_frame(const char *frame)
{
    const char **slot = prb_evaluation_noted ? find(frame) : NULL;
    if (slot && *slot == frame) {
        *slot = GONE;
        prb_evaluation_noted--;
        count(frame, -1);
    }
}

void prb_evaluation_forget_frames(void)
{
    free(slots);
    slots = NULL;
    mask = 0;
    prb_evaluation_noted = 0;
    memset(prb_evaluation_noted_places, 0, sizeof prb_evaluation_noted_places);
}

static size_t each_frame(void (*visit)(const char *frame))
{
    size_t found = 0;
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp); thread;
         thread = prb_evaluation.next_thread(thread))
        for (char *frame = prb_evaluation_frame(thread); frame && found < PRB_EVALUATION_FRAMES_MAX;
             frame = prb_evaluation_caller(frame)) {
            if (visit)
                visit(frame);
            found++;
        }
    return found;
}

static void note(const char *frame)
{
    const char **slot = find(frame);
    if (*slot)
        return;
    *slot = frame;
    prb_evaluation_noted++;
    count(frame, 1);
}

bool prb_evaluation_note_frames(void)
{
    size_t frames = each_frame(NULL), room = 16;
    while (room < frames * 4)
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
