/*
 * Descriptors that a child must not keep: of a job's sockets, of pipes of whoever called us.
 * By close_range(2); before Linux 5.9 (5.11 for those that close on exec) one by one.
 */
#ifndef PRB_BASE_DESCRIPTORS_H
#define PRB_BASE_DESCRIPTORS_H

#include <stdbool.h>

/* Close first to last.  Also for a child that shares memory with its parent: neither errno nor a
 * lock of libc is touched.  False: some stay open, as there is no /proc. */
bool prb_close_descriptors(unsigned first, unsigned last);

/* Those of first and above close when another program is executed.  False: as above. */
bool prb_close_on_exec(unsigned first);

#endif
