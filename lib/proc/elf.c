/*
 * ELF files, read by libelf over our own mapping of the file, so that no descriptor stays open.
 *
 * Section contents are taken raw: libelf bounds them by the file's size, and the entries are copied
 * out one by one, since a hostile file aligns nothing.  A file that is cut short by somebody while
 * it is mapped cannot be guarded against here.
 */
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "arch/arch.h"
#include "proc/elf_file.h"

/* Sections and program headers of one file. */
#define SECTIONS_MAX 65536
#define SEGMENTS_MAX 4096

static bool check_header(Elf *handle, const char *name, struct prb_error *err)
{
    GElf_Ehdr header;
    if (elf_kind(handle) != ELF_K_ELF || !gelf_getehdr(handle, &header))
        return prb_fail(err, PRB_CORRUPT, "%s is not an ELF file", name);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        !prb_arch_find(header.e_machine))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "%s is an ELF file for another machine (number %u, %s bits)", name,
                        header.e_machine, header.e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32");
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
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    elf->fd = -1;
    elf->size = (size_t)info.st_size;
    elf->image = mmap(NULL, elf->size, PROT_READ, MAP_PRIVATE, guarded, 0);
    if (elf->image == MAP_FAILED) {
        elf->image = NULL;
        return PRB_NULL(prb_fail(err, PRB_IO, "cannot map %s", name));
    }
    elf_version(EV_CURRENT);
    elf->handle = elf_memory(elf->image, elf->size);
    if (!elf->handle)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "%s is not an ELF file", name));
    if (!check_header(elf->handle, name, err))
        return NULL;
    elf->fd = guarded;
    guarded = -1;
    return PRB_STEAL(elf);
}

void prb_elf_free(struct prb_elf *elf)
{
    if (!elf)
        return;
    prb_elf_free(elf->debug);
    prb_symbol_index_deinit(&elf->exported.index);
    prb_symbol_index_deinit(&elf->all.index);
    if (elf->handle)
        elf_end(elf->handle);
    if (elf->image)
        munmap(elf->image, elf->size);
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

Elf_Scn *prb_elf_scn_of_type(struct prb_elf *elf, unsigned type, GElf_Shdr *header)
{
    size_t seen = 0;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf->handle, scn)) && seen++ < SECTIONS_MAX;) {
        if (gelf_getshdr(scn, header) && header->sh_type == type)
            return scn;
    }
    return NULL;
}

bool prb_elf_contents(Elf_Scn *scn, struct prb_bytes *out)
{
    GElf_Shdr header;
    Elf_Data *data = NULL;
    if (scn && gelf_getshdr(scn, &header) && header.sh_type != SHT_NOBITS &&
        !(header.sh_flags & SHF_COMPRESSED))
        data = elf_rawdata(scn, NULL);
    if (!data || !data->d_buf)
        return false;
    *out = (struct prb_bytes){data->d_buf, data->d_size};
    return true;
}

bool prb_elf_section(struct prb_elf *elf, const char *name, uint64_t *addr_out, uint64_t *size_out)
{
    size_t names, seen = 0;
    if (elf_getshdrstrndx(elf->handle, &names) != 0)
        return false;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf->handle, scn)) && seen++ < SECTIONS_MAX;) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header))
            continue;
        const char *its = elf_strptr(elf->handle, names, header.sh_name);
        if (its && strcmp(its, name) == 0) {
            *addr_out = header.sh_addr;
            *size_out = header.sh_size;
            return true;
        }
    }
    return false;
}

/* ---- program headers ---- */

static size_t segments(struct prb_elf *elf)
{
    size_t count;
    if (elf_getphdrnum(elf->handle, &count) != 0)
        return 0;
    return count < SEGMENTS_MAX ? count : SEGMENTS_MAX;
}

bool prb_elf_eh_frame_hdr(struct prb_elf *elf, uint64_t *addr_out, uint64_t *size_out)
{
    for (size_t i = 0, count = segments(elf); i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf->handle, (int)i, &header) && header.p_type == PT_GNU_EH_FRAME) {
            *addr_out = header.p_vaddr;
            *size_out = header.p_memsz;
            return true;
        }
    }
    return false;
}

bool prb_elf_bias(struct prb_elf *elf, prb_addr addr, uint64_t file_offset, uint64_t *bias_out)
{
    const uint64_t page = 4096;
    for (size_t i = 0, count = segments(elf); i < count; i++) {
        GElf_Phdr header;
        uint64_t end;
        if (!gelf_getphdr(elf->handle, (int)i, &header) || header.p_type != PT_LOAD ||
            __builtin_add_overflow(header.p_offset, header.p_filesz, &end))
            continue;
        /* The kernel maps whole pages, so a map begins at or before what the header says. */
        if (file_offset >= header.p_offset / page * page && file_offset < end) {
            *bias_out = addr - (header.p_vaddr - header.p_offset + file_offset);
            return true;
        }
    }
    return false;
}

bool prb_elf_written(struct prb_elf *elf, uint64_t offset, uint64_t len)
{
    const uint64_t page = 4096;
    for (size_t i = 0, count = segments(elf); i < count; i++) {
        GElf_Phdr header;
        uint64_t end;
        if (!gelf_getphdr(elf->handle, (int)i, &header) || header.p_type != PT_LOAD ||
            !(header.p_flags & PF_W) ||
            __builtin_add_overflow(header.p_offset, header.p_filesz, &end))
            continue;
        if (offset < end && len > 0 && header.p_offset / page * page <= offset + (len - 1))
            return true;
    }
    return false;
}

size_t prb_elf_build_id(struct prb_elf *elf, uint8_t out[64])
{
    for (size_t i = 0, count = segments(elf); i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf->handle, (int)i, &header) || header.p_type != PT_NOTE ||
            header.p_offset > elf->size || header.p_filesz > elf->size - header.p_offset)
            continue;
        size_t n = prb_note_build_id((const uint8_t *)elf->image + header.p_offset,
                                     (size_t)header.p_filesz, out);
        if (n)
            return n;
    }
    return 0;
}

/* ---- notes ---- */

bool prb_note_next(const uint8_t *notes, size_t size, size_t *at, struct prb_note *out)
{
    GElf_Nhdr header;
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
