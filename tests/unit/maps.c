/* proc/maps: the text of /proc/PID/maps. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "proc/proc.h"

static bool parse(const char *text, struct prb_maps *out, struct prb_error *err)
{
    return prb_maps_parse(text, strlen(text), out, err);
}

static void lines(void **state)
{
    (void)state;
    static const char text[] =
        "5581000-5582000 r-xp 00001000 fe:02 26933                      /usr/bin/a b\n"
        "5582000-5583000 rw-s 00000000 00:00 0 \n"
        "5583000-5584000 r--p 00000000 08:01 7                          /tmp/x (deleted)\n"
        "5584000-5585000 ---p 00000000 08:01 8                          /tmp/a\\012b\\012\n"
        "7ffe000-7fff000 rw-p 00000000 00:00 0                          [stack]\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0        [vsyscall]";
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    struct prb_error err;
    assert_ok(parse(text, &maps, &err), err);
    assert_int_equal(maps.count, 6);
    const struct prb_map *map = maps.items;
    assert_int_equal(map->start, 0x5581000);
    assert_int_equal(map->end, 0x5582000);
    assert_int_equal(map->offset, 0x1000);
    assert_int_equal(map->dev_major, 0xfe);
    assert_int_equal(map->dev_minor, 2);
    assert_int_equal(map->inode, 26933);
    assert_true(map->readable && !map->writable && map->executable && !map->shared);
    assert_string_equal(map->path, "/usr/bin/a b");
    assert_true(map[1].shared && map[1].writable && !map[1].executable);
    assert_string_equal(map[1].path, "");
    assert_true(map[2].deleted);
    assert_string_equal(map[2].path, "/tmp/x");
    assert_false(map[3].readable);
    assert_string_equal(map[3].path, "/tmp/a\nb\n");
    assert_string_equal(map[4].path, "[stack]");
    assert_int_equal(map[5].end, 0xffffffffff601000);
    assert_string_equal(map[5].path, "[vsyscall]");

    assert_ptr_equal(prb_maps_find(&maps, 0x5581000), map);
    assert_ptr_equal(prb_maps_find(&maps, 0x5582fff), map + 1);
    assert_null(prb_maps_find(&maps, 0x5585000));
    assert_null(prb_maps_find(&maps, 0));
    assert_null(prb_maps_find(&maps, UINT64_MAX));
    assert_ptr_equal(prb_maps_find(&maps, 0xffffffffff600fff), map + 5);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\n",
        "nonsense\n",
        "1000\n",
        "2000-1000 r--p 0 00:00 0\n",
        "1000-1000 r--p 0 00:00 0\n",
        "1000-2000 r-\n",
        "1000-2000 r--p\n",
        "1000-2000 r--p zz 00:00 0\n",
        "1000-2000 r--p 0 0000 0\n",
        "1000-2000 r--p 0 00:00 x\n",
        "10000000000000000-20000000000000000 r--p 0 00:00 0\n",
        "1000-2000 r--p 0 00:00 99999999999999999999999\n",
        "1000-3000 r--p 0 00:00 0\n2000-4000 r--p 0 00:00 0\n",
        "3000-4000 r--p 0 00:00 0\n1000-2000 r--p 0 00:00 0\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct prb_maps maps;
        struct prb_error err;
        if (parse(texts[i], &maps, &err))
            fail_msg("accepted: %s", texts[i]);
        assert_int_equal(err.code, PRB_CORRUPT);
    }
}

static void nothing_is_no_map(void **state)
{
    (void)state;
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    struct prb_error err;
    assert_ok(parse("", &maps, &err), err);
    assert_int_equal(maps.count, 0);
    assert_null(prb_maps_find(&maps, 1));
}

/* However it is cut: refused or understood, never more lines than there are. */
static void cut_everywhere(void **state)
{
    (void)state;
    static const char text[] =
        "1000-2000 r--p 00000000 fe:02 26933    /usr/bin/a\\012b (deleted)\n"
        "2000-3000 r-xp 00001000 fe:02 26933    /usr/bin/a\\012b (deleted)\n";
    for (size_t len = 0; len < sizeof text; len++) {
        PRB_AUTO_FREE char *cut = malloc(len ? len : 1);
        memcpy(cut, text, len);
        PRB_AUTO(prb_maps) struct prb_maps maps = {0};
        struct prb_error err;
        if (prb_maps_parse(cut, len, &maps, &err))
            assert_in_range(maps.count, 0, 2);
    }
}

static void own_maps(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    assert_non_null(proc);
    const struct prb_maps *maps = prb_proc_maps(proc, false, &err);
    assert_non_null(maps);
    static int data = 1;
    int local = data;
    const struct prb_map *stack = prb_maps_find(maps, (uintptr_t)&local);
    assert_non_null(stack);
    assert_string_equal(stack->path, "[stack]");
    const struct prb_map *of_data = prb_maps_find(maps, (uintptr_t)&data);
    assert_non_null(of_data);
    assert_true(of_data->writable && of_data->inode);
    const struct prb_map *code = prb_maps_find(maps, (uintptr_t)own_maps);
    assert_non_null(code);
    assert_true(code->executable);
    assert_string_equal(code->path, of_data->path);
}

/* The maps of files, asked for one by one: of the kernel, and of a process that saves its texts, as
 * on kernels that cannot be asked. */
static void one_at_a_time(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *asked = prb_proc_open(getpid(), &err);
    PRB_AUTO(prb_proc) struct prb_proc *saved = prb_proc_open(getpid(), &err);
    assert_true(asked && saved);
    prb_proc_record(saved);
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    assert_ok(prb_proc_maps_now(asked, &maps, &err), err);
    size_t files = 0, code = 0;
    for (size_t i = 0; i < maps.count; i++) {
        const struct prb_map *map = &maps.items[i];
        for (int of_code = 0; map->inode && of_code <= map->executable; of_code++) {
            struct prb_map one, other;
            files++, code += of_code;
            assert_true(prb_proc_map_from(asked, map->end - 1, of_code, &one));
            assert_true(prb_proc_map_from(saved, map->end - 1, of_code, &other));
            assert_int_equal(one.start, map->start);
            assert_int_equal(one.end, map->end);
            assert_int_equal(one.inode, map->inode);
            assert_int_equal(one.executable, map->executable);
            assert_int_equal(other.start, map->start);
        }
    }
    assert_true(files > code && code > 2);
    struct prb_map none;
    for (int of_code = 0; of_code < 2; of_code++) {
        assert_false(prb_proc_map_from(asked, UINT64_MAX, of_code, &none));
        assert_false(prb_proc_map_from(saved, UINT64_MAX, of_code, &none));
        assert_true(prb_proc_map_from(asked, 1, of_code, &none));
    }
    prb_proc_forget_maps(saved);
    assert_true(prb_proc_map_from(saved, 1, true, &none));
}

/* The map at an address, asked for once: of the kernel, and (saved) of the text of all maps. */
static void at_an_address(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *asked = prb_proc_open(getpid(), &err);
    PRB_AUTO(prb_proc) struct prb_proc *saved = prb_proc_open(getpid(), &err);
    assert_true(asked && saved);
    prb_proc_record(saved);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *mapped = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(mapped + page, page, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(munmap(mapped + 2 * page, page), 0);
    const prb_addr start = (uintptr_t)mapped;
    struct prb_proc *procs[] = {asked, saved};
    for (size_t i = 0; i < 2; i++) {
        const struct prb_map *code = prb_proc_map_at(procs[i], (uintptr_t)at_an_address);
        assert_true(code && code->executable && code->inode);
        assert_null(prb_proc_map_at(procs[i], start + 2 * page));
        const struct prb_map *second = prb_proc_map_at(procs[i], start + page);
        assert_true(second && second->writable && second->end == start + 2 * page);
        assert_int_equal(second->start, start + page);
        assert_int_equal(mprotect(mapped + page, page, PROT_READ), 0);
        second = prb_proc_map_at(procs[i], start + page);
        assert_true(second && second->writable); /* as it was */
        prb_proc_forget_maps(procs[i]);
        second = prb_proc_map_at(procs[i], start + page);
        assert_true(second && !second->writable);
        assert_int_equal(mprotect(mapped + page, page, PROT_READ | PROT_WRITE), 0);
    }
    /* One question too many: all maps are read, and give the same answers. */
    for (int i = 0; i < 1000; i++)
        assert_null(prb_proc_map_at(asked, start + 2 * page));
    const struct prb_map *code = prb_proc_map_at(asked, (uintptr_t)at_an_address);
    assert_true(code && code->executable && code->inode);
    munmap(mapped, 2 * page);
}

/* A file by the beginning of its name; what is known not to be it is not asked again, and what is
 * not known is. */
static void by_name(void **state)
{
    (void)state;
    PRB_AUTO(prb_hash_map) struct prb_hash_map others = {0};
    PRB_AUTO_FD int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool found = true;
    if (!prb_code_maps_search(fd, "libpython", &others, &found))
        skip(); /* the kernel cannot be asked */
    assert_false(found);
    size_t files = others.count;
    assert_true(files > 2);
    assert_true(prb_code_maps_search(fd, "libpython", &others, &found));
    assert_false(found);
    assert_int_equal(others.count, files);
    prb_hash_map_clear(&others);
    assert_true(prb_code_maps_search(fd, "libc", &others, &found));
    assert_true(found && others.count < files);
    PRB_AUTO_FD int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_false(prb_code_maps_search(none, "libc", &others, &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(nothing_is_no_map),
        cmocka_unit_test(cut_everywhere),
        cmocka_unit_test(own_maps),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(at_an_address),
        cmocka_unit_test(by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
