/* Reading an ELF core's headers and notes.  Every offset and count comes from a file and is checked
 * against its size. */
#include "proc/core_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "proc/elf_file.h"

/* Places in the notes of 64-bit Linux: struct elf_prstatus and elf_prpsinfo of linux/elfcore.h. */
#define PRSTATUS_SIGNAL 12
#define PRSTATUS_PID 32
#define PRSTATUS_UTIME 48
#define PRSTATUS_STIME 64
#define PRSTATUS_REGISTERS 112
#define PRPSINFO_STATE 1
#define PRPSINFO_PID 24
#define PRPSINFO_NAME 40
#define PRPSINFO_ARGS 56
#define PRPSINFO_SIZE 136

struct input {
    int fd;
    uint64_t size;
    const char *name;
};

static bool input_read(const struct input *input, uint64_t offset, void *buf, size_t len,
                       struct prb_error *err)
{
    if (offset > input->size || len > input->size - offset)
        return prb_fail(err, PRB_CORRUPT, "%s is truncated: its headers point past its end",
                        input->name);
    if (prb_read_at(input->fd, buf, len, offset) == len)
        return true;
    return errno ? prb_fail_sys(err, errno, "cannot read %s", input->name)
                 : prb_fail(err, PRB_CORRUPT, "%s became shorter while it was read", input->name);
}

void prb_core_file_deinit(struct prb_core_file *core)
{
    free(core->segments);
    free(core->threads);
    free(core->mapped);
    free(core->notes);
    prb_arena_deinit(&core->arena);
    *core = (struct prb_core_file){0};
}

/* ---- headers ---- */

static bool read_header(const struct input *input, Elf64_Ehdr *out, struct prb_error *err)
{
    if (input->size < sizeof *out)
        return prb_fail(err, PRB_CORRUPT, "%s is not a core file: it has only %llu bytes",
                        input->name, (unsigned long long)input->size);
    if (!input_read(input, 0, out, sizeof *out, err))
        return false;
    if (memcmp(out->e_ident, ELFMAG, SELFMAG) != 0)
        return prb_fail(err, PRB_CORRUPT, "%s is not an ELF file", input->name);
    if (out->e_ident[EI_CLASS] != ELFCLASS64 || out->e_ident[EI_DATA] != ELFDATA2LSB ||
        !prb_arch_find(out->e_machine))
        return prb_fail(err, PRB_UNSUPPORTED, "%s is for another architecture (ELF machine %u)",
                        input->name, out->e_machine);
    if (out->e_type != ET_CORE)
        return prb_fail(err, PRB_CORRUPT, "%s is an ELF file, but not a core", input->name);
    if (out->e_phentsize != sizeof(Elf64_Phdr))
        return prb_fail(err, PRB_CORRUPT, "%s has program headers of a wrong size", input->name);
    return true;
}

/* With 65,535 segments and more their number stands in the first section header: elf(5), e_phnum.
 */
static bool segment_count(const struct input *input, const Elf64_Ehdr *header, size_t *out,
                          struct prb_error *err)
{
    size_t count = header->e_phnum;
    if (count == PN_XNUM) {
        Elf64_Shdr section;
        if (!input_read(input, header->e_shoff, &section, sizeof section, err))
            return false;
        count = section.sh_info;
    }
    if (count > PRB_CORE_SEGMENTS_MAX)
        return prb_fail(err, PRB_CORRUPT, "%s claims %zu segments", input->name, count);
    *out = count;
    return true;
}

/* A core that lacks some of its bytes would give answers that are wrong here and there, so it is
 * refused. */
static bool check_complete(const struct input *input, const Elf64_Phdr *headers, size_t count,
                           struct prb_error *err)
{
    uint64_t need = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end;
        if (__builtin_add_overflow(headers[i].p_offset, headers[i].p_filesz, &end) ||
            end > INT64_MAX)
            return prb_fail(err, PRB_CORRUPT, "%s has a segment of impossible size", input->name);
        if (headers[i].p_filesz && end > need)
            need = end;
    }
    if (need <= input->size)
        return true;
    prb_fail(err, PRB_CORRUPT, "%s is truncated: %llu of its %llu bytes are missing", input->name,
             (unsigned long long)(need - input->size), (unsigned long long)need);
    return prb_error_remedy(err,
                            "Dump it again with enough disk space and no size limit (ulimit -c "
                            "unlimited; systemd-coredump: ProcessSizeMax, ExternalSizeMax)");
}

static int by_address(const void *left, const void *right)
{
    const struct prb_core_segment *a = left, *b = right;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static bool take_segments(const struct input *input, const Elf64_Phdr *headers, size_t count,
                          struct prb_core_file *core, struct prb_error *err)
{
    core->segments = calloc(count ? count : 1, sizeof *core->segments);
    if (!core->segments)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const Elf64_Phdr *header = &headers[i];
        uint64_t end;
        if (header->p_type != PT_LOAD || header->p_memsz == 0)
            continue;
        if (__builtin_add_overflow(header->p_vaddr, header->p_memsz, &end) ||
            header->p_filesz > header->p_memsz)
            return prb_fail(err, PRB_CORRUPT, "%s has a segment of impossible size", input->name);
        core->segments[core->segment_count++] = (struct prb_core_segment){
            .addr = header->p_vaddr,
            .memory_len = header->p_memsz,
            .file_len = header->p_filesz,
            .offset = header->p_offset,
            .readable = header->p_flags & PF_R,
            .writable = header->p_flags & PF_W,
            .executable = header->p_flags & PF_X,
        };
    }
    qsort(core->segments, core->segment_count, sizeof *core->segments, by_address);
    for (size_t i = 1; i < core->segment_count; i++) {
        if (core->segments[i].addr - core->segments[i - 1].addr < core->segments[i - 1].memory_len)
            return prb_fail(err, PRB_CORRUPT, "%s has segments that overlap", input->name);
    }
    return true;
}

/* ---- notes ---- */

static uint64_t u64_at(const uint8_t *data, size_t at)
{
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    return word;
}

static uint32_t u32_at(const uint8_t *data, size_t at)
{
    uint32_t word;
    memcpy(&word, data + at, sizeof word);
    return word;
}

static bool take_thread(struct prb_core_file *core, const struct prb_note *note)
{
    if (note->desc_len < PRSTATUS_REGISTERS + core->arch->gregset_size ||
        core->thread_count >= PRB_CORE_THREADS_MAX)
        return true;
    if (!PRB_GROW(core->threads, core->thread_count, core->thread_cap))
        return false;
    core->threads[core->thread_count++] = (struct prb_core_thread){
        .tid = (pid_t)u32_at(note->desc, PRSTATUS_PID),
        .signal = (int)(u32_at(note->desc, PRSTATUS_SIGNAL) & 0xffff),
        .utime =
            u64_at(note->desc, PRSTATUS_UTIME) * 1000000 + u64_at(note->desc, PRSTATUS_UTIME + 8),
        .stime =
            u64_at(note->desc, PRSTATUS_STIME) * 1000000 + u64_at(note->desc, PRSTATUS_STIME + 8),
        .registers = note->desc + PRSTATUS_REGISTERS,
        .registers_len = note->desc_len - PRSTATUS_REGISTERS,
    };
    return true;
}

static bool take_info(struct prb_core_file *core, const struct prb_note *note)
{
    if (note->desc_len < PRPSINFO_SIZE)
        return true;
    core->state = (char)note->desc[PRPSINFO_STATE];
    core->pid = (pid_t)u32_at(note->desc, PRPSINFO_PID);
    memcpy(core->name, note->desc + PRPSINFO_NAME, sizeof core->name - 1);
    memcpy(core->args, note->desc + PRPSINFO_ARGS, sizeof core->args - 1);
    return true;
}

static bool take_auxv(struct prb_core_file *core, const struct prb_note *note)
{
    core->auxv = note->desc;
    core->auxv_len = note->desc_len;
    return true;
}

/* NT_FILE: count, page size, then start, end and page offset of each, then the names, each ended by
 * NUL. */
static bool take_mapped(struct prb_core_file *core, const struct prb_note *note)
{
    if (note->desc_len < 16 || core->mapped)
        return true;
    uint64_t count = u64_at(note->desc, 0), unit = u64_at(note->desc, 8);
    if (count > (note->desc_len - 16) / 24)
        return true;
    const uint8_t *name = note->desc + 16 + count * 24, *end = note->desc + note->desc_len;
    core->mapped = calloc(count ? count : 1, sizeof *core->mapped);
    if (!core->mapped)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *stop = memchr(name, 0, (size_t)(end - name));
        struct prb_core_mapped mapped = {.start = u64_at(note->desc, 16 + i * 24),
                                         .end = u64_at(note->desc, 24 + i * 24)};
        if (!stop)
            break;
        if (mapped.start < mapped.end &&
            !__builtin_mul_overflow(u64_at(note->desc, 32 + i * 24), unit, &mapped.offset)) {
            mapped.path = prb_arena_strdup(&core->arena, (const char *)name);
            if (!mapped.path)
                return false;
            core->mapped[core->mapped_count++] = mapped;
        }
        name = stop + 1;
    }
    return true;
}

static bool take_texts(struct prb_core_file *core, const struct prb_note *note)
{
    core->texts = note->desc;
    core->texts_len = note->desc_len;
    return true;
}

static const struct {
    const char *name;
    uint32_t type;
    bool (*take)(struct prb_core_file *core, const struct prb_note *note);
} takers[] = {
    {"CORE", NT_PRSTATUS, take_thread},
    {"CORE", NT_PRPSINFO, take_info},
    {"CORE", NT_AUXV, take_auxv},
    {"CORE", NT_FILE, take_mapped},
    {PRB_NOTE_NAME, PRB_NOTE_TEXTS, take_texts},
};

static bool take_notes(const struct input *input, const Elf64_Phdr *headers, size_t count,
                       struct prb_core_file *core, struct prb_error *err)
{
    size_t i = 0;
    while (i < count && headers[i].p_type != PT_NOTE)
        i++;
    if (i == count)
        return prb_fail(err, PRB_CORRUPT, "%s has no notes", input->name);
    uint64_t size = headers[i].p_filesz;
    if (size > PRB_CORE_NOTES_MAX)
        return prb_fail(err, PRB_CORRUPT, "%s has %llu bytes of notes", input->name,
                        (unsigned long long)size);
    core->notes = malloc(size ? size : 1);
    if (!core->notes)
        return prb_nomem(err);
    if (!input_read(input, headers[i].p_offset, core->notes, size, err))
        return false;
    struct prb_note note;
    for (size_t at = 0; prb_note_next(core->notes, size, &at, &note);) {
        for (size_t k = 0; k < sizeof takers / sizeof *takers; k++) {
            if (prb_note_is(&note, takers[k].name, takers[k].type) && !takers[k].take(core, &note))
                return prb_nomem(err);
        }
    }
    if (core->thread_count == 0)
        return prb_fail(err, PRB_CORRUPT, "%s has no thread", input->name);
    return true;
}

bool prb_core_file_read(int fd, const char *name, struct prb_core_file *out, struct prb_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return prb_fail_sys(err, errno, "cannot read %s", name);
    if (!S_ISREG(info.st_mode))
        return prb_fail(err, PRB_CORRUPT, "%s is not a file", name);
    struct input input = {fd, (uint64_t)info.st_size, name};
    PRB_AUTO(prb_core_file) struct prb_core_file core = {0};
    Elf64_Ehdr header;
    size_t count = 0;
    if (!read_header(&input, &header, err) || !segment_count(&input, &header, &count, err))
        return false;
    PRB_AUTO_FREE Elf64_Phdr *headers = malloc(count ? count * sizeof *headers : 1);
    if (!headers)
        return prb_nomem(err);
    core.arch = prb_arch_find(header.e_machine);
    if (!input_read(&input, header.e_phoff, headers, count * sizeof *headers, err) ||
        !check_complete(&input, headers, count, err) ||
        !take_segments(&input, headers, count, &core, err) ||
        !take_notes(&input, headers, count, &core, err))
        return false;
    if (core.pid == 0)
        core.pid = core.threads[0].tid;
    *out = core;
    core = (struct prb_core_file){0};
    return true;
}

uint64_t prb_core_auxv(const struct prb_core_file *core, uint64_t type)
{
    for (size_t at = 0; core->auxv_len >= 16 && at <= core->auxv_len - 16; at += 16) {
        if (u64_at(core->auxv, at) == type)
            return u64_at(core->auxv, at + 8);
    }
    return 0;
}
