/*
 * Cleanup by scope: a variable marked PRB_AUTO(type) is released when it leaves its scope,
 * whatever the way out.  Ownership leaves a guarded variable by PRB_STEAL.
 *
 *     PRB_AUTO(prb_buf) struct prb_buf text = {0};     released by prb_buf_deinit(&text)
 *     PRB_AUTO_FREE char *copy = strdup(name);         released by free()
 *     return PRB_STEAL(copy);
 *
 * A type joins with one line beside its release function: PRB_DEFINE_AUTO(prb_buf, struct
 * prb_buf, prb_buf_deinit) for caller's storage, PRB_DEFINE_AUTO_PTR(prb_elf, struct prb_elf,
 * prb_elf_free) for heap objects.
 *
 * Not installed: of this library's own headers the one that the command line uses, too.
 */
#ifndef PRB_BASE_CLEANUP_H
#define PRB_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PRB_AUTO(name) __attribute__((cleanup(prb_auto_##name)))

#define PRB_DEFINE_AUTO(name, type, release)                                                       \
    static inline void prb_auto_##name(type *guarded) { release(guarded); }

#define PRB_DEFINE_AUTO_PTR(name, type, release)                                                   \
    static inline void prb_auto_##name(type **guarded)                                             \
    {                                                                                              \
        if (*guarded)                                                                              \
            release(*guarded);                                                                     \
    }

/* The value of a guarded pointer, which is left NULL: the caller owns it now. */
#define PRB_STEAL(pointer)                                                                         \
    ({                                                                                             \
        __typeof__(pointer) stolen_ = (pointer);                                                   \
        (pointer) = NULL;                                                                          \
        stolen_;                                                                                   \
    })

static inline void prb_auto_free(void *guarded) { free(*(void **)guarded); }
#define PRB_AUTO_FREE __attribute__((cleanup(prb_auto_free)))

/* A descriptor; -1 is none. */
static inline void prb_auto_fd(int *guarded)
{
    if (*guarded >= 0)
        close(*guarded);
}
#define PRB_AUTO_FD __attribute__((cleanup(prb_auto_fd)))
/* The same as PRB_STEAL. */
#define PRB_STEAL_FD(fd)                                                                           \
    ({                                                                                             \
        int stolen_ = (fd);                                                                        \
        (fd) = -1;                                                                                 \
        stolen_;                                                                                   \
    })

PRB_DEFINE_AUTO_PTR(file, FILE, (void)fclose)
PRB_DEFINE_AUTO_PTR(dir, DIR, (void)closedir)

#endif
