/* The sampler's threads: which there are, and which may have moved since the last sample. */
#ifndef PRB_PY_SAMPLER_THREADS_H
#define PRB_PY_SAMPLER_THREADS_H

#include "py/sampler_slots.h"

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

#endif
