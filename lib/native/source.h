/* Source lines of native code from its debug information (elfutils' libdw does the reading). */
#ifndef PRB_NATIVE_SOURCE_H
#define PRB_NATIVE_SOURCE_H

#include "proc/elf.h"

struct prb_source;

/* The debug information of a file of the process: in the file itself, or in the separate one by its
 * build id.  It is copied: what its owner does to the file meanwhile harms nobody.  NULL: there is
 * none, or more than prb_elf_debug_image() copies. */
struct prb_source *prb_source_open(struct prb_proc *proc, struct prb_elf *elf);
void prb_source_close(struct prb_source *source);
/* File (from the arena) and line of an address in the file; NULL and 0 when unknown. */
void prb_source_line(struct prb_source *source, uint64_t addr, struct prb_arena *arena,
                     const char **file_out, int *line_out);

#endif
