/*
 * The sampler's memory, shared by sampler_threads.c (which threads there are, and which may have moved)
 * and sampler.c (their frame chains, read until they are proven).
 */
#ifndef PRB_PY_SAMPLER_SLOTS_H
#define PRB_PY_SAMPLER_SLOTS_H

#include "py/sampler.h"
#include "py/walk.h"

struct prb_sampler_slot {
    struct prb_view *view;
    struct prb_walk walk[2]; /* the last two readings */
    int last;                /* which of them is the newest */
    uint64_t seen;           /* sample number */
    prb_addr tstate;
    struct prb_thread_head head;
    prb_addr next;   /* as the list was followed */
    bool moved;      /* in this sample: two readings differed */
    unsigned agreed; /* … and so many of the last ones were the same */
    prb_addr root;   /* code of the outermost frame that is not a generator's; 0: none yet */
    bool verified;   /* the last walk was proven */
    bool unchanged;  /* … and what it touched reads the same again */
    bool unmoved;    /* its thread had no GIL since, so nothing of it can have changed */
    bool cold;       /* nothing of its chain was read yet */
};

/* What an interpreter's GIL said when its threads were last read. */
struct prb_gil_note {
    prb_addr interp;
    int64_t id;
    prb_addr gil; /* where it is: it stays there */
    prb_addr last_holder;
    uint64_t switch_number;
    bool kept;       /* no other thread had it since the reading before */
    bool mistrusted; /* it changed hands without counting: the count is not used */
};

struct prb_sampler {
    struct prb_py *py;
    struct prb_proc *proc;           /* NULL: not known */
    struct prb_view *lists;          /* the interpreter structs */
    struct prb_view *along;          /* prb_sampler_read_along; NULL: none */
    struct prb_view *heads;          /* thread states that are met for the first time */
    struct prb_sampler_slot **slots; /* open addressing by thread state */
    size_t capacity, used;
    uint64_t number;
    uint64_t taken; /* number of the last sample that was given out */
    prb_addr root;  /* as a slot's, of any of them: most threads have the same */
    unsigned unit;  /* of the threads' views, bytes */
    bool anchors;
    struct prb_raw_stacks result;
    size_t interpreter_cap, thread_cap;
    struct prb_gil_note *notes;
    size_t note_count, note_cap;
    struct prb_sampler_slot **slot_of_thread; /* parallel to result.threads */
    size_t slot_cap;
    struct prb_view **batch;
    size_t batch_cap;
    struct prb_sampler_slot **batch_slots; /* whose views stand in batch; NULL: no thread's */
    size_t batch_slot_cap;
    bool *same;
    size_t same_cap;
    size_t *open; /* threads of the result that were not proven yet */
    size_t open_count, open_cap;
    /* with active_only: threads of the result that may have moved; the others need no reading */
    size_t *active;
    size_t active_count, active_cap;
    bool stood;                 /* in the last sample, no active thread had moved */
    bool active_only;           /* the next sample may be of the active threads only */
    unsigned samples_of_active; /* since all threads were read */
};

/* The slot of a thread state: an empty one when it is met for the first time.  NULL: err. */
struct prb_sampler_slot *prb_sampler_slot_for(struct prb_sampler *sampler, prb_addr tstate,
                                              struct prb_error *err);
/* NULL: it was not met. */
const struct prb_sampler_slot *prb_sampler_slot_find(const struct prb_sampler *sampler,
                                                     prb_addr tstate);
void prb_sampler_slots_free(struct prb_sampler *sampler);

#endif
