/* base: errors, buffer, arena, descriptors. */
#include "unit.h"

#include "old_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash_map.h"
#include "base/index.h"

static void error_texts(void **state)
{
    (void)state;
    struct prb_error err;
    assert_false(prb_fail_sys(&err, EPERM, "cannot read %d", 7));
    assert_int_equal(err.code, PRB_PERMISSION);
    assert_string_equal(err.text, "cannot read 7: Operation not permitted");
    assert_false(prb_error_remedy(&err, "be root"));
    assert_false(prb_error_prefix(&err, "process %d", 1));
    assert_string_equal(err.text, "process 1: cannot read 7: Operation not permitted");
    assert_string_equal(err.remedy, "be root");
    assert_false(prb_fail(NULL, PRB_CORRUPT, "no place to write"));
}

static void error_is_cut_not_overrun(void **state)
{
    (void)state;
    struct prb_error err;
    char longer[2 * sizeof err.text];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    prb_fail(&err, PRB_IO, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    prb_error_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void every_code_has_a_name_and_status(void **state)
{
    (void)state;
#define CODE(name, text, exit_code)                                                                \
    assert_string_equal(prb_code_name(PRB_##name), text);                                          \
    assert_int_equal(prb_code_exit(PRB_##name), exit_code);
    PRB_CODES(CODE)
#undef CODE
    assert_string_equal(prb_code_name((enum prb_code)999), "unknown");
}

static void buffer_grows_and_gives(void **state)
{
    (void)state;
    PRB_AUTO(prb_buf) struct prb_buf buf = {0};
    for (int i = 0; i < 1000; i++)
        prb_buf_addf(&buf, "%d,", i);
    assert_true(prb_buf_ok(&buf));
    assert_int_equal(buf.len, 10 * 2 + 90 * 3 + 900 * 4);
    PRB_AUTO_FREE char *text = prb_buf_steal(&buf);
    assert_memory_equal(text, "0,1,2,", 6);
    assert_int_equal(buf.len, 0);
    PRB_AUTO_FREE char *empty = prb_buf_steal(&buf);
    assert_string_equal(empty, "");
}

static void utf8(void **state)
{
    (void)state;
    PRB_AUTO(prb_buf) struct prb_buf buf = {0};
    prb_buf_add_utf8(&buf, 'a');
    prb_buf_add_utf8(&buf, 0xe9);
    prb_buf_add_utf8(&buf, 0x20ac);
    prb_buf_add_utf8(&buf, 0x1f600);
    prb_buf_add_utf8(&buf, 0xdc80);
    assert_string_equal(buf.data, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\udc80");
}

static void arena_keeps_pieces(void **state)
{
    (void)state;
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    char *first = prb_arena_strdup(&arena, "first");
    char *big = prb_arena_alloc(&arena, 100000);
    assert_int_equal(big[99999], 0);
    memset(big, 1, 100000);
    for (int i = 0; i < 1000; i++)
        assert_non_null(prb_arena_printf(&arena, "piece %d", i));
    assert_string_equal(first, "first");
    assert_null(prb_arena_alloc(&arena, SIZE_MAX));
}

#define LONG 100000

/* A file of LONG bytes, to be read from its beginning. */
static int long_file(void)
{
    int fd = memfd_create("long", MFD_CLOEXEC);
    PRB_AUTO_FREE char *bytes = malloc(LONG);
    assert_non_null(bytes);
    memset(bytes, 'x', LONG);
    assert_true(prb_write_all(fd, bytes, LONG));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void descriptor_is_read_to_its_end(void **state)
{
    (void)state;
    PRB_AUTO_FD int fd = long_file();
    PRB_AUTO(prb_buf) struct prb_buf buf = {0}, more = {0}, none = {0};
    prb_buf_adds(&buf, "head");
    assert_true(prb_buf_read(&buf, fd, LONG));
    assert_int_equal(buf.len, 4 + LONG);
    assert_memory_equal(buf.data, "headxx", 6);
    assert_int_equal(buf.data[buf.len], '\0');
    assert_true(prb_buf_read(&none, fd, 0));
    assert_string_equal(none.data, "");

    lseek(fd, 0, SEEK_SET);
    assert_false(prb_buf_read(&more, fd, LONG - 1));
    assert_int_equal(errno, EFBIG);
    assert_false(prb_buf_read(&none, -1, LONG));
    assert_int_equal(errno, EBADF);
    none.failed = true;
    assert_false(prb_buf_read(&none, fd, LONG));
    assert_int_equal(errno, ENOMEM);
}

static void place_is_read_whole(void **state)
{
    (void)state;
    PRB_AUTO_FD int fd = long_file();
    char text[8] = "";
    assert_int_equal(prb_read_at(fd, text, 4, LONG - 4), 4);
    assert_string_equal(text, "xxxx");
    errno = EIO;
    assert_int_equal(prb_read_at(fd, text, 4, LONG - 3), 3);
    assert_int_equal(errno, 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(prb_read_at(-1, text, 4, 0), 0);
    assert_int_equal(errno, EBADF);
}

static void some_is_what_one_read_gives(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    PRB_AUTO_FD int from = ends[0];
    PRB_AUTO_FD int to = ends[1];
    PRB_AUTO(prb_buf) struct prb_buf buf = {0};
    assert_int_equal(prb_buf_read_some(&buf, from, 8), -1);
    assert_int_equal(errno, EAGAIN);
    assert_true(prb_write_all(to, "abcdef", 6));
    assert_int_equal(prb_buf_read_some(&buf, from, 4), 4);
    assert_int_equal(prb_buf_read_some(&buf, from, 4), 2);
    assert_string_equal(buf.data, "abcdef");
    close(to);
    to = -1;
    assert_int_equal(prb_buf_read_some(&buf, from, 4), 0);
}

static void short_text_is_cut_to_its_room(void **state)
{
    (void)state;
    char path[32], text[8] = "before";
    PRB_AUTO_FD int fd = long_file();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(prb_read_text(path, text, sizeof text), 7);
    assert_string_equal(text, "xxxxxxx");
    assert_int_equal(prb_read_text("/nonexistent", text, sizeof text), -1);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(text, "");
    assert_int_equal(prb_read_text("/", text, sizeof text), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(prb_read_text("/dev/null", text, sizeof text), 0);
}

static void full_disk_is_told(void **state)
{
    (void)state;
    PRB_AUTO_FD int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_false(prb_write_all(full, "x", 1));
    assert_int_equal(errno, ENOSPC);
    assert_true(prb_write_all(full, "", 0));
}

static void hash_map_finds_what_was_added(void **state)
{
    (void)state;
    struct prb_hash_map map = {0};
    assert_null(prb_hash_map_pointer(&map, 7));
    for (uint64_t key = 1; key <= 10000; key++)
        prb_hash_map_add(&map, key << 4)->number = key;
    assert_int_equal(map.count, 10000);
    assert_true(map.capacity >= 2 * map.count);
    for (uint64_t key = 1; key <= 10000; key++) {
        assert_int_equal(prb_hash_map_number(&map, key << 4), key);
        assert_int_equal(prb_hash_map_number(&map, (key << 4) + 1), 0);
    }
    assert_int_equal(prb_hash_map_add(&map, 16)->number, 1);
    assert_int_equal(map.count, 10000);
    assert_int_equal(prb_hash_map_number(&map, 0), 0);
    prb_hash_map_clear(&map);
    assert_int_equal(prb_hash_map_number(&map, 16), 0);
    prb_hash_map_deinit(&map);
}

static uint64_t word_hash(const void *items, uint32_t item)
{
    const char *word = ((const char *const *)items)[item];
    return prb_hash_bytes(word, strlen(word));
}

static bool word_is(const void *items, uint32_t item, const void *key)
{
    return strcmp(((const char *const *)items)[item], key) == 0;
}

static void index_finds_items_of_an_array(void **state)
{
    (void)state;
    static const char *const words[] = {"maps", "stat", "status", "cmdline"};
    const struct prb_index_kind kind = {word_hash, word_is};
    struct prb_index index = {0};
    assert_int_equal(prb_index_find(&index, &kind, words, 1, "maps"), PRB_NO_ITEM);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(prb_index_add(&index, &kind, words, word_hash(words, i), i));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(prb_index_find(&index, &kind, words, word_hash(words, i), words[i]), i);
    assert_int_equal(prb_index_find(&index, &kind, words, word_hash(words, 0), "comm"),
                     PRB_NO_ITEM);
    prb_index_deinit(&index);
}

static void base_name_is_behind_the_last_slash(void **state)
{
    (void)state;
    assert_string_equal(prb_base_name("/usr/bin/python3"), "python3");
    assert_string_equal(prb_base_name("python3"), "python3");
    assert_string_equal(prb_base_name("/usr/"), "");
}

#define DESCRIPTORS 300 /* more than one reading of /proc/self/fd lists */

/* In a child, as the filter stays: its exit status is the number of the check that failed. */
static int closes(bool on_old_kernel)
{
    int first = dup(0), last = -1;
    if (on_old_kernel && !hide_calls_after(LINUX_5_4))
        return 1;
    for (int i = 0; i < DESCRIPTORS; i++)
        last = fcntl(0, F_DUPFD, first);
    if (last < first + DESCRIPTORS || !prb_close_on_exec((unsigned)first + 2))
        return 2;
    for (int fd = first; fd <= last; fd++)
        if (fcntl(fd, F_GETFD) != (fd < first + 2 ? 0 : FD_CLOEXEC))
            return 3;
    errno = 0;
    if (!prb_close_descriptors((unsigned)first + 1, (unsigned)last - 1) ||
        !prb_close_descriptors(9, 8) || errno != 0)
        return 4;
    for (int fd = first; fd <= last; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != (fd == first || fd == last))
            return 5;
    return prb_close_descriptors((unsigned)first, UINT_MAX) && fcntl(last, F_GETFD) < 0 &&
                   fcntl(first, F_GETFD) < 0 && fcntl(first - 1, F_GETFD) >= 0
               ? 0
               : 6;
}

static void descriptors_are_closed(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(closes(old));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_texts),
        cmocka_unit_test(error_is_cut_not_overrun),
        cmocka_unit_test(every_code_has_a_name_and_status),
        cmocka_unit_test(buffer_grows_and_gives),
        cmocka_unit_test(utf8),
        cmocka_unit_test(arena_keeps_pieces),
        cmocka_unit_test(descriptor_is_read_to_its_end),
        cmocka_unit_test(place_is_read_whole),
        cmocka_unit_test(some_is_what_one_read_gives),
        cmocka_unit_test(short_text_is_cut_to_its_room),
        cmocka_unit_test(full_disk_is_told),
        cmocka_unit_test(hash_map_finds_what_was_added),
        cmocka_unit_test(index_finds_items_of_an_array),
        cmocka_unit_test(base_name_is_behind_the_last_slash),
        cmocka_unit_test(descriptors_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
