/*
 * Samples the stacks of all Python threads.
 *
 * A sampler reads every frame chain twice and says whether the two readings agree.  It saves the
 * pages that it read, so the next sample of the same threads takes two system calls, and it reads
 * only threads that may have had the GIL since: while one thread keeps the GIL, a sample costs as
 * much as that one thread, and one system call if it stands.
 */
#ifndef PRB_PY_SAMPLER_H
#define PRB_PY_SAMPLER_H

#include "proc/proc.h"
#include "py/stack.h"

struct prb_sampler;

/* proc: the process that py lives in, for threads that never stand still (proc/same_cpu.h); NULL:
 * not known. */
struct prb_sampler *prb_sampler_new(struct prb_py *py, struct prb_proc *proc,
                                    struct prb_error *err);
void prb_sampler_free(struct prb_sampler *sampler);
PRB_DEFINE_AUTO_PTR(prb_sampler, struct prb_sampler, prb_sampler_free)
/* Before the first sample: it is the first of many. */
void prb_sampler_expect_many(struct prb_sampler *sampler);
/* One sample of all threads.  The result is borrowed until the next call. tries_max: readings of
 * one thread before it is called unstable (0: PRB_TRIES, some of them from its own CPU); 1 reads
 * once and proves nothing (stopped targets, cores). */
#define PRB_TRIES 800
const struct prb_raw_stacks *prb_sampler_take(struct prb_sampler *sampler, unsigned tries_max,
                                              struct prb_error *err);
/* Give the memory back that was read through, for a caller that may take no other sample: the next
 * one begins anew.  The result stays. */
void prb_sampler_rest(struct prb_sampler *sampler);
/* The result of the last take, for callers that need the same reading; empty before the first. */
const struct prb_raw_stacks *prb_sampler_last(const struct prb_sampler *sampler);
/* Read one thread's frames once more, for a caller that has stopped it: the result replaces the
 * thread's in place. */
bool prb_sampler_reread(struct prb_sampler *sampler, size_t thread, struct prb_error *err);
/* The same of a thread that was not stopped: whether its frames are those of the result before;
 * exactly: the innermost one's instruction and the anchors, too. */
bool prb_sampler_unchanged(struct prb_sampler *sampler, size_t thread, bool exactly);
/* What is to be compared when no stack moves is read in the same system call, after the stacks:
 * code (all of py's source), the caller's. */
void prb_sampler_read_along(struct prb_sampler *sampler, struct prb_view *view);
/* Where trait anchor is CFRAMES the anchors cost reads of their own: ask for them. */
void prb_sampler_want_anchors(struct prb_sampler *sampler, bool want);

#endif
