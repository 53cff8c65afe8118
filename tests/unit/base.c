/* base: errors, buffer, arena. */
#include "unit.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_texts),
        cmocka_unit_test(error_is_cut_not_overrun),
        cmocka_unit_test(every_code_has_a_name_and_status),
        cmocka_unit_test(buffer_grows_and_gives),
        cmocka_unit_test(utf8),
        cmocka_unit_test(arena_keeps_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
