/*
 * A view: the pieces of target memory that one walk touches, read together and read again
 * together.
 *
 * A walk that follows pointers through a running process mixes moments.  So a walk reads through a
 * view: what it touches is fetched once (a unit at a time) and remembered. prb_view_refresh() then
 * reads exactly the touched spans again, in as few system calls as possible, and a second walk over
 * the same view costs no system call at all when the first one was right.  Two equal walks prove
 * what was read.  The spans of the last walk also serve the next sample, which is why a warm sample
 * of all threads is two calls.
 */
#ifndef PRB_MEM_VIEW_H
#define PRB_MEM_VIEW_H

#include "mem/mem.h"

struct prb_view;

/*
 * mem stays the caller's.  unit: how many bytes are fetched at a time, a power of two from 64 to
 * PRB_VIEW_UNIT_MAX.  Small where few bytes of each page are needed: what is not fetched is neither
 * copied nor takes memory.
 */
#define PRB_VIEW_UNIT_MAX 4096u
struct prb_view *prb_view_new(struct prb_mem *mem, unsigned unit, struct prb_error *err);
/* Forget everything, and fetch so many bytes at a time from now on. */
void prb_view_set_unit(struct prb_view *view, unsigned unit);
void prb_view_free(struct prb_view *view);
PRB_DEFINE_AUTO_PTR(prb_view, struct prb_view, prb_view_free)

/* len bytes at addr, valid until the next call on this view; NULL when they cannot be read.  len
 * at most PRB_VIEW_MAX. */
#define PRB_VIEW_MAX 65536
const void *prb_view_get(struct prb_view *view, prb_addr addr, size_t len);
/* Little-endian words; false when they cannot be read. */
bool prb_view_u64(struct prb_view *view, prb_addr addr, uint64_t *out);
/* Announce that [addr, addr + len) will be needed, so that the next refresh or fetch reads it in
 * the same call. */
void prb_view_prefetch(struct prb_view *view, prb_addr addr, size_t len);
/*
 * Read the spans touched since the last refresh again, several views (one for each thread, all
 * of one source) in a common call.  *same_out (may be NULL), count long: whether the bytes that
 * the last walk over each view touched (and those between, page by page) are what it saw; a
 * difference may lie in bytes that mean nothing to the walk. With no walk since the last
 * refresh, the same spans are read and compared again.  A page that two walks in a row did not
 * touch is forgotten.  False only when the source is lost.
 */
bool prb_view_refresh(struct prb_view *const *views, size_t count, bool *same_out,
                      struct prb_error *err);
/* In a common refresh its bytes are read after those of all views that are not late. */
void prb_view_read_late(struct prb_view *view);
/* How many bytes it has. */
size_t prb_view_bytes(const struct prb_view *view);
/* Forget everything. */
void prb_view_clear(struct prb_view *view);

#endif
