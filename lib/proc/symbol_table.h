/* A symbol table of an ELF file, for the two that read it: symbol.c and symbol_name.c. */
#ifndef PRB_PROC_SYMBOL_TABLE_H
#define PRB_PROC_SYMBOL_TABLE_H

#include "proc/elf_file.h"

struct prb_symbol_table {
    struct prb_extent symbols, names;
};

/* The table of that type (SHT_DYNSYM, SHT_SYMTAB); false: the file has none. */
bool prb_symbol_table(struct prb_elf *elf, unsigned type, struct prb_symbol_table *out);

static inline size_t prb_symbol_count(const struct prb_symbol_table *table)
{
    return (size_t)(table->symbols.len / sizeof(Elf64_Sym));
}

/* One symbol; false: it cannot be read. */
static inline bool prb_symbol_get(struct prb_elf *elf, const struct prb_symbol_table *table,
                                  size_t i, Elf64_Sym *out)
{
    return prb_elf_read(elf, table->symbols.offset + i * sizeof *out, out, sizeof *out) ==
           sizeof *out;
}

/* Many symbols at a time, into a block of the caller's. */
#define PRB_SYMBOL_BLOCK 1024
/* Symbols first … of the table: how many came. */
size_t prb_symbol_block(const struct prb_elf *elf, const struct prb_symbol_table *table,
                        size_t first, Elf64_Sym block[PRB_SYMBOL_BLOCK]);

#endif
