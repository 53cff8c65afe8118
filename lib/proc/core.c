/*
 * A core file or snapshot as a process: the texts of /proc that it carries or that follow from its
 * notes, its memory, and for what it leaves out the files that were mapped, believed only when
 * their build ids agree.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "proc/below.h"
#include "proc/core_file.h"
#include "proc/elf_file.h"
#include "proc/unpack.h"

/* The file behind one map. */
struct back {
    int fd; /* -1: none */
    bool tried;
};

struct core {
    struct prb_proc base;
    int fd, root; /* the core; where the target's files lie */
    char *path, *exe;
    struct prb_core_file file;
    struct back *backs; /* as many as maps.items */
};

/* ---- texts ---- */

static bool core_text(struct prb_proc *proc, const char *name, struct prb_buf *out,
                      struct prb_error *err)
{
    const struct prb_proc_text *text = prb_proc_saved_text(proc, name);
    if (!text)
        return prb_fail(err, PRB_UNSUPPORTED, "%s does not have the process's %s",
                        ((struct core *)proc)->path, name);
    prb_buf_add(out, text->text.data ? text->text.data : "", text->text.len);
    return true;
}

static bool core_tids(struct prb_proc *proc, struct prb_buf *out, struct prb_error *err)
{
    return core_text(proc, "task", out, err);
}

static bool keep_unless_kept(struct core *core, const char *name, const char *text, size_t len,
                             struct prb_error *err)
{
    return prb_proc_saved_text(&core->base, name) ||
           prb_proc_save_text(&core->base, name, text, len) || prb_nomem(err);
}

static unsigned long long ticks(uint64_t microseconds)
{
    return microseconds / (1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Names of threads other than the first are in no note. */
static bool make_tasks(struct core *core, struct prb_error *err)
{
    const struct prb_core_file *file = &core->file;
    PRB_AUTO(prb_buf) struct prb_buf tids = {0}, text = {0};
    char name[48];
    bool listed = prb_proc_saved_text(&core->base, "task") != NULL;
    for (size_t i = 0; i < file->thread_count && !listed; i++) {
        const struct prb_core_thread *thread = &file->threads[i];
        bool leader = thread->tid == file->pid;
        text.len = 0;
        prb_buf_addf(&text, "%d (%s) %c 0 0 0 0 0 0 0 0 0 0 %llu %llu", (int)thread->tid,
                     leader ? file->name : "", leader && file->state ? file->state : '?',
                     ticks(thread->utime), ticks(thread->stime));
        snprintf(name, sizeof name, "task/%d/stat", (int)thread->tid);
        prb_buf_addf(&tids, "%d\n", (int)thread->tid);
        if (!prb_buf_ok(&text) || !keep_unless_kept(core, name, text.data, text.len, err))
            return false;
        if (leader && !keep_unless_kept(core, "stat", text.data, text.len, err))
            return false;
    }
    return listed || keep_unless_kept(core, "task", tids.data, tids.len, err);
}

/* Of a snapshot only what was asked for when it was taken: a core has it all in its memory. */
static bool make_arguments(struct core *core, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf arguments = {0}, environment = {0};
    struct prb_mem *mem = core->base.snapshot ? NULL : prb_proc_mem(&core->base, NULL);
    const char *noted = core->file.args;
    if (mem && prb_core_arguments(&core->file, mem, &arguments, &environment))
        return keep_unless_kept(core, "cmdline", arguments.data, arguments.len, err) &&
               (!environment.len ||
                keep_unless_kept(core, "environ", environment.data, environment.len, err));
    return !noted[0] || keep_unless_kept(core, "cmdline", noted, strlen(noted) + 1, err);
}

static bool make_texts(struct core *core, struct prb_error *err)
{
    const struct prb_core_file *file = &core->file;
    PRB_AUTO(prb_buf) struct prb_buf maps = {0}, comm = {0};
    if (file->texts && !prb_core_texts_read(&core->base, file->texts, file->texts_len, err))
        return false;
    if (!prb_proc_saved_text(&core->base, "maps") && !prb_core_maps_text(file, &maps, err))
        return false;
    if (maps.len && !keep_unless_kept(core, "maps", maps.data, maps.len, err))
        return false;
    prb_buf_addf(&comm, "%s\n", file->name);
    return (!file->name[0] || keep_unless_kept(core, "comm", comm.data, comm.len, err)) &&
           make_arguments(core, err) &&
           (!file->auxv ||
            keep_unless_kept(core, "auxv", (const char *)file->auxv, file->auxv_len, err)) &&
           make_tasks(core, err);
}

static bool core_check(struct prb_proc *proc, struct prb_error *err)
{
    (void)proc;
    (void)err;
    return true;
}

/* ---- registers ---- */

/* The number beside tid in lines "TID HEX"; `otherwise` when the text is missing. */
static uint64_t known_mask(const struct prb_proc *proc, pid_t tid, uint64_t otherwise)
{
    const struct prb_proc_text *text = prb_proc_saved_text(proc, PRB_TEXT_REGISTERS);
    if (!text || !text->text.data)
        return otherwise;
    for (char *at = text->text.data, *end; *at; at = end) {
        long its = strtol(at, &end, 10);
        if (end == at)
            break;
        uint64_t mask = strtoull(end, &end, 16);
        if (its == tid)
            return mask;
    }
    return 0;
}

static bool core_registers(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                           struct prb_error *err)
{
    struct core *core = (struct core *)proc;
    for (size_t i = 0; i < core->file.thread_count; i++) {
        const struct prb_core_thread *thread = &core->file.threads[i];
        struct prb_registers registers;
        if (thread->tid != tid)
            continue;
        if (!prb_arch_registers(core->file.arch, thread->registers, thread->registers_len,
                                &registers, err))
            return false;
        registers.known &= known_mask(proc, tid, registers.known);
        if (!registers.known)
            break;
        *out = registers;
        return true;
    }
    return prb_fail(err, PRB_UNSUPPORTED, "%s has no registers of thread %d", core->path, (int)tid);
}

/* ---- files ---- */

static size_t held(void *context, prb_addr addr, void *buf, size_t len)
{
    struct prb_mem *mem = prb_proc_mem(context, NULL);
    return mem ? prb_mem_core_read_own(mem, addr, buf, len) : 0;
}

/* Where the file of a map begins in memory: the map of its first page at or below. */
static const struct prb_map *first_map(const struct prb_maps *maps, const struct prb_map *map)
{
    for (const struct prb_map *at = map;; at--) {
        if (at->inode == map->inode && at->offset == 0)
            return at;
        if (at == maps->items)
            return NULL;
    }
}

/* The build id that the process had there: as the snapshot says, or its memory. */
static size_t build_id_then(struct prb_proc *proc, const struct prb_map *map, uint8_t out[64])
{
    const struct prb_maps *maps = prb_proc_maps(proc, false, NULL);
    /* A caller may hold a copy of the map. */
    const struct prb_map *ours = maps ? prb_maps_find(maps, map->start) : NULL;
    const struct prb_map *first = ours ? first_map(maps, ours) : NULL;
    const struct prb_proc_text *text = prb_proc_saved_text(proc, PRB_TEXT_BUILD_IDS);
    if (!first)
        return 0;
    for (char *at = text && text->text.data ? text->text.data : "", *end; *at; at = end) {
        prb_addr start = strtoull(at, &end, 16);
        if (end == at)
            break;
        end += strspn(end, " ");
        size_t n = 0;
        unsigned byte;
        for (; n < 64 && sscanf(end, "%2x", &byte) == 1 && *end != '\n' && end[1]; n++, end += 2)
            out[n] = (uint8_t)byte;
        if (start == first->start)
            return n;
        end += strcspn(end, "\n");
    }
    return prb_core_build_id(held, proc, first->start, out);
}

static bool is_same_file(struct prb_proc *proc, const struct prb_map *map, int fd,
                         struct prb_error *err)
{
    uint8_t then[64], now[64];
    size_t n = build_id_then(proc, map, then);
    int copy = n ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    PRB_AUTO(prb_elf) struct prb_elf *elf = copy < 0 ? NULL : prb_elf_open(copy, map->path, NULL);
    size_t m = elf ? prb_elf_build_id(elf, now) : 0;
    if (n == 0 || m == 0 || (n == m && memcmp(then, now, n) == 0))
        return true;
    prb_fail(err, PRB_CORRUPT,
             "%s is not the file that the process had mapped: its build id is another", map->path);
    return prb_error_remedy(err, "Name the folder that holds the target's files with --sysroot, or "
                                 "its executable with --exe");
}

/* The executable is the file in whose map the process began. */
static bool is_executable(struct core *core, const struct prb_map *map)
{
    const struct prb_maps *maps = prb_proc_maps(&core->base, false, NULL);
    prb_addr entry = prb_core_auxv(&core->file, AT_ENTRY);
    const struct prb_map *its = maps && entry ? prb_maps_find(maps, entry) : NULL;
    if (its)
        return its->inode == map->inode;
    return strcmp(prb_base_name(map->path), prb_base_name(core->exe)) == 0;
}

static int core_open_path(struct prb_proc *proc, const char *path)
{
    return prb_open_below(((struct core *)proc)->root, path);
}

static int core_open_map(struct prb_proc *proc, const struct prb_map *map, struct prb_error *err)
{
    struct core *core = (struct core *)proc;
    if (map->inode == 0) {
        prb_fail(err, PRB_NOT_FOUND, "no file is mapped at 0x%llx", (unsigned long long)map->start);
        return -1;
    }
    bool given = core->exe && is_executable(core, map);
    PRB_AUTO_FD int fd = given ? open(core->exe, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                               : core_open_path(proc, map->path);
    if (fd < 0) {
        prb_fail_sys(err, errno, "cannot open %s, which the process had mapped",
                     given ? core->exe : map->path);
        prb_error_remedy(err, "Name the folder that holds the target's files with --sysroot");
        return -1;
    }
    if (!is_same_file(proc, map, fd, err))
        return -1;
    int result = fd;
    fd = -1;
    return result;
}

/* ---- memory ---- */

/*
 * Whether a map's bytes are surely those of the file.  A core leaves out only what nobody wrote to;
 * a snapshot leaves out whatever decoding did not touch, so there the file's own headers must say
 * that the place is never written to (relocation writes to some that is read-only later).
 */
static bool file_serves(struct core *core, const struct prb_map *map, int fd)
{
    if (!core->base.snapshot)
        return true;
    int copy = map->writable ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    PRB_AUTO(prb_elf) struct prb_elf *elf = copy < 0 ? NULL : prb_elf_open(copy, map->path, NULL);
    return elf && !prb_elf_written(elf, map->offset, map->end - map->start);
}

static size_t read_file_behind(void *context, prb_addr addr, void *buf, size_t len)
{
    struct core *core = context;
    const struct prb_maps *maps = prb_proc_maps(&core->base, false, NULL);
    const struct prb_map *map = maps ? prb_maps_find(maps, addr) : NULL;
    if (!map || !map->inode)
        return 0;
    if (!core->backs) {
        core->backs = calloc(maps->count, sizeof *core->backs);
        if (!core->backs)
            return 0;
    }
    struct back *back = &core->backs[map - maps->items];
    if (!back->tried) {
        back->tried = true;
        PRB_AUTO_FD int fd = core_open_map(&core->base, map, NULL);
        back->fd = -1;
        if (fd >= 0 && file_serves(core, map, fd)) {
            back->fd = fd;
            fd = -1;
        }
    }
    uint64_t offset;
    if (back->fd < 0 || __builtin_add_overflow(map->offset, addr - map->start, &offset))
        return 0;
    size_t room = (size_t)(map->end - addr);
    ssize_t n = pread(back->fd, buf, len < room ? len : room, (off_t)offset);
    return n > 0 ? (size_t)n : 0;
}

static struct prb_mem *core_mem_new(struct prb_proc *proc, struct prb_error *err)
{
    struct core *core = (struct core *)proc;
    size_t count = core->file.segment_count, n = 0;
    PRB_AUTO_FREE struct prb_piece *pieces = calloc(count ? count : 1, sizeof *pieces);
    if (!pieces)
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < count; i++) {
        const struct prb_core_segment *segment = &core->file.segments[i];
        if (segment->file_len)
            pieces[n++] = (struct prb_piece){segment->addr, segment->file_len, segment->offset};
    }
    return prb_mem_core_new(core->fd, pieces, n, read_file_behind, core, err);
}

/* ---- opening ---- */

static void core_free(struct prb_proc *proc)
{
    struct core *core = (struct core *)proc;
    for (size_t i = 0; core->backs && i < proc->maps.count; i++) {
        if (core->backs[i].tried && core->backs[i].fd >= 0)
            close(core->backs[i].fd);
    }
    free(core->backs);
    prb_proc_deinit(proc);
    prb_core_file_deinit(&core->file);
    if (core->fd >= 0)
        close(core->fd);
    if (core->root >= 0)
        close(core->root);
    free(core->path);
    free(core->exe);
    free(core);
}

static const struct prb_proc_ops core_ops = {
    .name = "core",
    .text = core_text,
    .tids = core_tids,
    .check = core_check,
    .registers = core_registers,
    .open_map = core_open_map,
    .open_path = core_open_path,
    .mem_new = core_mem_new,
    .free = core_free,
};

static bool read_head(const char *path, char head[20])
{
    memset(head, 0, 20);
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && pread(fd, head, 20, 0) > 0;
}

bool prb_proc_is_core(const char *path)
{
    char head[20];
    uint16_t type;
    if (!read_head(path, head))
        return false;
    memcpy(&type, head + 16, sizeof type);
    return prb_packing(head) != NULL || (memcmp(head, ELFMAG, SELFMAG) == 0 && type == ET_CORE);
}

static bool is_of_a_file(const struct prb_core_file *file, prb_addr addr)
{
    for (size_t i = 0; i < file->mapped_count; i++)
        if (addr >= file->mapped[i].start && addr < file->mapped[i].end)
            return true;
    return false;
}

/* coredump_filter (core(5)) can leave out all that decoding needs.  The libraries' files only have
 * the data as it was at the start. */
static bool has_memory(const struct prb_core_file *file, const char *path, struct prb_error *err)
{
    bool left_out = false;
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct prb_core_segment *segment = &file->segments[i];
        if (!segment->writable || is_of_a_file(file, segment->addr))
            continue;
        if (segment->file_len)
            return true;
        left_out = true;
    }
    if (!left_out)
        return true;
    prb_fail(err, PRB_UNSUPPORTED, "%s has no stacks and no heap: private memory was left out",
             path);
    return prb_error_remedy(err, "Before it crashes: echo 0x33 >/proc/PID/coredump_filter");
}

/* The core's file, unpacked where it is packed. */
static int open_plain(const char *path, struct prb_error *err)
{
    char head[20];
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        prb_fail_sys(err, errno, "cannot open %s", path);
        return -1;
    }
    if (read_head(path, head) && prb_packing(head))
        return prb_unpack(fd, path, err);
    int result = fd;
    fd = -1;
    return result;
}

/* What stands behind a name of our own text, which begins a line; NULL: no snapshot, or no such. */
static const char *info_of(const struct core *core, const char *name)
{
    const struct prb_proc_text *info = prb_proc_saved_text(&core->base, PRB_TEXT_INFO);
    size_t len = strlen(name);
    for (const char *at = info ? info->text.data : NULL; at && *at; at += *at == '\n') {
        if (strncmp(at, name, len) == 0 && at[len] == ' ')
            return at + len + 1;
        at += strcspn(at, "\n");
    }
    return NULL;
}

static bool check_format(const struct core *core, const char *path, struct prb_error *err)
{
    const char *format = info_of(core, "format");
    if (!format || strtol(format, NULL, 10) <= PRB_SNAPSHOT_FORMAT)
        return true;
    return prb_fail(err, PRB_UNSUPPORTED, "%s was written by a later version", path);
}

static double time_of(struct core *core)
{
    const char *at = info_of(core, "time");
    struct stat file;
    if (at)
        return strtod(at, NULL);
    return fstat(core->fd, &file) == 0
               ? (double)file.st_mtim.tv_sec + (double)file.st_mtim.tv_nsec / 1e9
               : 0;
}

struct prb_proc *prb_proc_open_core(const char *path, const char *exe, const char *sysroot,
                                    struct prb_error *err)
{
    struct core *core = calloc(1, sizeof *core);
    if (!core)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_proc) struct prb_proc *proc = &core->base;
    core->base.ops = &core_ops;
    core->base.inner = -1;
    core->root = -1;
    core->fd = open_plain(path, err);
    if (core->fd < 0)
        return NULL;
    core->path = strdup(path);
    core->exe = exe ? strdup(exe) : NULL;
    if (!core->path || (exe && !core->exe))
        return PRB_NULL(prb_nomem(err));
    core->root = open(sysroot ? sysroot : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (core->root < 0)
        return PRB_NULL(prb_fail_sys(err, errno, "cannot open the folder %s", sysroot));
    if (!prb_core_file_read(core->fd, path, &core->file, err))
        return NULL;
    if (!core->file.texts && !has_memory(&core->file, path, err))
        return NULL;
    core->base.pid = core->file.pid;
    core->base.snapshot = core->file.texts != NULL;
    if (core->file.thread_count && core->file.threads[0].signal) {
        core->base.signal = core->file.threads[0].signal;
        core->base.signalled = core->file.threads[0].tid;
    }
    if (!make_texts(core, err) || !check_format(core, path, err))
        return NULL;
    core->base.time = time_of(core);
    return PRB_STEAL(proc);
}
