/*
 * The sampler's memory, shared by threads.c (which threads there are, and which may have moved) and
 * sampler.c (their frame chains, read until they are proven).
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

/* ---- threads.c ---- */
/* Read the interpreters, and say which slots of the last sample need not be read again
 * (slot->unmoved). */
bool prb_sampler_interpreters(struct prb_sampler *sampler, struct prb_error *err);
/* With sampler->active_only: whether all threads but the active ones are still unmoved, and the list
 * of threads is the same.  Threads that are unmoved now are no longer active.  False: all must be
 * read. */
bool prb_sampler_others_unmoved(struct prb_sampler *sampler);
/* After a sample: whether the next one may ask that. */
bool prb_sampler_choose_active(struct prb_sampler *sampler);
/* The GIL's next state proves nothing about what was read before. */
void prb_sampler_forget_gil(struct prb_sampler *sampler);
/* Follow the thread lists: result.threads and slot_of_thread.  *whole: their ends were reached. */
bool prb_sampler_threads(struct prb_sampler *sampler, bool *whole, struct prb_error *err);
/*
 * A list that is followed while threads begin and end may seem to end early: a thread state that
 * was freed and is used again has no next one yet.  The list is whole if its first thread is still
 * reached from the head, and if then its threads still have the same next ones.  Ask in this order,
 * and read the threads between: a thread state gets its next one before the head leads to it.
 */
bool prb_sampler_heads_stand(struct prb_sampler *sampler);
bool prb_sampler_threads_lead_on(const struct prb_sampler *sampler);
void prb_sampler_slots_free(struct prb_sampler *sampler);

#endif
