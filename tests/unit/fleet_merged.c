/* fleet: merged stacks as bytes, whole and hostile. */
#include "unit.h"

#include <string.h>

#include "base/protobuf.h"
#include "fleet/answers/packed.h"

static const struct prb_merged_frame frames[] = {
    {PRB_FRAME_PYTHON, "work", "train.py", 70, "x = 1\n"},
    {PRB_FRAME_PYTHON, "main", "train.py", 300000, ""},
    {PRB_FRAME_NATIVE, "caf\xc3\xa9\xff", "", -1, ""}, /* a byte that is not UTF-8 */
};
static const uint32_t stacks[][2] = {{0, 1}, {2, 1}};
static struct prb_rank_range all[] = {{0, 2}, {5, 5}}, some[] = {{2, 2}};
static const struct prb_merged_group groups[] = {
    {"MainThread", stacks[0], 2, {all, 2, 2}, 4},
    {"worker-#", stacks[1], 2, {some, 1, 1}, 300},
    {"none", stacks[1], 0, {some, 1, 1}, 1},
};

static void pack(struct prb_buf *out)
{
    prb_merged_pack_begin(out, 3);
    for (int i = 0; i < 3; i++)
        prb_merged_pack_frame(out, &frames[i]);
    prb_proto_varint(out, 3);
    for (int i = 0; i < 3; i++)
        prb_merged_pack_group(out, &groups[i]);
}

/* Of a host that has ranks 0 to last; NULL: refused, and then nothing was added. */
static struct prb_merged *unpack(const char *data, size_t len, int last)
{
    struct prb_error err = {0};
    PRB_AUTO(prb_rank_set) struct prb_rank_set allowed = {0};
    struct prb_merged *merged = prb_merged_new(NULL, &err);
    char *exact = malloc(len + !len); /* a read behind it is seen by the sanitizer */
    assert_true(merged && exact && prb_rank_set_add(&allowed, 0, last));
    memcpy(exact, data, len);
    bool good = prb_merged_add_packed(merged, exact, len, &allowed, &err);
    free(exact);
    if (good)
        return merged;
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_int_equal(prb_merged_count(merged), 0);
    prb_merged_free(merged);
    return NULL;
}

static void test_whole(void **state)
{
    (void)state;
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    pack(&bytes);
    PRB_AUTO(prb_merged) struct prb_merged *merged = unpack(bytes.data, bytes.len, 5);
    assert_non_null(merged);
    assert_int_equal(prb_merged_count(merged), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct prb_merged_group *group = prb_merged_group(merged, i);
        PRB_AUTO_FREE char *ranks = prb_rank_set_text(&group->ranks);
        assert_string_equal(ranks, i ? "2" : "0-2,5");
        assert_string_equal(group->thread, groups[i].thread);
        assert_int_equal(group->threads, groups[i].threads);
        assert_int_equal(group->frame_count, groups[i].frame_count);
    }
    const struct prb_merged_frame *frame =
        prb_merged_frame(merged, prb_merged_group(merged, 0)->frames[0]);
    assert_string_equal(frame->name, "work");
    assert_string_equal(frame->locals, "x = 1\n");
    assert_int_equal(frame->line, 70);
    frame = prb_merged_frame(merged, prb_merged_group(merged, 1)->frames[0]);
    assert_string_equal(frame->name, "caf\xc3\xa9\xef\xbf\xbd");
    assert_int_equal(frame->line, 0);
    assert_int_equal(frame->kind, PRB_FRAME_NATIVE);
}

/* Another host's add to the same groups. */
static void test_again(void **state)
{
    (void)state;
    struct prb_error err;
    size_t len;
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    PRB_AUTO(prb_rank_set) struct prb_rank_set allowed = {0};
    pack(&bytes);
    PRB_AUTO(prb_merged) struct prb_merged *merged = unpack(bytes.data, bytes.len, 5);
    PRB_AUTO_FREE char *once = prb_merged_pack(merged, &len, &err);
    assert_true(prb_rank_set_add(&allowed, 0, 5));
    assert_true(prb_merged_add_packed(merged, once, len, &allowed, &err));
    assert_int_equal(prb_merged_count(merged), 3);
    assert_int_equal(prb_merged_group(merged, 0)->threads, 8);
}

static void test_other_ranks(void **state)
{
    (void)state;
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    pack(&bytes);
    assert_null(unpack(bytes.data, bytes.len, 4));
}

/* Cut at every byte: refused; with every byte changed: refused, or other stacks. */
static void test_damaged(void **state)
{
    (void)state;
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    pack(&bytes);
    for (size_t len = 0; len < bytes.len; len++)
        assert_null(unpack(bytes.data, len, 5));
    for (size_t i = 0; i < bytes.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] ^= (char)(1 << bit);
            prb_merged_free(unpack(bytes.data, bytes.len, 5));
            bytes.data[i] ^= (char)(1 << bit);
        }
    prb_buf_addc(&bytes, '\0');
    assert_null(unpack(bytes.data, bytes.len, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_other_ranks),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
