/* How the collector samples the stacks that it keeps (python.stack_samples): who writes the rows and who
 * makes a profile of them share it. */
#ifndef PRB_PROFILE_KEPT_H
#define PRB_PROFILE_KEPT_H

#define PRB_KEPT_RATE 10.0    /* looks a second, on average; of the GIL's holder, too */
#define PRB_KEPT_SECONDS 10.0 /* between two writings: so long a row stands for, at most */

#endif
