/* The step that a job is at, by what its probe records while probing.torch is on. */
#ifndef PRB_TABLE_RECORDED_LAST_STEP_H
#define PRB_TABLE_RECORDED_LAST_STEP_H

#include <stdint.h>
#include <sys/types.h>

struct prb_step_reader;

/* started: field 22 of proc_pid_stat(5).  NULL: out of memory. */
struct prb_step_reader *prb_step_reader_new(pid_t pid, uint64_t started);
void prb_step_reader_free(struct prb_step_reader *reader);
/* The last step that ended; -1: none was recorded. */
int64_t prb_step_reader_last(struct prb_step_reader *reader);

#endif
