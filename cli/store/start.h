/* Starting the collector from another command. */
#ifndef PRB_CLI_STORE_START_H
#define PRB_CLI_STORE_START_H

#include <sys/types.h>

/* `probing collect --while-used` in the background, for what a process of ours records, where it
 * records it; where one runs, it ends at once.  A note where it cannot be. */
void prb_start_collector(pid_t pid);

#endif
