/*
 * Writing a snapshot: an ELF core of the pages that decoding touched, so that gdb and readelf open
 * it too, with the texts of /proc in a note of our own.  It is written beside its place and moved
 * there when it is whole.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/new_file.h"
#include "proc/core_file.h"
#include "proc/save.h"
#include "proc/stat.h"

#define PAGE 4096u
/* Sizes of 64-bit Linux: struct elf_prstatus without its register set, and the places in it; see
 * core_file.c. */
#define PRSTATUS_HEAD 112
#define PRSTATUS_TAIL 8
#define PRSTATUS_MAX 512

/* A run of recorded pages. */
struct run {
    prb_addr addr;
    size_t len, at; /* bytes in `data` from there */
};

struct image {
    const struct prb_maps *maps;
    struct run *runs;
    size_t run_count, run_cap;
    struct prb_buf data, notes;
};

static void image_deinit(struct image *image)
{
    free(image->runs);
    prb_buf_deinit(&image->data);
    prb_buf_deinit(&image->notes);
}
PRB_DEFINE_AUTO(image, struct image, image_deinit)

static bool add_run(void *context, prb_addr addr, const void *data, size_t len)
{
    struct image *image = context;
    if (!PRB_GROW(image->runs, image->run_count, image->run_cap))
        return false;
    image->runs[image->run_count++] = (struct run){addr, len, image->data.len};
    prb_buf_add(&image->data, data, len);
    /* Segments begin at pages of the file, as they do in memory. */
    static const char zeros[PAGE];
    prb_buf_add(&image->data, zeros, (PAGE - len % PAGE) % PAGE);
    return prb_buf_ok(&image->data);
}

/* ---- notes ---- */

static void add_note(struct prb_buf *notes, const char *name, uint32_t type, const void *desc,
                     size_t len)
{
    static const char zeros[4];
    size_t name_len = strlen(name) + 1;
    const Elf64_Nhdr header = {(Elf64_Word)name_len, (Elf64_Word)len, type};
    prb_buf_add(notes, &header, sizeof header);
    prb_buf_add(notes, name, name_len);
    prb_buf_add(notes, zeros, (4 - name_len % 4) % 4);
    prb_buf_add(notes, desc, len);
    prb_buf_add(notes, zeros, (4 - len % 4) % 4);
}

static bool add_thread(struct image *image, const struct prb_saved_task *task,
                       struct prb_error *err)
{
    const struct prb_arch *arch = prb_arch_host();
    uint8_t status[PRSTATUS_MAX] = {0};
    size_t size = PRSTATUS_HEAD + arch->gregset_size + PRSTATUS_TAIL;
    if (size > sizeof status)
        return prb_fail(err, PRB_INTERNAL, "no room for the registers");
    memcpy(status, &(int32_t){task->signal}, 4);                 /* si_signo */
    memcpy(status + 12, &(uint16_t){(uint16_t)task->signal}, 2); /* pr_cursig */
    memcpy(status + 32, &(uint32_t){(uint32_t)task->tid}, 4);
    if (!prb_arch_gregset(arch, &task->registers, status + PRSTATUS_HEAD, arch->gregset_size, err))
        return false;
    add_note(&image->notes, "CORE", NT_PRSTATUS, status, size);
    return true;
}

static void add_info(struct image *image, struct prb_proc *proc)
{
    uint8_t info[136] = {0};
    PRB_AUTO(prb_buf) struct prb_buf cmdline = {0};
    struct prb_stat stat = {0};
    if (prb_stat_read(proc, "stat", &stat)) {
        info[1] = stat.state == '?' ? 0 : (uint8_t)stat.state;
        memcpy(info + 40, stat.comm, 15);
    }
    memcpy(info + 24, &(uint32_t){(uint32_t)proc->pid}, 4);
    /* What was saved may have been masked: it is not read again. */
    const struct prb_proc_text *kept = prb_proc_saved_text(proc, "cmdline");
    if (kept)
        prb_buf_add(&cmdline, kept->text.data, kept->text.len);
    if (kept ? prb_buf_ok(&cmdline) && cmdline.len
             : prb_proc_text(proc, "cmdline", &cmdline, NULL)) {
        size_t n = cmdline.len < 79 ? cmdline.len : 79;
        for (size_t i = 0; i < n; i++)
            info[56 + i] = cmdline.data[i] ? (uint8_t)cmdline.data[i] : ' ';
    }
    add_note(&image->notes, "CORE", NT_PRPSINFO, info, sizeof info);
}

static void add_mapped(struct image *image)
{
    PRB_AUTO(prb_buf) struct prb_buf places = {0}, names = {0}, note = {0};
    uint64_t head[2] = {0, PAGE};
    for (size_t i = 0; i < image->maps->count; i++) {
        const struct prb_map *map = &image->maps->items[i];
        if (!map->inode)
            continue;
        const uint64_t place[3] = {map->start, map->end, map->offset / PAGE};
        prb_buf_add(&places, place, sizeof place);
        prb_buf_add(&names, map->path, strlen(map->path) + 1);
        head[0]++;
    }
    prb_buf_add(&note, head, sizeof head);
    prb_buf_add(&note, places.data ? places.data : "", places.len);
    prb_buf_add(&note, names.data ? names.data : "", names.len);
    if (prb_buf_ok(&note) && prb_buf_ok(&places) && prb_buf_ok(&names))
        add_note(&image->notes, "CORE", NT_FILE, note.data, note.len);
}

/* ---- texts of our own ---- */

static size_t read_some(void *context, prb_addr addr, void *buf, size_t len)
{
    return prb_mem_read_some(context, addr, buf, len);
}

static void build_ids_text(struct prb_proc *proc, const struct prb_maps *maps, struct prb_buf *out)
{
    struct prb_mem *mem = prb_proc_mem(proc, NULL);
    uint64_t inode = 0;
    for (size_t i = 0; mem && i < maps->count; i++) {
        const struct prb_map *map = &maps->items[i];
        uint8_t id[64];
        if (!map->executable || !map->inode || map->inode == inode)
            continue;
        inode = map->inode;
        while (map > maps->items && (map - 1)->inode == inode && map->offset)
            map--;
        size_t n = prb_core_build_id(read_some, mem, map->start, id);
        if (n)
            prb_buf_addf(out, "%llx ", (unsigned long long)map->start);
        for (size_t k = 0; k < n; k++)
            prb_buf_addf(out, k + 1 < n ? "%02x" : "%02x\n", id[k]);
    }
}

static bool keep_own_texts(struct prb_proc *proc, const struct prb_maps *maps,
                           const struct prb_saved_task *tasks, size_t count)
{
    PRB_AUTO(prb_buf) struct prb_buf info = {0}, masks = {0}, ids = {0};
    double time = proc->time ? proc->time : prb_clock_epoch_s();
    prb_buf_addf(&info, "version %s\nformat %d\ntime %.6f\npid %d\n", prb_version(),
                 PRB_SNAPSHOT_FORMAT, time, (int)proc->pid);
    prb_buf_adds(&masks, "");
    prb_buf_adds(&ids, "");
    for (size_t i = 0; i < count; i++)
        prb_buf_addf(&masks, "%d %llx\n", (int)tasks[i].tid,
                     (unsigned long long)tasks[i].registers.known);
    if (prb_proc_saved_text(proc, PRB_TEXT_BUILD_IDS) == NULL)
        build_ids_text(proc, maps, &ids);
    return prb_buf_ok(&info) && prb_buf_ok(&masks) && prb_buf_ok(&ids) &&
           prb_proc_save_text(proc, PRB_TEXT_INFO, info.data, info.len) &&
           prb_proc_save_text(proc, PRB_TEXT_REGISTERS, masks.data, masks.len) &&
           (!ids.len || prb_proc_save_text(proc, PRB_TEXT_BUILD_IDS, ids.data, ids.len));
}

static bool make_notes(struct image *image, struct prb_proc *proc,
                       const struct prb_saved_task *tasks, size_t count, struct prb_error *err)
{
    const struct prb_saved_task alone = {.tid = proc->pid};
    bool none = count == 0;
    for (size_t i = 0; i < (none ? 1 : count); i++) {
        if (!add_thread(image, none ? &alone : &tasks[i], err))
            return false;
        /* As the kernel orders them: the process after its first thread. */
        if (i == 0)
            add_info(image, proc);
    }
    add_mapped(image);
    PRB_AUTO(prb_buf) struct prb_buf texts = {0}, auxv = {0};
    if (prb_proc_text(proc, "auxv", &auxv, NULL))
        add_note(&image->notes, "CORE", NT_AUXV, auxv.data, auxv.len);
    if (!keep_own_texts(proc, image->maps, tasks, count))
        return prb_nomem(err);
    prb_core_texts_write(proc, &texts);
    if (!prb_buf_ok(&texts) || texts.len > UINT32_MAX)
        return prb_nomem(err);
    add_note(&image->notes, PRB_NOTE_NAME, PRB_NOTE_TEXTS, texts.data, texts.len);
    return prb_buf_ok(&image->notes) || prb_nomem(err);
}

/* ---- the file ---- */

static Elf64_Phdr segment_of(const struct image *image, const struct run *run, uint64_t data_at)
{
    const struct prb_map *map = prb_maps_find(image->maps, run->addr);
    Elf64_Word flags = !map ? PF_R
                            : (map->readable ? PF_R : 0) | (map->writable ? PF_W : 0) |
                                  (map->executable ? PF_X : 0);
    return (Elf64_Phdr){.p_type = PT_LOAD,
                        .p_flags = flags,
                        .p_offset = data_at + run->at,
                        .p_vaddr = run->addr,
                        .p_filesz = run->len,
                        .p_memsz = run->len,
                        .p_align = PAGE};
}

/* Header, program headers, notes; the data begins at the next page. */
static bool make_head(const struct image *image, struct prb_buf *out, struct prb_error *err)
{
    size_t segments = image->run_count + 1;
    if (segments >= PN_XNUM)
        return prb_fail(err, PRB_IO, "a snapshot of %zu pieces is too large", segments);
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = prb_arch_host()->elf_machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = (Elf64_Half)segments};
    uint64_t notes_at = sizeof header + segments * sizeof(Elf64_Phdr);
    uint64_t data_at = (notes_at + image->notes.len + PAGE - 1) / PAGE * PAGE;
    const Elf64_Phdr notes = {
        .p_type = PT_NOTE, .p_offset = notes_at, .p_filesz = image->notes.len, .p_align = 4};
    prb_buf_add(out, &header, sizeof header);
    prb_buf_add(out, &notes, sizeof notes);
    for (size_t i = 0; i < image->run_count; i++) {
        const Elf64_Phdr segment = segment_of(image, &image->runs[i], data_at);
        prb_buf_add(out, &segment, sizeof segment);
    }
    prb_buf_add(out, image->notes.data, image->notes.len);
    while (prb_buf_ok(out) && out->len < data_at)
        prb_buf_addc(out, '\0');
    return prb_buf_ok(out) || prb_nomem(err);
}

static bool failed(const char *path, int sys, struct prb_error *err)
{
    if (sys == EEXIST)
        return prb_fail(err, PRB_USAGE, "%s is not a regular file, as a snapshot must be", path);
    prb_fail_sys(err, sys, "cannot write %s", path);
    if (sys == ENOSPC || sys == EDQUOT)
        prb_error_remedy(err, "Free some space, or name a file on another disk");
    return false;
}

static bool write_file(const char *path, const struct prb_buf *head, const struct prb_buf *data,
                       struct prb_error *err)
{
    PRB_AUTO(prb_new_file) struct prb_new_file file;
    return (prb_new_file_begin(&file, path, 0600) &&
            prb_write_all(file.fd, head->data, head->len) &&
            prb_write_all(file.fd, data->data, data->len) && prb_new_file_end(&file)) ||
           failed(path, errno, err);
}

static bool write_file_as(const struct prb_ids *as, const char *path, const struct prb_buf *head,
                          const struct prb_buf *data, struct prb_error *err)
{
    struct prb_rights before = {0};
    if (as && !prb_rights_take(as, &before))
        return failed(path, errno, err);
    bool good = write_file(path, head, data, err);
    prb_rights_give_back(&before);
    return good;
}

bool prb_proc_save_as(struct prb_proc *proc, struct prb_mem *record,
                      const struct prb_saved_task *tasks, size_t count, const char *path,
                      const struct prb_ids *as, uint64_t *bytes_out, struct prb_error *err)
{
    PRB_AUTO(image) struct image image = {0};
    proc->recording = true;
    PRB_AUTO(prb_buf) struct prb_buf maps = {0}, head = {0};
    if (!prb_proc_saved_text(proc, "maps") && !prb_proc_text(proc, "maps", &maps, err))
        return false;
    image.maps = prb_proc_maps(proc, false, err);
    if (!image.maps)
        return false;
    if (!prb_mem_record_each(record, add_run, &image))
        return prb_nomem(err);
    if (!make_notes(&image, proc, tasks, count, err) || !make_head(&image, &head, err) ||
        !write_file_as(as, path, &head, &image.data, err))
        return false;
    *bytes_out = head.len + image.data.len;
    return true;
}

bool prb_proc_save(struct prb_proc *proc, struct prb_mem *record,
                   const struct prb_saved_task *tasks, size_t count, const char *path,
                   uint64_t *bytes_out, struct prb_error *err)
{
    return prb_proc_save_as(proc, record, tasks, count, path, NULL, bytes_out, err);
}
