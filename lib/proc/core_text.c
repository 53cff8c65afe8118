/*
 * What a core knows, in the formats of /proc: maps from segments and mapped files, so that one
 * parser is enough; and the note in which a snapshot carries the texts themselves.
 */
#include <elf.h>
#include <string.h>

#include "proc/core_file.h"
#include "proc/elf_file.h"

/* ---- maps ---- */

static int by_start(const void *left, const void *right)
{
    const struct prb_core_mapped *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Any number will do that is the same for the same path, and not 0 (FNV-1a). */
static uint64_t inode_of(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * 0x100000001b3u;
    return hash >> 1 | 1;
}

static prb_addr main_stack(const struct prb_core_file *core)
{
    struct prb_registers registers;
    for (size_t i = 0; i < core->thread_count; i++) {
        const struct prb_core_thread *thread = &core->threads[i];
        if (thread->tid == core->pid && prb_arch_registers(core->arch, thread->registers,
                                                           thread->registers_len, &registers, NULL))
            return registers.value[core->arch->sp];
    }
    return 0;
}

static bool within(prb_addr addr, prb_addr start, prb_addr end)
{
    return addr >= start && addr < end;
}

struct names {
    prb_addr vdso, stack;
    bool code; /* what a place without a segment is taken for */
};

/* gdb leaves out what nobody wrote to: of a library its code and constants, and data files whole.
 */
static bool is_library(const struct prb_core_file *core, size_t i)
{
    const struct prb_core_mapped *mapped = &core->mapped[i];
    return (i > 0 && strcmp(mapped[-1].path, mapped->path) == 0) ||
           (i + 1 < core->mapped_count && strcmp(mapped[1].path, mapped->path) == 0);
}

static void add_line(struct prb_buf *out, prb_addr start, prb_addr end,
                     const struct prb_core_segment *segment, const struct prb_core_mapped *mapped,
                     const struct names *names)
{
    const struct prb_core_segment left_out = {.readable = true, .executable = names->code};
    const struct prb_core_segment *kind = segment ? segment : &left_out;
    unsigned long long offset = mapped ? mapped->offset + (start - mapped->start) : 0;
    prb_buf_addf(out, "%llx-%llx %c%c%cp %llx 00:00 %llu ", (unsigned long long)start,
                 (unsigned long long)end, kind->readable ? 'r' : '-', kind->writable ? 'w' : '-',
                 kind->executable ? 'x' : '-', offset,
                 (unsigned long long)(mapped ? inode_of(mapped->path) : 0));
    if (!mapped) {
        prb_buf_adds(out, within(names->vdso, start, end)    ? "[vdso]"
                          : within(names->stack, start, end) ? "[stack]"
                                                             : "");
    } else {
        for (const char *c = mapped->path; *c; c++) {
            if (*c == '\n')
                prb_buf_adds(out, "\\012");
            else
                prb_buf_addc(out, *c);
        }
    }
    prb_buf_addc(out, '\n');
}

bool prb_core_maps_text(const struct prb_core_file *core, struct prb_buf *out,
                        struct prb_error *err)
{
    size_t segments = core->segment_count, files = core->mapped_count, count = 0;
    PRB_AUTO_FREE uint64_t *borders = calloc(2 * (segments + files) + 1, sizeof *borders);
    if (!borders)
        return prb_nomem(err);
    if (files)
        qsort(core->mapped, files, sizeof *core->mapped, by_start);
    for (size_t i = 0; i < segments; i++) {
        borders[count++] = core->segments[i].addr;
        borders[count++] = core->segments[i].addr + core->segments[i].memory_len;
    }
    for (size_t i = 0; i < files; i++) {
        borders[count++] = core->mapped[i].start;
        borders[count++] = core->mapped[i].end;
    }
    qsort(borders, count, sizeof *borders, by_value);
    struct names names = {prb_core_auxv(core, AT_SYSINFO_EHDR), main_stack(core), false};
    for (size_t i = 0, s = 0, f = 0; i + 1 < count; i++) {
        prb_addr start = borders[i], end = borders[i + 1];
        while (s < segments && core->segments[s].addr + core->segments[s].memory_len <= start)
            s++;
        while (f < files && core->mapped[f].end <= start)
            f++;
        bool in_segment = s < segments && core->segments[s].addr <= start;
        bool in_file = f < files && core->mapped[f].start <= start;
        names.code = in_file && is_library(core, f);
        if (start < end && (in_segment || in_file))
            add_line(out, start, end, in_segment ? &core->segments[s] : NULL,
                     in_file ? &core->mapped[f] : NULL, &names);
    }
    return prb_buf_ok(out) || prb_nomem(err);
}

/* ---- build ids ---- */

#define NOTES_MAX 4096

size_t prb_core_build_id(prb_mem_fn *read, void *context, prb_addr start, uint8_t out[64])
{
    Elf64_Ehdr header;
    if (read(context, start, &header, sizeof header) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phoff > NOTES_MAX)
        return 0;
    for (unsigned i = 0; i < header.e_phnum && i < 64; i++) {
        Elf64_Phdr segment;
        prb_addr at = start + header.e_phoff + i * sizeof segment;
        if (read(context, at, &segment, sizeof segment) != sizeof segment)
            return 0;
        uint8_t notes[NOTES_MAX];
        if (segment.p_type != PT_NOTE || segment.p_filesz > sizeof notes)
            continue;
        size_t len = read(context, start + segment.p_offset, notes, (size_t)segment.p_filesz);
        size_t n = prb_note_build_id(notes, len, out);
        if (n)
            return n;
    }
    return 0;
}

/* ---- the note of texts: length of the name, length of the text (32 bits each), name, text; again
 * ---- */

static void add_u32(struct prb_buf *out, size_t value)
{
    uint32_t word = (uint32_t)value;
    prb_buf_add(out, &word, sizeof word);
}

void prb_core_texts_write(const struct prb_proc *proc, struct prb_buf *out)
{
    for (size_t i = 0; i < proc->text_count; i++) {
        const struct prb_proc_text *text = &proc->texts[i];
        add_u32(out, strlen(text->name));
        add_u32(out, text->text.len);
        prb_buf_adds(out, text->name);
        prb_buf_add(out, text->text.data ? text->text.data : "", text->text.len);
    }
}

#define NAME_MAX_BYTES 256

bool prb_core_texts_read(struct prb_proc *proc, const uint8_t *data, size_t len,
                         struct prb_error *err)
{
    while (len >= 8) {
        uint32_t lengths[2];
        memcpy(lengths, data, sizeof lengths);
        data += 8;
        len -= 8;
        char name[NAME_MAX_BYTES];
        if (lengths[0] >= sizeof name || lengths[0] > len || lengths[1] > len - lengths[0])
            return prb_fail(err, PRB_CORRUPT, "the snapshot's texts cannot be parsed");
        memcpy(name, data, lengths[0]);
        name[lengths[0]] = '\0';
        if (!prb_proc_save_text(proc, name, (const char *)data + lengths[0], lengths[1]))
            return prb_nomem(err);
        data += (size_t)lengths[0] + lengths[1];
        len -= (size_t)lengths[0] + lengths[1];
    }
    return true;
}
