/* mem/record, mem/core, proc/core, proc/save: snapshots there and back, cores of gdb, and damaged
 * files. */
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/core_file.h"
#include "proc/elf.h"

#define PAGE 4096

static char folder[] = "/tmp/prb-core-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- recording ---- */

struct run {
    prb_addr addr;
    size_t len;
    uint8_t first;
};
struct runs {
    struct run items[8];
    size_t count;
};

static bool take_run(void *context, prb_addr addr, const void *data, size_t len)
{
    struct runs *runs = context;
    assert_in_range(runs->count, 0, 7);
    runs->items[runs->count++] = (struct run){addr, len, *(const uint8_t *)data};
    return true;
}

static void record_keeps_the_latest_pages(void **state)
{
    (void)state;
    struct prb_error err;
    uint8_t *pages =
        mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 8; i++)
        memset(pages + i * PAGE, i + 1, PAGE);
    munmap(pages + 6 * PAGE, PAGE);
    PRB_AUTO(prb_mem) struct prb_mem *self = prb_mem_self_new(&err);
    PRB_AUTO(prb_mem) struct prb_mem *record = prb_mem_record_new(self, &err);
    prb_addr base = (uintptr_t)pages;
    uint8_t buf[2 * PAGE];
    assert_ok(prb_mem_read(record, base + 3 * PAGE + 5, buf, 8, &err), err);
    assert_int_equal(buf[0], 4);
    assert_ok(prb_mem_read(record, base + PAGE - 4, buf, 8, &err), err); /* two pages */
    assert_int_equal(buf[3], 1);
    assert_int_equal(buf[4], 2);
    assert_int_equal(prb_mem_read_some(record, base + 6 * PAGE - 4, buf, 8), 4);
    assert_int_equal(prb_mem_read_some(record, base + 6 * PAGE, buf, 8), 0);
    assert_int_equal(prb_mem_read_some(record, UINT64_MAX - 3, buf, 8), 0);
    assert_false(prb_mem_read(record, base, buf, SIZE_MAX / 2, &err));
    pages[3 * PAGE] = 99;
    pages[3 * PAGE + 6] = 99;
    assert_ok(prb_mem_read(record, base + 3 * PAGE, buf, 2 * PAGE, &err), err);
    assert_int_equal(buf[0], 99);
    struct runs runs = {0};
    assert_true(prb_mem_record_each(record, take_run, &runs));
    assert_int_equal(runs.count, 2);
    assert_int_equal(runs.items[0].addr, base);
    assert_int_equal(runs.items[0].len, 2 * PAGE);
    assert_int_equal(runs.items[0].first, 1);
    assert_int_equal(runs.items[1].addr, base + 3 * PAGE);
    assert_int_equal(runs.items[1].len, 3 * PAGE);
    assert_int_equal(runs.items[1].first, 99);
    munmap(pages, 6 * PAGE);
    munmap(pages + 7 * PAGE, PAGE);
}

/* What was read before stands as it was copied; what was not comes as it is, and is counted. */
static void a_record_stands_still(void **state)
{
    (void)state;
    struct prb_error err;
    uint8_t *pages =
        mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PRB_AUTO(prb_mem) struct prb_mem *self = prb_mem_self_new(&err);
    PRB_AUTO(prb_mem) struct prb_mem *record = prb_mem_record_new(self, &err);
    prb_addr base = (uintptr_t)pages;
    uint8_t buf[2 * PAGE];
    pages[0] = 1;
    assert_ok(prb_mem_read(record, base, buf, 1, &err), err);
    pages[0] = 2;
    pages[5] = 3;
    assert_ok(prb_mem_record_renew(record, &err), err);
    prb_mem_record_set(record, PRB_RECORD_STILL);
    pages[0] = pages[5] = 4;
    pages[PAGE] = 5;
    assert_ok(prb_mem_read(record, base, buf, 8, &err), err);
    assert_int_equal(buf[0], 2);
    assert_int_equal(buf[5], 3);
    assert_int_equal(prb_mem_record_late(record), 0);
    assert_ok(prb_mem_read(record, base, buf, 2 * PAGE, &err), err);
    assert_int_equal(buf[0], 2);
    assert_int_equal(buf[PAGE], 5);
    assert_int_equal(prb_mem_record_late(record), 1);
    pages[PAGE] = 6;
    assert_ok(prb_mem_read(record, base + PAGE, buf, 1, &err), err);
    assert_int_equal(buf[0], 5);
    prb_mem_record_set(record, PRB_RECORD_OFF);
    assert_ok(prb_mem_read(record, base, buf, 2 * PAGE, &err), err);
    assert_int_equal(buf[0], 4);
    assert_int_equal(buf[PAGE], 6);
    struct runs runs = {0};
    assert_true(prb_mem_record_each(record, take_run, &runs));
    assert_int_equal(runs.count, 0);
    munmap(pages, 4 * PAGE);
}

/* ---- pieces of a file ---- */

static size_t fallback(void *context, prb_addr addr, void *buf, size_t len)
{
    (void)context;
    if (addr < 50 || addr >= 300)
        return 0;
    size_t n = 300 - addr < len ? 300 - addr : len;
    memset(buf, 'f', n);
    return n;
}

static void pieces_and_what_lies_between(void **state)
{
    (void)state;
    struct prb_error err;
    int fd = memfd_create("core", MFD_CLOEXEC);
    assert_int_equal(write(fd, "aaaaaaaaaabbbbbbbbbb", 20), 20);
    const struct prb_piece pieces[] = {{100, 10, 0}, {110, 5, 10}, {200, 5, 15}, {400, 10, 15}};
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_core_new(fd, pieces, 4, fallback, NULL, &err);
    char buf[300];
    assert_int_equal(prb_mem_read_some(mem, 40, buf, 10), 0);
    assert_int_equal(prb_mem_read_some(mem, 90, buf, 300), 210);
    assert_memory_equal(buf, "ffffffffffaaaaaaaaaabbbbbf", 26);
    assert_memory_equal(buf + 109, "fbbbbbf", 7);
    assert_int_equal(prb_mem_core_read_own(mem, 90, buf, 10), 0);
    assert_int_equal(prb_mem_core_read_own(mem, 105, buf, 300), 10);
    assert_int_equal(prb_mem_read_some(mem, 400, buf, 10), 5); /* the file ends */
    assert_int_equal(prb_mem_read_some(mem, UINT64_MAX - 1, buf, 10), 0);
    close(fd);
}

/* ---- snapshots ---- */

static uint64_t marks[3 * PAGE / 8] __attribute__((aligned(PAGE)));

/* A snapshot of this process: one page of marks, and texts. */
static uint64_t save_self(const char *path)
{
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    assert_non_null(proc);
    prb_proc_record(proc);
    PRB_AUTO(prb_mem) struct prb_mem *record = prb_mem_record_new(prb_proc_mem(proc, &err), &err);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        marks[i] = i * 1000003;
    uint64_t word;
    assert_ok(prb_mem_u64(record, (uintptr_t)&marks[600], &word, &err), err);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    assert_ok(prb_proc_tasks(proc, &tasks, &err), err);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    assert_ok(prb_proc_text(proc, "comm", &text, &err), err);
    struct prb_saved_task saved[2] = {{.tid = tasks.items[0].tid}, {.tid = 999999}};
    const struct prb_arch *arch = prb_arch_host();
    prb_register_set(&saved[0].registers, arch->sp, 0x7ffc1234);
    prb_register_set(&saved[0].registers, arch->pc, 0x401000);
    uint64_t bytes = 0;
    assert_ok(prb_proc_save(proc, record, saved, 2, path, &bytes, &err), err);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, bytes);
    assert_int_equal(info.st_mode & 0777, 0600);
    return bytes;
}

static void snapshot_there_and_back(void **state)
{
    (void)state;
    const char *path = in_folder("snapshot");
    save_self(path);
    assert_true(prb_proc_is_core(path));
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open_core(path, NULL, NULL, &err);
    if (!proc)
        fail_msg("%s", err.text);
    assert_true(prb_proc_is_snapshot(proc) && !prb_proc_live(proc));
    assert_int_equal(prb_proc_pid(proc), getpid());
    assert_true(prb_proc_time(proc) > 1.6e9);
    assert_ok(prb_proc_check(proc, &err), err);
    struct prb_mem *mem = prb_proc_mem(proc, &err);
    uint64_t word;
    assert_ok(prb_mem_u64(mem, (uintptr_t)&marks[512], &word, &err), err);
    assert_int_equal(word, marks[512]);
    assert_false(prb_mem_u64(mem, (uintptr_t)&marks[0], &word, &err)); /* data that nobody read */
    assert_int_equal(err.code, PRB_FAULT);
    /* Code comes from the file. */
    uint8_t code[16];
    assert_ok(prb_mem_read(mem, (uintptr_t)snapshot_there_and_back, code, 16, &err), err);
    assert_memory_equal(code, (void *)snapshot_there_and_back, 16);

    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    assert_ok(prb_proc_tasks(proc, &tasks, &err), err);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(tasks.items[0].tid, getpid());
    assert_string_equal(tasks.items[0].comm, "core");
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    assert_ok(prb_proc_text(proc, "comm", &text, &err), err);
    assert_string_equal(text.data, "core\n");
    assert_false(prb_proc_text(proc, "environ", &text, &err)); /* was not asked for */
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    struct prb_registers registers;
    assert_ok(prb_proc_registers(proc, getpid(), &registers, &err), err);
    const struct prb_arch *arch = prb_arch_host();
    assert_int_equal(registers.value[arch->sp], 0x7ffc1234);
    assert_true(prb_register_known(&registers, arch->pc));
    assert_false(prb_register_known(&registers, arch->fp));
    assert_false(prb_proc_registers(proc, 999999, &registers, &err));
    assert_false(prb_proc_registers(proc, 1, &registers, &err));
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    assert_ok(prb_modules_init(&modules, proc, &err), err);
    struct prb_module *own = prb_modules_find(&modules, (uintptr_t)snapshot_there_and_back);
    assert_non_null(own);
    assert_non_null(prb_modules_elf(&modules, own, &err));
    unlink(path);
}

static void other_executable_is_refused(void **state)
{
    (void)state;
    const char *path = in_folder("snapshot");
    save_self(path);
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open_core(path, "/bin/sh", NULL, &err);
    assert_non_null(proc);
    const struct prb_maps *maps = prb_proc_maps(proc, false, &err);
    const struct prb_map *own = prb_maps_find(maps, (uintptr_t)other_executable_is_refused);
    assert_int_equal(prb_proc_open_map(proc, own, &err), -1);
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_non_null(strstr(err.text, "build id"));
    assert_true(err.remedy[0]);
    PRB_AUTO(prb_proc) struct prb_proc *other = prb_proc_open_core(path, NULL, folder, &err);
    assert_non_null(other);
    assert_int_equal(prb_proc_open_map(other, own, &err), -1);
    assert_int_equal(err.code, PRB_NOT_FOUND);
    assert_null(prb_proc_open_core(path, NULL, "/no/such/folder", &err));
    unlink(path);
}

static void failed_writing_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = in_folder("snapshot");
    save_self(path);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    pid_t child = fork();
    if (child == 0) {
        struct prb_error err;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){8192, 8192});
        struct prb_proc *proc = prb_proc_open(getppid(), &err);
        struct prb_mem *record = proc ? prb_mem_record_new(prb_proc_mem(proc, &err), &err) : NULL;
        uint64_t bytes, word;
        bool failed = record && prb_mem_u64(record, (uintptr_t)&marks[600], &word, &err) &&
                      !prb_proc_save(proc, record, NULL, 0, path, &bytes, &err);
        _exit(failed && err.code == PRB_IO ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(before.st_ino, after.st_ino);
    unlink(path); /* remove_folder tells when anything else is left */
}

/* ---- damage ---- */

static int write_file(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    assert_int_equal(write(fd, data, len), len);
    return fd;
}

static uint8_t *read_file(const char *path, size_t len)
{
    uint8_t *data = malloc(len);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, data, len), len);
    close(fd);
    return data;
}

static void truncated_is_said(void **state)
{
    (void)state;
    const char *path = in_folder("snapshot");
    size_t len = save_self(path);
    PRB_AUTO_FREE uint8_t *data = read_file(path, len);
    for (size_t cut = 0; cut < len; cut += cut < 8192 ? 13 : 4099) {
        close(write_file(path, data, cut));
        struct prb_error err = {0};
        struct prb_proc *proc = prb_proc_open_core(path, NULL, NULL, &err);
        if (proc)
            fail_msg("accepted %zu of %zu bytes", cut, len);
        assert_int_equal(err.code, PRB_CORRUPT);
        if (cut >= 4096)
            assert_non_null(strstr(err.text, "bytes are missing"));
    }
    unlink(path);
}

/* Opens it, and asks everything. */
static void use(const char *path)
{
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open_core(path, NULL, NULL, &err);
    if (!proc)
        return;
    const struct prb_maps *maps = prb_proc_maps(proc, false, &err);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    struct prb_registers registers;
    if (prb_proc_tasks(proc, &tasks, &err))
        prb_proc_registers(proc, tasks.items[0].tid, &registers, &err);
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    uint8_t bytes[64];
    struct prb_mem *mem = prb_proc_mem(proc, &err);
    prb_mem_read_some(mem, (uintptr_t)&marks[510], bytes, sizeof bytes);
    if (maps && prb_modules_init(&modules, proc, &err) && modules.count)
        prb_modules_elf(&modules, &modules.items[0], &err);
    for (size_t i = 0; maps && i < maps->count; i += maps->count / 4 + 1)
        prb_mem_read_some(mem, maps->items[i].start, bytes, sizeof bytes);
}

static void damaged_everywhere(void **state)
{
    (void)state;
    const char *path = in_folder("snapshot");
    size_t len = save_self(path);
    PRB_AUTO_FREE uint8_t *data = read_file(path, len);
    int fd = write_file(path, data, len);
    static const uint8_t values[] = {0, 0xff, 0x7f};
    for (size_t at = 0; at < len; at += at < 1024 ? 1 : at < 8192 ? 7 : 331) {
        for (size_t k = 0; k < sizeof values; k++) {
            assert_int_equal(pwrite(fd, &values[k], 1, (off_t)at), 1);
            use(path);
        }
        assert_int_equal(pwrite(fd, data + at, 1, (off_t)at), 1);
    }
    use(path);
    close(fd);
    unlink(path);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    struct prb_error err;
    const char *path = in_folder("other");
    assert_null(prb_proc_open_core("/proc/self/exe", NULL, NULL, &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_non_null(strstr(err.text, "not a core"));
    assert_false(prb_proc_is_core("/proc/self/exe"));
    assert_null(prb_proc_open_core("/no/such/file", NULL, NULL, &err));
    assert_int_equal(err.code, PRB_NOT_FOUND);
    assert_null(prb_proc_open_core("/tmp", NULL, NULL, &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_false(prb_proc_is_core("/tmp"));
    assert_false(prb_proc_is_core("/no/such/file"));
    static const char *const packed[] = {"\x28\xb5\x2f\xfd no zstd", "\x04\x22\x4d\x18 no lz4",
                                         "\xfd\x37zXZ no xz", "\x1f\x8b no gzip"};
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        close(write_file(path, packed[i], strlen(packed[i])));
        assert_true(prb_proc_is_core(path));
        assert_null(prb_proc_open_core(path, NULL, NULL, &err));
        assert_true(err.code == PRB_CORRUPT || (err.code == PRB_UNSUPPORTED && err.remedy[0]));
    }
    unlink(path);
}

/* ---- maps of a core ---- */

static void maps_from_segments_and_files(void **state)
{
    (void)state;
    struct prb_core_segment segments[] = {
        {.addr = 0x1000, .memory_len = 0x1000, .readable = true},
        {.addr = 0x3000, .memory_len = 0x3000, .readable = true, .writable = true},
        {.addr = 0x9000, .memory_len = 0x1000, .readable = true, .executable = true},
    };
    struct prb_core_mapped mapped[] = {
        {0x20000, 0x21000, 0, "/data"},
        {0x1000, 0x2000, 0, "/lib/a\nb"},
        {0x2000, 0x3000, 0x1000, "/lib/a\nb"},
        {0x3000, 0x4000, 0x2000, "/lib/a\nb"},
    };
    const uint64_t auxv[] = {AT_SYSINFO_EHDR, 0x9000, AT_NULL, 0};
    struct prb_core_file core = {.segments = segments,
                                 .segment_count = 3,
                                 .mapped = mapped,
                                 .mapped_count = 4,
                                 .auxv = (const uint8_t *)auxv,
                                 .auxv_len = sizeof auxv};
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_error err;
    assert_ok(prb_core_maps_text(&core, &text, &err), err);
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    assert_ok(prb_maps_parse(text.data, text.len, &maps, &err), err);
    static const struct prb_map want[] = {
        {.start = 0x1000, .end = 0x2000, .offset = 0, .path = "/lib/a\nb"},
        {.start = 0x2000, .end = 0x3000, .offset = 0x1000, .executable = true, .path = "/lib/a\nb"},
        {.start = 0x3000, .end = 0x4000, .offset = 0x2000, .writable = true, .path = "/lib/a\nb"},
        {.start = 0x4000, .end = 0x6000, .writable = true, .path = ""},
        {.start = 0x9000, .end = 0xa000, .executable = true, .path = "[vdso]"},
        {.start = 0x20000, .end = 0x21000, .path = "/data"},
    };
    assert_int_equal(maps.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct prb_map *map = &maps.items[i];
        assert_int_equal(map->start, want[i].start);
        assert_int_equal(map->end, want[i].end);
        assert_int_equal(map->offset, want[i].offset);
        assert_int_equal(map->writable, want[i].writable);
        assert_int_equal(map->executable, want[i].executable);
        assert_string_equal(map->path, want[i].path);
        assert_int_equal(map->inode != 0, map->path[0] == '/');
    }
    assert_int_equal(maps.items[0].inode, maps.items[2].inode);
    assert_int_not_equal(maps.items[0].inode, maps.items[5].inode);
    assert_int_equal(prb_core_auxv(&core, AT_ENTRY), 0);
}

/* ---- a core that gdb made ---- */

static void same_as_own(const char *name, const struct prb_buf *text)
{
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *self = prb_proc_open(getpid(), &err);
    PRB_AUTO(prb_buf) struct prb_buf own = {0};
    assert_non_null(self);
    assert_ok(prb_proc_text(self, name, &own, &err), err);
    assert_int_equal(text->len, own.len);
    assert_memory_equal(text->data, own.data, own.len);
}

static void core_of_gdb(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* terabytes of shadow memory */
#endif
    if (system("command -v gcore >/dev/null 2>&1") != 0)
        skip();
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        marks[i] = i * 7;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    char command[256], path[160];
    snprintf(command, sizeof command, "gcore -o %s/core %d >/dev/null 2>&1", folder, (int)child);
    snprintf(path, sizeof path, "%s/core.%d", folder, (int)child);
    int failed = system(command);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (failed)
        skip(); /* no right to trace */
    struct prb_error err;
    assert_true(prb_proc_is_core(path));
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open_core(path, NULL, NULL, &err);
    if (!proc)
        fail_msg("%s", err.text);
    assert_false(prb_proc_is_snapshot(proc));
    assert_int_equal(prb_proc_pid(proc), child);
    struct prb_mem *mem = prb_proc_mem(proc, &err);
    uint64_t word;
    assert_ok(prb_mem_u64(mem, (uintptr_t)&marks[1000], &word, &err), err);
    assert_int_equal(word, 7000);
    uint8_t code[64];
    assert_ok(prb_mem_read(mem, (uintptr_t)core_of_gdb, code, sizeof code, &err), err);
    assert_memory_equal(code, (void *)core_of_gdb, sizeof code);
    struct prb_registers registers;
    assert_ok(prb_proc_registers(proc, child, &registers, &err), err);
    const struct prb_maps *maps = prb_proc_maps(proc, false, &err);
    assert_non_null(maps);
    const struct prb_map *map = prb_maps_find(maps, registers.value[prb_arch_host()->sp]);
    assert_non_null(map);
    assert_string_equal(map->path, "[stack]");
    map = prb_maps_find(maps, registers.value[prb_arch_host()->pc]);
    assert_non_null(map);
    assert_true(map->executable);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    assert_ok(prb_proc_tasks(proc, &tasks, &err), err);
    assert_int_equal(tasks.count, 1);
    assert_string_equal(tasks.items[0].comm, "core");
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    assert_ok(prb_proc_text(proc, "cmdline", &text, &err), err);
    same_as_own("cmdline", &text);
    text.len = 0;
    assert_ok(prb_proc_text(proc, "environ", &text, &err), err);
    same_as_own("environ", &text);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_keeps_the_latest_pages),
        cmocka_unit_test(a_record_stands_still),
        cmocka_unit_test(pieces_and_what_lies_between),
        cmocka_unit_test(snapshot_there_and_back),
        cmocka_unit_test(other_executable_is_refused),
        cmocka_unit_test(failed_writing_leaves_the_old_file),
        cmocka_unit_test(truncated_is_said),
        cmocka_unit_test(damaged_everywhere),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(maps_from_segments_and_files),
        cmocka_unit_test(core_of_gdb),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
