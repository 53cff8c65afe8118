/*
 * Symbols of an ELF file by name: through its hash table (generic ABI: SHT_HASH, GNU: SHT_GNU_HASH)
 * or, for what is not exported, through .symtab.
 */
#include <string.h>

#include "proc/symbol_table.h"

bool prb_symbol_table(struct prb_elf *elf, unsigned type, struct prb_symbol_table *out)
{
    GElf_Shdr header;
    struct prb_symbol_table table;
    Elf_Scn *scn = prb_elf_scn_of_type(elf, type, &header);
    if (!scn || !prb_elf_contents(scn, &table.symbols) ||
        !prb_elf_contents(elf_getscn(elf->handle, header.sh_link), &table.names))
        return false;
    while (table.names.len && table.names.data[table.names.len - 1])
        table.names.len--;
    *out = table;
    return table.names.len > 0;
}

static bool is_defined(const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) != STT_TLS;
}

static bool matches(const struct prb_symbol_table *table, size_t i, const char *name,
                    struct prb_symbol *out)
{
    Elf64_Sym symbol;
    if (i >= prb_symbol_count(table))
        return false;
    prb_symbol_get(table, i, &symbol);
    const char *its = prb_symbol_name(table, &symbol);
    if (!is_defined(&symbol) || strcmp(its, name) != 0)
        return false;
    *out = (struct prb_symbol){symbol.st_value, symbol.st_size, its};
    return true;
}

static uint32_t word_at(const struct prb_bytes *bytes, uint64_t index)
{
    uint32_t word = 0;
    if (index < bytes->len / sizeof word)
        memcpy(&word, bytes->data + index * sizeof word, sizeof word);
    return word;
}

/* Layout of .gnu.hash: 4 words of header, bloom filter of 64-bit words, buckets, hash values from
 * symbol `first` on. */
static bool by_gnu_hash(const struct prb_bytes *hash, const struct prb_symbol_table *table,
                        const char *name, struct prb_symbol *out)
{
    uint32_t h = 5381;
    for (const char *c = name; *c; c++)
        h = h * 33 + (uint8_t)*c;
    uint64_t buckets = word_at(hash, 0), first = word_at(hash, 1), bloom = word_at(hash, 2);
    uint32_t shift = word_at(hash, 3) & 31;
    if (buckets == 0 || bloom == 0)
        return false;
    uint64_t at = 4 + (h / 64 % bloom) * 2;
    uint64_t filter = word_at(hash, at) | (uint64_t)word_at(hash, at + 1) << 32;
    if (!(filter >> (h % 64) & filter >> (h >> shift) % 64 & 1))
        return false;
    uint64_t chains = 4 + bloom * 2 + buckets, words = hash->len / 4;
    uint64_t i = word_at(hash, 4 + bloom * 2 + h % buckets);
    if (i < first)
        return false;
    for (; chains + i - first < words; i++) {
        uint32_t its = word_at(hash, chains + i - first);
        if ((its | 1) == (h | 1) && matches(table, i, name, out))
            return true;
        if (its & 1)
            return false;
    }
    return false;
}

/* Layout of .hash: number of buckets, number of chains, the buckets, the chains. */
static bool by_sysv_hash(const struct prb_bytes *hash, const struct prb_symbol_table *table,
                         const char *name, struct prb_symbol *out)
{
    uint32_t h = 0;
    for (const char *c = name; *c; c++) {
        h = (h << 4) + (uint8_t)*c;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    uint64_t buckets = word_at(hash, 0), chains = word_at(hash, 1);
    if (buckets == 0)
        return false;
    uint64_t i = word_at(hash, 2 + h % buckets);
    /* A chain is no longer than there are symbols, or it loops. */
    for (size_t step = prb_symbol_count(table); i && step; step--) {
        if (matches(table, i, name, out))
            return true;
        i = i < chains ? word_at(hash, 2 + buckets + i) : 0;
    }
    return false;
}

static bool by_scan(const struct prb_symbol_table *table, const char *name, struct prb_symbol *out)
{
    size_t len = strlen(name) + 1;
    for (size_t i = 1, count = prb_symbol_count(table); i < count; i++) {
        uint32_t at;
        memcpy(&at, table->symbols.data + i * sizeof(Elf64_Sym), sizeof at);
        if (at < table->names.len && table->names.len - at >= len &&
            memcmp(table->names.data + at, name, len) == 0 && matches(table, i, name, out))
            return true;
    }
    return false;
}

static bool exported(struct prb_elf *elf, const char *name, struct prb_symbol *out)
{
    struct prb_symbol_table table;
    struct prb_bytes hash;
    GElf_Shdr header;
    if (!prb_symbol_table(elf, SHT_DYNSYM, &table))
        return false;
    if (prb_elf_contents(prb_elf_scn_of_type(elf, SHT_GNU_HASH, &header), &hash))
        return by_gnu_hash(&hash, &table, name, out);
    if (prb_elf_contents(prb_elf_scn_of_type(elf, SHT_HASH, &header), &hash))
        return by_sysv_hash(&hash, &table, name, out);
    return by_scan(&table, name, out);
}

bool prb_elf_symbol(struct prb_elf *elf, const char *name, struct prb_symbol *out,
                    struct prb_error *err)
{
    struct prb_symbol_table table;
    if (exported(elf, name, out) ||
        (prb_symbol_table(elf, SHT_SYMTAB, &table) && by_scan(&table, name, out)) ||
        (elf->debug && prb_symbol_table(elf->debug, SHT_SYMTAB, &table) &&
         by_scan(&table, name, out)))
        return true;
    return prb_fail(err, PRB_NOT_FOUND, "no symbol %s", name);
}

struct prb_symbol *prb_elf_exports(struct prb_elf *elf, size_t *count_out, struct prb_error *err)
{
    struct prb_symbol_table table = {0};
    if (!prb_symbol_table(elf, SHT_DYNSYM, &table))
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "a library without exported symbols"));
    size_t symbols = prb_symbol_count(&table), count = 0;
    struct prb_symbol *exports = malloc((symbols + 1) * sizeof *exports);
    if (!exports)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    for (size_t i = 1; i < symbols; i++) {
        Elf64_Sym symbol;
        prb_symbol_get(&table, i, &symbol);
        unsigned type = ELF64_ST_TYPE(symbol.st_info);
        if (is_defined(&symbol) && (type == STT_FUNC || type == STT_GNU_IFUNC))
            exports[count++] = (struct prb_symbol){symbol.st_value, symbol.st_size,
                                                   prb_symbol_name(&table, &symbol)};
    }
    *count_out = count;
    return exports;
}
