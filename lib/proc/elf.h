/*
 * ELF files of the target, and modules: files at their place in memory. Everything in a file is
 * hostile, and may change or be cut short while it is read: then less is found, no more.
 */
#ifndef PRB_PROC_ELF_H
#define PRB_PROC_ELF_H

#include "proc/proc.h"

struct prb_elf;

/* Takes fd, also on failure.  name is for messages.  Errors: CORRUPT (no ELF), UNSUPPORTED
 * (other class, byte order or machine), IO (it cannot be read), NOMEM. */
struct prb_elf *prb_elf_open(int fd, const char *name, struct prb_error *err);
void prb_elf_free(struct prb_elf *elf);
PRB_DEFINE_AUTO_PTR(prb_elf, struct prb_elf, prb_elf_free)

/* An ELF file's own addresses below are "file addresses": add the module's bias for the
 * target's. */
struct prb_symbol {
    uint64_t value, size; /* file address, bytes (0: unknown) */
    const char *name;     /* borrowed from the elf; mangled */
};

/* Find a defined symbol by name: .dynsym by its hash table first, then .symtab.  False
 * (NOT_FOUND) when there is none. */
bool prb_elf_symbol(struct prb_elf *elf, const char *name, struct prb_symbol *out,
                    struct prb_error *err);
/* The same for many names, in one pass over each table: out[i].name is NULL where there is none.
 * Fails only with NOMEM. */
bool prb_elf_symbols(struct prb_elf *elf, const char *const *names, size_t count,
                     struct prb_symbol *out, struct prb_error *err);
/* The functions that a file exports, in the order of its table; freed by the caller, the names
 * borrowed from the elf. */
struct prb_symbol *prb_elf_exports(struct prb_elf *elf, size_t *count_out, struct prb_error *err);
/* Name many addresses in one pass: addrs ascending; out[i].name NULL where no function covers
 * addrs[i]. */
void prb_elf_name(struct prb_elf *elf, const uint64_t *addrs, size_t count, struct prb_symbol *out);
/* A section by name: its file address and size. */
bool prb_elf_section(struct prb_elf *elf, const char *name, uint64_t *addr_out, uint64_t *size_out);
/* Program header PT_GNU_EH_FRAME: where .eh_frame_hdr lies. */
bool prb_elf_eh_frame_hdr(struct prb_elf *elf, uint64_t *addr_out, uint64_t *size_out);
/* GNU build id: its length (0: none), bytes to out. */
size_t prb_elf_build_id(struct prb_elf *elf, uint8_t out[64]);
/* What to add to file addresses when the file's bytes at file_offset are mapped at addr, as code or
 * not. */
bool prb_elf_bias(struct prb_elf *elf, prb_addr addr, uint64_t file_offset, bool executable,
                  uint64_t *bias_out);

/* One file with code mapped in the target. */
struct prb_module {
    const char *path;            /* as the target sees it */
    prb_addr start, end;         /* first and last byte + 1 of its maps */
    const struct prb_map *first; /* its first map */
    uint64_t bias;               /* valid once prb_modules_elf opened it */
    struct prb_elf *elf;         /* opened on first use */
    bool tried;
};

struct prb_modules {
    struct prb_proc *proc;
    struct prb_module *items; /* ascending start; one file mapped twice is two modules */
    size_t count;
    uint64_t code;          /* a sum over the maps of files with code: where, and what */
    struct prb_arena arena; /* paths and first maps: a refresh of proc's maps leaves them valid */
};

/* Group the maps of a process into modules; borrows proc.  Where the maps have not been read, and
 * the kernel can be asked for those with code alone, a module's maps are these. */
bool prb_modules_init(struct prb_modules *modules, struct prb_proc *proc, struct prb_error *err);
void prb_modules_deinit(struct prb_modules *modules);
PRB_DEFINE_AUTO(prb_modules, struct prb_modules, prb_modules_deinit)
struct prb_module *prb_modules_find(struct prb_modules *modules, prb_addr addr);
/* The ELF file of a module, opened on first use and kept open; NULL with err when it cannot be
 * opened. */
struct prb_elf *prb_modules_elf(struct prb_modules *modules, struct prb_module *module,
                                struct prb_error *err);

#endif
