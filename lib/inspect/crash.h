/* The text of a crash dump that says what happened: written by crash/info.c, read by crash.c. */
#ifndef PRB_INSPECT_CRASH_H
#define PRB_INSPECT_CRASH_H

#define PRB_TEXT_CRASH "probing/crash" /* lines "KEY VALUE" */

#endif
