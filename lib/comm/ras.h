/*
 * NCCL's RAS service: a thread in each process of a job answers, for the whole job, on a TCP port of its machine.
 * NCCL 2.24 and later; JSON from 2.28.7 on, text before.  Source: NCCL user guide, "RAS", and what its client sends.
 */
#ifndef PRB_COMM_RAS_H
#define PRB_COMM_RAS_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

#define PRB_RAS_ADDRESS "localhost:28028"   /* where NCCL_RAS_ADDR is not set */
#define PRB_RAS_TEXT_MAX ((size_t)32 << 20) /* bytes of an answer */
#define PRB_RAS_ADDRESS_MAX 256             /* of NCCL_RAS_ADDR */
#define PRB_RAS_SERVER_S 5                  /* s that NCCL itself waits for a silent rank */

struct prb_ras_answer {
    bool json;
    struct prb_buf text;
};

/*
 * Ask the service at an address (as NCCL_RAS_ADDR has it; NULL: not set) of this machine, which must be of our user or
 * of this one, until a moment (monotonic s) at most.  The answer's text is anything: its port may be another's.
 * False: NOT_FOUND (nobody answers), PERMISSION (it is of another user), USAGE (no address of this machine), TIMEOUT,
 * CORRUPT (it is no RAS service, or its answer is too long).
 */
bool prb_ras_ask(const char *address, uid_t user, double until, struct prb_ras_answer *out,
                 struct prb_error *err);

#endif
