/*
 * Symbols of an ELF file: by name through its hash table (generic ABI: SHT_HASH, GNU: SHT_GNU_HASH)
 * or, for what is not exported, through .symtab; by address in one pass for many addresses.
 */
#include <string.h>
#include <unistd.h>

#include "proc/elf_file.h"

/* A symbol table with its names. */
struct table {
    struct prb_bytes symbols, names;
};

static bool table_of(struct prb_elf *elf, Elf_Scn *scn, const GElf_Shdr *header, struct table *out)
{
    struct table table;
    if (!scn || !prb_elf_contents(scn, &table.symbols) ||
        !prb_elf_contents(elf_getscn(elf->handle, header->sh_link), &table.names))
        return false;
    /* Names end within the table, so that strcmp does. */
    while (table.names.len && table.names.data[table.names.len - 1])
        table.names.len--;
    *out = table;
    return table.names.len > 0;
}

static bool table_of_type(struct prb_elf *elf, unsigned type, struct table *out)
{
    GElf_Shdr header;
    Elf_Scn *scn = prb_elf_scn_of_type(elf, type, &header);
    return table_of(elf, scn, &header, out);
}

static size_t table_count(const struct table *table)
{
    return table->symbols.len / sizeof(Elf64_Sym);
}

static void table_get(const struct table *table, size_t i, Elf64_Sym *out)
{
    memcpy(out, table->symbols.data + i * sizeof *out, sizeof *out);
}

static const char *name_of(const struct table *table, const Elf64_Sym *symbol)
{
    return symbol->st_name < table->names.len ? (const char *)table->names.data + symbol->st_name
                                              : "";
}

static bool is_defined(const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) != STT_TLS;
}

static bool matches(const struct table *table, size_t i, const char *name, struct prb_symbol *out)
{
    Elf64_Sym symbol;
    if (i >= table_count(table))
        return false;
    table_get(table, i, &symbol);
    const char *its = name_of(table, &symbol);
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
static bool by_gnu_hash(const struct prb_bytes *hash, const struct table *table, const char *name,
                        struct prb_symbol *out)
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
static bool by_sysv_hash(const struct prb_bytes *hash, const struct table *table, const char *name,
                         struct prb_symbol *out)
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
    for (size_t step = table_count(table); i && step; step--) {
        if (matches(table, i, name, out))
            return true;
        i = i < chains ? word_at(hash, 2 + buckets + i) : 0;
    }
    return false;
}

static bool by_scan(const struct table *table, const char *name, struct prb_symbol *out)
{
    size_t len = strlen(name) + 1;
    for (size_t i = 1, count = table_count(table); i < count; i++) {
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
    struct table table;
    struct prb_bytes hash;
    GElf_Shdr header;
    if (!table_of_type(elf, SHT_DYNSYM, &table))
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
    struct table table;
    if (exported(elf, name, out) ||
        (table_of_type(elf, SHT_SYMTAB, &table) && by_scan(&table, name, out)) ||
        (elf->debug && table_of_type(elf->debug, SHT_SYMTAB, &table) && by_scan(&table, name, out)))
        return true;
    return prb_fail(err, PRB_NOT_FOUND, "no symbol %s", name);
}

struct prb_symbol *prb_elf_exports(struct prb_elf *elf, size_t *count_out, struct prb_error *err)
{
    struct table table = {0};
    if (!table_of_type(elf, SHT_DYNSYM, &table))
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "a library without exported symbols"));
    size_t symbols = table_count(&table), count = 0;
    struct prb_symbol *exports = malloc((symbols + 1) * sizeof *exports);
    if (!exports)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    for (size_t i = 1; i < symbols; i++) {
        Elf64_Sym symbol;
        table_get(&table, i, &symbol);
        unsigned type = ELF64_ST_TYPE(symbol.st_info);
        if (is_defined(&symbol) && (type == STT_FUNC || type == STT_GNU_IFUNC))
            exports[count++] =
                (struct prb_symbol){symbol.st_value, symbol.st_size, name_of(&table, &symbol)};
    }
    *count_out = count;
    return exports;
}

/* ---- by address ---- */

/* How well a symbol tells the function at an address: the higher the better. */
struct claim {
    bool sized;     /* it says where it ends, and covers the address */
    uint64_t value; /* the nearer its start the better */
    bool global;
    int underscores; /* fewer, for "poll" before "__GI___poll" */
};

static int underscores(const char *name) { return (int)strspn(name, "_"); }

static bool better(const struct claim *now, const struct claim *before)
{
    if (now->sized != before->sized)
        return now->sized;
    if (now->value != before->value)
        return now->value > before->value;
    if (now->global != before->global)
        return now->global;
    return now->underscores < before->underscores;
}

/* The first of ascending addrs that is not below value. */
static size_t first_from(const uint64_t *addrs, size_t count, uint64_t value)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (addrs[middle] < value)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* A symbol without a size names at most so many bytes: assembler routines. */
#define UNSIZED_MAX 65536

static bool names_code(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && !symbol->st_size));
}

/* Addresses that want names, ascending, and the best found so far. */
struct wanted {
    size_t count;
    const uint64_t *addrs;
    struct prb_symbol *symbols;
    struct claim *claims;
};

/* One symbol against the wanted addresses. */
static void name_by(const struct table *table, const Elf64_Sym *symbol, struct wanted *wanted)
{
    const uint64_t *addrs = wanted->addrs;
    uint64_t size = symbol->st_size ? symbol->st_size : UNSIZED_MAX, end;
    if (symbol->st_value > addrs[wanted->count - 1] || !names_code(symbol) ||
        __builtin_add_overflow(symbol->st_value, size, &end) || end <= addrs[0])
        return;
    size_t i = first_from(addrs, wanted->count, symbol->st_value);
    if (i == wanted->count || addrs[i] >= end)
        return;
    const char *name = name_of(table, symbol);
    struct claim claim = {symbol->st_size != 0, symbol->st_value,
                          ELF64_ST_BIND(symbol->st_info) != STB_LOCAL, underscores(name)};
    /* "$x" and the like mark kinds of code on some processors. */
    if (!*name || *name == '$')
        return;
    for (; i < wanted->count && addrs[i] < end; i++) {
        if (wanted->symbols[i].name && !better(&claim, &wanted->claims[i]))
            continue;
        wanted->claims[i] = claim;
        wanted->symbols[i] = (struct prb_symbol){symbol->st_value, symbol->st_size, name};
    }
}

/* Symbols first … of the table: read into block where the file can be read (mapping half a million
 * symbols, page by page, takes longer than copying them, and weighs on our memory), else where they
 * are mapped. */
#define BLOCK 8192
static const uint8_t *symbols_at(const struct prb_elf *elf, const struct table *table, size_t first,
                                 size_t count, uint8_t *block)
{
    const uint8_t *mapped = table->symbols.data + first * sizeof(Elf64_Sym), *image = elf->image;
    size_t len = count * sizeof(Elf64_Sym);
    bool in_file = block && image && mapped >= image && (size_t)(mapped - image) <= elf->size - len;
    if (in_file && pread(elf->fd, block, len, mapped - image) == (ssize_t)len)
        return block;
    return mapped;
}

static bool all_covered(const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (!wanted->claims[i].sized)
            return false;
    return true;
}

/* whole: look at all symbols for the best names, else only until each address is covered. */
static void name_from(struct prb_elf *elf, const struct table *table, bool whole,
                      struct wanted *wanted)
{
    size_t symbols = table_count(table);
    PRB_AUTO_FREE uint8_t *block =
        symbols > BLOCK && elf->fd >= 0 ? malloc(BLOCK * sizeof(Elf64_Sym)) : NULL;
    for (size_t first = 0; first < symbols; first += BLOCK) {
        size_t n = symbols - first < BLOCK ? symbols - first : BLOCK;
        const uint8_t *bytes = symbols_at(elf, table, first, n, block);
        for (size_t k = 0; k < n; k++) {
            Elf64_Sym symbol;
            memcpy(&symbol, bytes + k * sizeof symbol, sizeof symbol);
            name_by(table, &symbol, wanted);
        }
        if (!whole && all_covered(wanted))
            return;
    }
}

/* What is exported is in .dynsym.  The others are in .symtab, of the file or of its debug file, a
 * table many times as long: passed over for those alone that are not covered yet. */
static void name_the_others(struct prb_elf *elf, const struct wanted *all)
{
    struct prb_elf *holder = elf;
    struct table table;
    if (!table_of_type(elf, SHT_SYMTAB, &table)) {
        holder = elf->debug;
        if (!holder || !table_of_type(holder, SHT_SYMTAB, &table))
            return;
    }
    PRB_AUTO_FREE size_t *places = malloc(all->count * sizeof *places);
    PRB_AUTO_FREE uint64_t *addrs = malloc(all->count * sizeof *addrs);
    PRB_AUTO_FREE struct prb_symbol *symbols = malloc(all->count * sizeof *symbols);
    PRB_AUTO_FREE struct claim *claims = malloc(all->count * sizeof *claims);
    struct wanted others = {0, addrs, symbols, claims};
    if (!places || !addrs || !symbols || !claims)
        return;
    for (size_t i = 0; i < all->count; i++)
        if (!all->claims[i].sized) {
            places[others.count] = i;
            addrs[others.count] = all->addrs[i];
            symbols[others.count] = all->symbols[i];
            claims[others.count++] = all->claims[i];
        }
    if (others.count)
        name_from(holder, &table, false, &others);
    for (size_t k = 0; k < others.count; k++)
        all->symbols[places[k]] = symbols[k];
}

void prb_elf_name(struct prb_elf *elf, const uint64_t *addrs, size_t count, struct prb_symbol *out)
{
    memset(out, 0, count * sizeof *out);
    PRB_AUTO_FREE struct claim *claims = calloc(count ? count : 1, sizeof *claims);
    if (count == 0 || !claims)
        return;
    struct wanted wanted = {count, addrs, out, claims};
    struct table table;
    if (table_of_type(elf, SHT_DYNSYM, &table))
        name_from(elf, &table, true, &wanted);
    if (!all_covered(&wanted))
        name_the_others(elf, &wanted);
}
