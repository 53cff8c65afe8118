/* The slots by which libraries call an allocator: changed and put back (libraries.c). */
#ifndef PRB_PROBE_MEMORY_LIBRARIES_H
#define PRB_PROBE_MEMORY_LIBRARIES_H

#include "inject/probe/memory/memory.h"

struct prb_memory_function {
    const char *name;
    uintptr_t hook;
    /* What a slot of that name holds when it is the program's ordinary allocator: as a call, and as
     * an address (of a program that is linked to a fixed place, its own stub).  0: not known. */
    uintptr_t real[2];
};
extern struct prb_memory_function prb_memory_functions[];
extern const unsigned prb_memory_function_count;

#endif
