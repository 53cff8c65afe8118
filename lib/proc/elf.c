/*
 * ELF files, read with pread(2) into memory of our own.
 *
 * The file belongs to somebody who may write to it or cut it short while we read.  So we never map
 * it (reading behind the new end would raise SIGBUS), and read each value once, check it, then use
 * it. libelf does not help: it keeps a mapping, or trusts what it reads twice.  We read contents in
 * small windows: a look-up needs a few bytes of many megabytes.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "arch/arch.h"
#include "base/file.h"
#include "proc/elf_file.h"

/* Sections and program headers of one file. */
#define SECTIONS_MAX 65536
#define SEGMENTS_MAX 4096
#define NOTES_MAX 65536         /* bytes of notes in one segment */
#define STRING_MAX (1u << 20)   /* bytes of a name */
#define DEBUG_MAX (1024u << 20) /* bytes of debug information of one file */
#define DEBUG_SECTIONS_MAX 64

/* ---- bytes ---- */

/* What the file holds from there on, as far as the window reaches; until the next call. */
static const uint8_t *window_at(struct prb_elf *elf, uint64_t offset, size_t *len_out)
{
    uint64_t number = offset / PRB_ELF_WINDOW + 1;
    size_t slot = number % PRB_ELF_WINDOWS, within = offset % PRB_ELF_WINDOW;
    if (offset >= elf->size)
        return NULL;
    if (!elf->windows[slot] && !(elf->windows[slot] = malloc(PRB_ELF_WINDOW)))
        return NULL;
    if (elf->numbers[slot] != number) {
        elf->lens[slot] =
            (uint16_t)prb_read_at(elf->fd, elf->windows[slot], PRB_ELF_WINDOW, offset - within);
        elf->numbers[slot] = number;
    }
    if (within >= elf->lens[slot])
        return NULL;
    *len_out = elf->lens[slot] - within;
    return elf->windows[slot] + within;
}

size_t prb_elf_read(struct prb_elf *elf, uint64_t offset, void *out, size_t len)
{
    size_t done = 0, part;
    while (done < len && offset <= UINT64_MAX - len) {
        const uint8_t *bytes = window_at(elf, offset + done, &part);
        if (!bytes)
            break;
        part = part < len - done ? part : len - done;
        memcpy((char *)out + done, bytes, part);
        done += part;
    }
    return done;
}

bool prb_elf_string_is(struct prb_elf *elf, const struct prb_extent *strings, uint64_t at,
                       const char *text)
{
    size_t len = strlen(text) + 1, part;
    if (at >= strings->len || len > strings->len - at)
        return false;
    for (size_t done = 0; done < len; done += part) {
        const uint8_t *bytes = window_at(elf, strings->offset + at + done, &part);
        if (!bytes)
            return false;
        part = part < len - done ? part : len - done;
        if (memcmp(bytes, text + done, part) != 0)
            return false;
    }
    return true;
}

const char *prb_elf_string(struct prb_elf *elf, const struct prb_extent *strings, uint64_t at)
{
    uint64_t room = at < strings->len ? strings->len - at : 0;
    size_t len = 0, part;
    bool ends = false;
    while (!ends && len < room && len < STRING_MAX) {
        const uint8_t *bytes = window_at(elf, strings->offset + at + len, &part);
        if (!bytes)
            return NULL;
        part = part < room - len ? part : (size_t)(room - len);
        size_t n = strnlen((const char *)bytes, part);
        ends = n < part;
        len += n;
    }
    char *text = ends ? prb_arena_alloc(&elf->arena, len + 1) : NULL;
    /* Read again, so it may be another one now: it ends all the same. */
    if (!text || prb_elf_read(elf, strings->offset + at, text, len) != len)
        return NULL;
    text[len] = '\0';
    return text;
}

/* ---- headers ---- */

/* count entries of a table of headers, as far as the file reaches; NULL: none. */
static void *read_table(const struct prb_elf *elf, uint64_t offset, size_t entry, uint64_t count,
                        size_t *count_out)
{
    *count_out = 0;
    if (offset == 0 || offset >= elf->size)
        return NULL;
    uint64_t most = (elf->size - offset) / entry;
    size_t wanted = (size_t)(count < most ? count : most);
    void *table = wanted ? malloc(wanted * entry) : NULL;
    if (table)
        *count_out = prb_read_at(elf->fd, table, wanted * entry, offset) / entry;
    return table;
}

/* Counts that do not fit the file's header stand in the first section's (elf(5)). */
static void read_headers(struct prb_elf *elf, const Elf64_Ehdr *header)
{
    Elf64_Shdr first = {0};
    bool sections = header->e_shentsize == sizeof first && header->e_shoff;
    if (sections && prb_elf_read(elf, header->e_shoff, &first, sizeof first) != sizeof first)
        sections = false;
    uint64_t count = header->e_shnum ? header->e_shnum : first.sh_size;
    if (sections && count <= SECTIONS_MAX)
        elf->sections = read_table(elf, header->e_shoff, sizeof first, count, &elf->section_count);
    elf->section_names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    count = header->e_phnum == PN_XNUM && sections ? first.sh_info : header->e_phnum;
    if (header->e_phentsize == sizeof(Elf64_Phdr))
        elf->segments =
            read_table(elf, header->e_phoff, sizeof(Elf64_Phdr),
                       count < SEGMENTS_MAX ? count : SEGMENTS_MAX, &elf->segment_count);
}

static bool check_header(const Elf64_Ehdr *header, const char *name, struct prb_error *err)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_VERSION] != EV_CURRENT)
        return prb_fail(err, PRB_CORRUPT, "%s is not an ELF file", name);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        !prb_arch_find(header->e_machine))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "%s is an ELF file for another machine (number %u, %s bits)", name,
                        header->e_machine, header->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32");
    return true;
}

struct prb_elf *prb_elf_open(int fd, const char *name, struct prb_error *err)
{
    PRB_AUTO_FD int guarded = fd;
    struct stat info;
    if (fstat(guarded, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < EI_NIDENT)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "%s is not an ELF file", name));
    PRB_AUTO(prb_elf) struct prb_elf *elf = calloc(1, sizeof *elf);
    if (!elf)
        return PRB_NULL(prb_nomem(err));
    elf->fd = PRB_STEAL_FD(guarded);
    elf->size = (uint64_t)info.st_size;
    Elf64_Ehdr header = {0};
    errno = 0;
    size_t got = prb_elf_read(elf, 0, &header, sizeof header);
    if (!got && errno)
        return PRB_NULL(prb_fail_sys(err, errno, "cannot read %s", name));
    if (!check_header(&header, name, err))
        return NULL;
    if (got < sizeof header)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "%s is not an ELF file", name));
    read_headers(elf, &header);
    return PRB_STEAL(elf);
}

void prb_elf_free(struct prb_elf *elf)
{
    if (!elf)
        return;
    prb_elf_free(elf->debug);
    prb_symbol_index_deinit(&elf->exported.index);
    prb_symbol_index_deinit(&elf->all.index);
    prb_arena_deinit(&elf->arena);
    for (size_t i = 0; i < PRB_ELF_WINDOWS; i++)
        free(elf->windows[i]);
    free(elf->sections);
    free(elf->segments);
    if (elf->fd >= 0)
        close(elf->fd);
    free(elf);
}

void prb_elf_add_debug(struct prb_elf *elf, struct prb_elf *debug)
{
    prb_elf_free(elf->debug);
    elf->debug = debug;
}

/* ---- sections ---- */

const Elf64_Shdr *prb_elf_of_type(const struct prb_elf *elf, unsigned type)
{
    for (size_t i = 1; i < elf->section_count; i++)
        if (elf->sections[i].sh_type == type)
            return &elf->sections[i];
    return NULL;
}

const Elf64_Shdr *prb_elf_section_at(const struct prb_elf *elf, size_t number)
{
    return number && number < elf->section_count ? &elf->sections[number] : NULL;
}

/* Where it lies, packed or not. */
static bool extent_of(const struct prb_elf *elf, const Elf64_Shdr *section, struct prb_extent *out)
{
    if (!section || section->sh_type == SHT_NOBITS || !section->sh_size ||
        section->sh_offset > elf->size || section->sh_size > elf->size - section->sh_offset)
        return false;
    *out = (struct prb_extent){section->sh_offset, section->sh_size};
    return true;
}

bool prb_elf_contents(const struct prb_elf *elf, const Elf64_Shdr *section, struct prb_extent *out)
{
    return extent_of(elf, section, out) && !(section->sh_flags & SHF_COMPRESSED);
}

bool prb_elf_section(struct prb_elf *elf, const char *name, uint64_t *addr_out, uint64_t *size_out)
{
    struct prb_extent names;
    if (!prb_elf_contents(elf, prb_elf_section_at(elf, elf->section_names), &names))
        return false;
    for (size_t i = 1; i < elf->section_count; i++)
        if (prb_elf_string_is(elf, &names, elf->sections[i].sh_name, name)) {
            *addr_out = elf->sections[i].sh_addr;
            *size_out = elf->sections[i].sh_size;
            return true;
        }
    return false;
}

/* ---- debug information ---- */

struct debug_section {
    Elf64_Shdr header;
    struct prb_extent from;
    char name[24];
};

/* The sections that give lines.  Not .gnu_debugaltlink: libdw would open and map the file that it
 * names. */
static bool is_wanted(const char *name)
{
    static const char *const wanted[] = {"abbrev", "addr",        "aranges", "info",
                                         "line",   "line_str",    "ranges",  "rnglists",
                                         "str",    "str_offsets", "types"};
    /* .zdebug_…: packed in the old way. */
    name += strncmp(name, ".z", 2) == 0 ? 2 : 1;
    for (size_t i = 0; strncmp(name, "debug_", 6) == 0 && i < sizeof wanted / sizeof *wanted; i++)
        if (strcmp(name + 6, wanted[i]) == 0)
            return true;
    return false;
}

static size_t find_debug(struct prb_elf *elf, struct debug_section out[DEBUG_SECTIONS_MAX])
{
    struct prb_extent names;
    size_t count = 0;
    if (!prb_elf_contents(elf, prb_elf_section_at(elf, elf->section_names), &names))
        return 0;
    for (size_t i = 1; i < elf->section_count && count < DEBUG_SECTIONS_MAX; i++) {
        struct debug_section *one = &out[count];
        uint32_t at = elf->sections[i].sh_name;
        if (at >= names.len || !extent_of(elf, &elf->sections[i], &one->from))
            continue;
        size_t room = names.len - at < sizeof one->name ? names.len - at : sizeof one->name;
        size_t got = prb_elf_read(elf, names.offset + at, one->name, room);
        if (one->name[0] != '.' || strnlen(one->name, got) == got || !is_wanted(one->name))
            continue;
        one->header = elf->sections[i];
        count++;
    }
    return count;
}

#define ALIGNED(n) (((n) + 15) & ~UINT64_C(15))

void *prb_elf_debug_image(struct prb_elf *elf, size_t *len_out)
{
    struct debug_section found[DEBUG_SECTIONS_MAX];
    size_t count = find_debug(elf, found);
    Elf64_Ehdr head;
    if (!count || prb_elf_read(elf, 0, &head, sizeof head) != sizeof head)
        return NULL;
    /* The header, the sections, their names, the table of sections: number 0 and the last are not
     * debug information. */
    uint64_t len = ALIGNED(sizeof head);
    for (size_t i = 0; i < count; i++) {
        found[i].header.sh_offset = len;
        if (found[i].from.len > DEBUG_MAX || (len += ALIGNED(found[i].from.len)) > DEBUG_MAX)
            return NULL;
    }
    uint64_t names = len, table = names + (count + 2) * sizeof found->name;
    len = table + (count + 2) * sizeof(Elf64_Shdr);
    PRB_AUTO_FREE uint8_t *image = calloc(1, (size_t)len);
    if (!image)
        return NULL;
    Elf64_Shdr *headers = (Elf64_Shdr *)(void *)(image + table);
    for (size_t i = 0; i < count; i++) {
        struct debug_section *one = &found[i];
        if (prb_read_at(elf->fd, image + one->header.sh_offset, (size_t)one->from.len,
                        one->from.offset) != one->from.len)
            return NULL;
        one->header.sh_name = (uint32_t)((i + 1) * sizeof one->name);
        memcpy(image + names + one->header.sh_name, one->name, sizeof one->name);
        headers[i + 1] = one->header;
    }
    headers[count + 1] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = table - names, .sh_addralign = 1};
    head.e_phoff = head.e_phnum = 0;
    head.e_shoff = table;
    head.e_shentsize = sizeof *headers;
    head.e_shnum = (uint16_t)(count + 2);
    head.e_shstrndx = (uint16_t)(count + 1);
    memcpy(image, &head, sizeof head);
    *len_out = (size_t)len;
    return PRB_STEAL(image);
}

/* ---- program headers ---- */

bool prb_elf_eh_frame_hdr(struct prb_elf *elf, uint64_t *addr_out, uint64_t *size_out)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *header = &elf->segments[i];
        if (header->p_type == PT_GNU_EH_FRAME) {
            *addr_out = header->p_vaddr;
            *size_out = header->p_memsz;
            return true;
        }
    }
    return false;
}

bool prb_elf_bias(struct prb_elf *elf, prb_addr addr, uint64_t file_offset, bool executable,
                  uint64_t *bias_out)
{
    const uint64_t page = 4096;
    bool found = false;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *header = &elf->segments[i];
        uint64_t end;
        if (header->p_type != PT_LOAD ||
            __builtin_add_overflow(header->p_offset, header->p_filesz, &end))
            continue;
        /* The kernel maps whole pages, so a map begins at or before what the header says, and the
         * page where one segment ends and the next begins is in both. */
        bool fits = executable == ((header->p_flags & PF_X) != 0);
        if (file_offset < header->p_offset / page * page || file_offset >= end || (found && !fits))
            continue;
        *bias_out = addr - (header->p_vaddr - header->p_offset + file_offset);
        found = true;
        if (fits)
            break;
    }
    return found;
}

bool prb_elf_written(struct prb_elf *elf, uint64_t offset, uint64_t len)
{
    const uint64_t page = 4096;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *header = &elf->segments[i];
        uint64_t end;
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W) ||
            __builtin_add_overflow(header->p_offset, header->p_filesz, &end))
            continue;
        if (offset < end && len > 0 && header->p_offset / page * page <= offset + (len - 1))
            return true;
    }
    return false;
}

size_t prb_elf_build_id(struct prb_elf *elf, uint8_t out[64])
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *header = &elf->segments[i];
        if (header->p_type != PT_NOTE || header->p_offset > elf->size ||
            header->p_filesz > elf->size - header->p_offset)
            continue;
        size_t len = header->p_filesz < NOTES_MAX ? (size_t)header->p_filesz : NOTES_MAX;
        PRB_AUTO_FREE uint8_t *notes = malloc(len + 1);
        size_t n =
            notes ? prb_note_build_id(notes, prb_elf_read(elf, header->p_offset, notes, len), out)
                  : 0;
        if (n)
            return n;
    }
    return 0;
}

/* ---- notes ---- */

bool prb_note_next(const uint8_t *notes, size_t size, size_t *at, struct prb_note *out)
{
    Elf64_Nhdr header;
    if (*at > size || size - *at < sizeof header)
        return false;
    memcpy(&header, notes + *at, sizeof header);
    /* Sizes are 32-bit and the sums 64-bit: no overflow. */
    uint64_t name = *at + sizeof header;
    uint64_t desc = (name + header.n_namesz + 3) / 4 * 4;
    uint64_t end = desc + header.n_descsz;
    if (end > size)
        return false;
    *out = (struct prb_note){
        .type = header.n_type,
        .name = (const char *)notes + name,
        .name_len = header.n_namesz && notes[name + header.n_namesz - 1] == 0 ? header.n_namesz - 1
                                                                              : header.n_namesz,
        .desc = notes + desc,
        .desc_len = header.n_descsz,
    };
    *at = (size_t)((end + 3) / 4 * 4);
    return true;
}

bool prb_note_is(const struct prb_note *note, const char *name, uint32_t type)
{
    return note->type == type && note->name_len == strlen(name) &&
           memcmp(note->name, name, note->name_len) == 0;
}

size_t prb_note_build_id(const uint8_t *notes, size_t size, uint8_t out[64])
{
    struct prb_note note;
    for (size_t at = 0; prb_note_next(notes, size, &at, &note);) {
        if (!prb_note_is(&note, "GNU", NT_GNU_BUILD_ID) || note.desc_len == 0)
            continue;
        size_t n = note.desc_len < 64 ? note.desc_len : 64;
        memcpy(out, note.desc, n);
        return n;
    }
    return 0;
}
