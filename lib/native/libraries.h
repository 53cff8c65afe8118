/*
 * libunwind and libdw (with libelf, which it needs), opened when the first native stack is
 * walked or named (base/lazy.h).  Both NULL with UNSUPPORTED when they cannot be.
 */
#ifndef PRB_NATIVE_LIBRARIES_H
#define PRB_NATIVE_LIBRARIES_H

#define UNW_REMOTE_ONLY
#include <elfutils/libdw.h>
#include <libunwind.h>

#include "base/lazy.h"

/* Declared by no header of libunwind's, exported for users with accessors of their own. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *info,
                                       unw_proc_info_t *proc, int need_info, void *arg);

#define PRB_UNWIND_FUNCTIONS(F)                                                                    \
    F(unw_create_addr_space)                                                                       \
    F(unw_destroy_addr_space)                                                                      \
    F(unw_flush_cache)                                                                             \
    F(unw_get_reg)                                                                                 \
    F(unw_get_save_loc)                                                                            \
    F(unw_init_remote)                                                                             \
    F(unw_set_cache_size)                                                                          \
    F(unw_set_caching_policy)                                                                      \
    F(unw_step)                                                                                    \
    F(UNW_OBJ(dwarf_search_unwind_table))

/* Functions that are handed to it, of any version: those behind what its header has are NULL. */
#define PRB_ACCESSORS_MAX 32

struct prb_libunwind {
    PRB_UNWIND_FUNCTIONS(PRB_LAZY_POINTER)
};
const struct prb_libunwind *prb_libunwind(struct prb_error *err);

#define PRB_DWARF_FUNCTIONS(F)                                                                     \
    F(dwarf_addrdie)                                                                               \
    F(dwarf_attr)                                                                                  \
    F(dwarf_begin_elf)                                                                             \
    F(dwarf_end)                                                                                   \
    F(dwarf_filesrc)                                                                               \
    F(dwarf_formudata)                                                                             \
    F(dwarf_get_units)                                                                             \
    F(dwarf_getscopes)                                                                             \
    F(dwarf_getsrc_die)                                                                            \
    F(dwarf_getsrcfiles)                                                                           \
    F(dwarf_haspc)                                                                                 \
    F(dwarf_lineno)                                                                                \
    F(dwarf_linesrc)                                                                               \
    F(dwarf_tag)                                                                                   \
    F(elf_end)                                                                                     \
    F(elf_memory)                                                                                  \
    F(elf_version)

struct prb_libdw {
    PRB_DWARF_FUNCTIONS(PRB_LAZY_POINTER)
};
const struct prb_libdw *prb_libdw(struct prb_error *err);

#endif
