/* Profiles being made: every entry once, the timeline through its file and back, stays in
 * functions. */
#include "unit.h"

#include <string.h>

#include "profile/format/format.h"
#include "profile/packed.h"
#include "profile/profile.h"

static struct prb_profile_box *new_box(void)
{
    struct prb_error err = {0};
    struct prb_profile_box *box = prb_profile_new(&err);
    const struct prb_profile_process process = {.pid = 1, .rank = -1};
    const struct prb_profile_thread thread = {.tid = 1, .name = "one"};
    assert_non_null(box);
    box->timeline.wanted = true;
    prb_profile_process(box, &process);
    prb_profile_thread(box, &thread);
    return box;
}

/* The stack of functions named by letters, outermost first. */
static uint32_t stack(struct prb_profile_box *box, const char *letters)
{
    uint32_t node = 0;
    for (; *letters; letters++) {
        const char name[2] = {*letters, 0};
        const char *kept = prb_profile_text(box, name);
        const struct prb_profile_function function = {.name = kept, .qualname = kept};
        node = prb_profile_node(box, node,
                                prb_profile_frame(box, prb_profile_function(box, &function), 7));
    }
    return node;
}

static void test_every_entry_once(void **state)
{
    (void)state;
    struct prb_profile_box *box = new_box();
    char letters[3] = "aa";
    for (int round = 0; round < 2; round++)
        for (letters[0] = 'a'; letters[0] <= 'z'; letters[0]++)
            for (letters[1] = 'a'; letters[1] <= 'z'; letters[1]++)
                prb_profile_weight(box, 0, stack(box, letters));
    assert_int_equal(box->text_count, 26);
    assert_int_equal(box->profile.function_count, 26);
    assert_int_equal(box->profile.frame_count, 26);
    assert_int_equal(box->profile.node_count, 1 + 26 + 26 * 26);
    assert_int_equal(box->profile.weight_count, 26 * 26);
    for (uint32_t i = 1; i < box->profile.node_count; i++)
        assert_true(box->profile.nodes[i].parent < i);
    assert_false(box->failed);
    prb_profile_free(&box->profile);
}

#define STAYS 2000000 /* more than memory should hold */

static bool check_interval(void *context, const struct prb_profile_interval *interval)
{
    uint64_t *next = context, i = (*next)++;
    assert_int_equal(interval->node, i * 7919 % 100000);
    assert_int_equal(interval->state, i % 5);
    assert_int_equal((uint64_t)(interval->start * 1e9 + 0.5), i * 1000 + i % 3);
    assert_int_equal(interval->samples, i % 200 + 1);
    assert_int_equal(interval->ns, i << i % 30);
    return true;
}

static void test_timeline_through_its_file(void **state)
{
    (void)state;
    struct prb_error err = {0};
    struct prb_profile_box *box = new_box();
    for (uint64_t i = 0; i < STAYS; i++)
        prb_profile_add_interval(box, 0, (uint32_t)(i * 7919 % 100000), i % 5, i * 1000 + i % 3,
                                 i * 1000 + 900, i % 200 + 1, i << i % 30);
    assert_true(box->timeline.spilled > 0);
    assert_true(box->timeline.bytes.len < PRB_TIMELINE_KEPT);
    for (int round = 0; round < 2; round++) {
        uint64_t next = 0;
        assert_ok(prb_profile_each_interval(&box->profile, check_interval, &next, &err), err);
        assert_int_equal(next, STAYS);
    }
    prb_profile_free(&box->profile);
}

static bool add_call(void *context, const struct prb_profile_call *call)
{
    prb_buf_addf(context, "%u:%d-%d:%llu/%llu ", call->depth, (int)(call->start * 10 + 0.5),
                 (int)(call->end * 10 + 0.5), (unsigned long long)call->self_samples,
                 (unsigned long long)call->samples);
    return true;
}

static void add(struct prb_profile_box *box, const char *letters, unsigned from, unsigned to)
{
    prb_profile_add_interval(box, 0, stack(box, letters), 0, from * 100000000u, to * 100000000u,
                             to - from, 1);
}

/* What two stacks have in common goes on; a gap ends all. */
static void test_visits(void **state)
{
    (void)state;
    struct prb_error err = {0};
    struct prb_profile_box *box = new_box();
    PRB_AUTO(prb_buf) struct prb_buf told = {0};
    add(box, "abc", 0, 2);
    add(box, "abd", 2, 3);
    add(box, "ab", 3, 5);
    add(box, "ab", 6, 7);
    assert_ok(prb_profile_each_call(&box->profile, add_call, &told, &err), err);
    assert_string_equal(told.data, "2:0-2:2/2 2:2-3:1/1 1:0-5:2/5 0:0-5:0/5 1:6-7:1/1 0:6-7:0/1 ");
    prb_profile_free(&box->profile);
}

/* Stacks that look the same under a style are one. */
static void test_flame(void **state)
{
    (void)state;
    struct prb_error err = {0};
    struct prb_profile_box *box = new_box();
    const struct prb_profile_style style = {.function = true};
    PRB_AUTO(prb_flame) struct prb_flame flame = {0};
    const char *name = prb_profile_text(box, "f");
    const struct prb_profile_function function = {
        .name = name, .qualname = name, .filename = name, .first_line = 3};
    uint32_t number = prb_profile_function(box, &function);
    for (int line = 1; line <= 4; line++) {
        uint32_t node = prb_profile_node(box, 0, prb_profile_frame(box, number, line));
        uint32_t weight = prb_profile_weight(box, 0, node);
        box->weights[weight].samples = (uint64_t)line;
    }
    assert_ok(prb_flame_build(&flame, &box->profile, &style, &err), err);
    assert_int_equal(flame.node_count, 2);
    assert_string_equal(flame.labels[flame.nodes[1].label], "f (f:3)");
    assert_int_equal(flame.nodes[0].total, 10);
    prb_profile_free(&box->profile);
}

static void add_samples(struct prb_profile_box *box, const char *letters, uint64_t samples)
{
    uint32_t weight = prb_profile_weight(box, 0, stack(box, letters));
    box->weights[weight].samples += samples;
    box->weights[weight].ns += samples * 1000;
    box->profile.samples += samples;
}

static uint64_t samples_of(const struct prb_profile *profile, const char *letters)
{
    struct prb_profile_box *box = (struct prb_profile_box *)profile;
    uint32_t node = stack(box, letters);
    uint64_t sum = 0;
    for (size_t i = 0; i < profile->weight_count; i++)
        sum += profile->weights[i].node == node ? profile->weights[i].samples : 0;
    return sum;
}

/* Two ranks, packed, become one; packed and added again, their processes go on. */
static void test_packed(void **state)
{
    (void)state;
    struct prb_error err = {0};
    struct prb_profile_box *all = prb_profile_new(&err);
    assert_non_null(all);
    for (int round = 0; round < 2; round++)
        for (int rank = 0; rank < 2; rank++) {
            PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
            struct prb_profile_box *box = new_box();
            box->processes[0].rank = rank;
            box->profile.seconds = 2;
            add_samples(box, "abc", 3);
            add_samples(box, rank ? "ab" : "xy", 5);
            assert_ok(prb_profile_pack(&box->profile, false, &bytes, &err), err);
            struct prb_profile *got = prb_profile_unpack(bytes.data, bytes.len, &err);
            assert_non_null(got);
            assert_int_equal(got->node_count, box->profile.node_count);
            assert_ok(prb_profile_add(all, got, 2 * round, &err), err);
            prb_profile_free(got);
            prb_profile_free(&box->profile);
        }
    assert_int_equal(all->profile.process_count, 2);
    assert_int_equal(all->profile.thread_count, 2);
    assert_int_equal(all->profile.samples, 32);
    assert_int_equal(samples_of(&all->profile, "abc"), 12);
    assert_int_equal(samples_of(&all->profile, "ab"), 10);
    assert_int_equal(samples_of(&all->profile, "xy"), 10);
    assert_true(all->profile.seconds == 4);
    prb_profile_free(&all->profile);
}

/* What is cut short, or has another byte anywhere, is refused or harmless. */
static void test_packed_is_hostile(void **state)
{
    (void)state;
    struct prb_error err = {0};
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_profile_box *box = new_box();
    add_samples(box, "abc", 3);
    add_samples(box, "xy", 500);
    assert_ok(prb_profile_pack(&box->profile, true, &bytes, &err), err);
    prb_profile_free(&box->profile);
    for (size_t len = 0; len < bytes.len; len++) {
        char *cut = memcpy(test_malloc(len + 1), bytes.data, len);
        assert_null(prb_profile_unpack(cut, len, &err));
        assert_int_equal(err.code, PRB_CORRUPT);
        test_free(cut);
    }
    static const char others[] = {0, 1, 2, 0x7f, (char)0x80, (char)0xff};
    for (size_t at = 0; at < bytes.len; at++)
        for (size_t i = 0; i < sizeof others; i++) {
            char kept = bytes.data[at];
            bytes.data[at] = others[i];
            struct prb_profile *got = prb_profile_unpack(bytes.data, bytes.len, &err);
            struct prb_profile_box *all = prb_profile_new(&err);
            assert_true(!got || prb_profile_add(all, got, 0, &err));
            prb_profile_free(got);
            prb_profile_free(&all->profile);
            bytes.data[at] = kept;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_entry_once), cmocka_unit_test(test_timeline_through_its_file),
        cmocka_unit_test(test_visits),           cmocka_unit_test(test_flame),
        cmocka_unit_test(test_packed),           cmocka_unit_test(test_packed_is_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
