/* The inside of struct prb_elf, for the files that read ELF: elf.c, symbol.c, module.c, the core
 * reader. */
#ifndef PRB_PROC_ELF_FILE_H
#define PRB_PROC_ELF_FILE_H

#include <gelf.h>

#include "proc/elf.h"
#include "proc/symbol_index.h"

/* How often a symbol table was passed over for names, and the index that then saves the passes. */
struct prb_symbol_passes {
    unsigned count;
    bool tried; /* whether there can be an index */
    struct prb_symbol_index index;
};

struct prb_elf {
    void *image; /* the whole file */
    size_t size;
    int fd; /* the file, for passes over more of it than is worth mapping */
    Elf *handle;
    struct prb_symbol_passes exported, all; /* of .dynsym and .symtab */
    struct prb_elf *debug; /* its separate debug file, or NULL; owned */
};

struct prb_bytes {
    const uint8_t *data;
    size_t len;
};

/* The first section of a type, or NULL. */
Elf_Scn *prb_elf_scn_of_type(struct prb_elf *elf, unsigned type, GElf_Shdr *header);
/* What is in a section of the file, as it lies there; false when nothing is. */
bool prb_elf_contents(Elf_Scn *scn, struct prb_bytes *out);
/* Where symbols are looked for after the file's own tables: owned by elf from now on. */
void prb_elf_add_debug(struct prb_elf *elf, struct prb_elf *debug);

/* Whether [offset, offset + len) of the file lies (also) in a segment that is written to, page by
 * page. */
bool prb_elf_written(struct prb_elf *elf, uint64_t offset, uint64_t len);

/* A note, elf(5), "Notes". */
struct prb_note {
    uint32_t type;
    const char *name; /* not terminated */
    size_t name_len;
    const uint8_t *desc;
    size_t desc_len;
};
/* The note at *at, which moves behind it; false at the end, or where the bytes make no sense. */
bool prb_note_next(const uint8_t *notes, size_t size, size_t *at, struct prb_note *out);
bool prb_note_is(const struct prb_note *note, const char *name, uint32_t type);
/* The build id among notes: its length, or 0. */
size_t prb_note_build_id(const uint8_t *notes, size_t size, uint8_t out[64]);

#endif
