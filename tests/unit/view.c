/* mem/view: what a walk sees, and what a refresh reads, compares and forgets. */
#include "unit.h"

#include "mem/view.h"

#define PAGE 4096
#define BASE 0x10000
#define PAGES 64

/* Memory that counts its ranges, and can lose a page. */
struct fake {
    uint8_t bytes[PAGES * PAGE];
    bool lost[PAGES];
    size_t reads;
    prb_addr last; /* address of the last one */
};

static size_t fake_read(void *context, prb_addr addr, void *buf, size_t len)
{
    struct fake *fake = context;
    fake->reads++;
    fake->last = addr;
    size_t n = 0;
    for (; n < len; n++) {
        prb_addr at = addr + n - BASE;
        if (addr + n < BASE || at >= sizeof fake->bytes || fake->lost[at / PAGE])
            break;
        ((uint8_t *)buf)[n] = fake->bytes[at];
    }
    return n;
}

struct room {
    struct fake *fake;
    struct prb_mem *mem;
    struct prb_view *view[2];
};

static int setup(void **state)
{
    struct room *room = calloc(1, sizeof *room);
    room->fake = calloc(1, sizeof *room->fake);
    for (size_t i = 0; i < sizeof room->fake->bytes; i++)
        room->fake->bytes[i] = (uint8_t)(i * 31 + i / 256);
    room->mem = prb_mem_callback_new(fake_read, room->fake, NULL);
    room->view[0] = prb_view_new(room->mem, PAGE, NULL);
    room->view[1] = prb_view_new(room->mem, PAGE, NULL);
    *state = room;
    return 0;
}

static int teardown(void **state)
{
    struct room *room = *state;
    prb_view_free(room->view[0]);
    prb_view_free(room->view[1]);
    prb_mem_free(room->mem);
    free(room->fake);
    free(room);
    return 0;
}

static void expect(struct room *room, size_t at, size_t len)
{
    const void *got = prb_view_get(room->view[0], BASE + at, len);
    assert_non_null(got);
    assert_memory_equal(got, room->fake->bytes + at, len);
}

static bool refresh(struct room *room)
{
    bool same;
    struct prb_error err;
    assert_ok(prb_view_refresh(room->view, 1, &same, &err), err);
    return same;
}

static void get_reads_a_page_once(void **state)
{
    struct room *room = *state;
    expect(room, 100, 8);
    expect(room, 0, 4096);
    expect(room, 4000, 96);
    assert_int_equal(room->fake->reads, 1);
    expect(room, 4090, 12);
    assert_int_equal(room->fake->reads, 2);
    expect(room, 3, PRB_VIEW_MAX - PAGE);
    assert_null(prb_view_get(room->view[0], BASE, PRB_VIEW_MAX + 1));
    assert_null(prb_view_get(room->view[0], UINT64_MAX - 3, 8));
    assert_null(prb_view_get(room->view[0], UINT64_MAX - 3, 4));
    assert_null(prb_view_get(room->view[0], BASE - 1, 4));
    assert_null(prb_view_get(room->view[0], BASE + sizeof room->fake->bytes - 1, 4));
    assert_non_null(prb_view_get(room->view[0], 0, 0));
    uint64_t word;
    assert_true(prb_view_u64(room->view[0], BASE + 16, &word));
    assert_memory_equal(&word, room->fake->bytes + 16, 8);
    assert_false(prb_view_u64(room->view[0], 16, &word));
}

static void refresh_compares_what_was_touched(void **state)
{
    struct room *room = *state;
    expect(room, 1000, 8);
    expect(room, 3 * PAGE, 200);
    assert_true(refresh(room));
    room->fake->bytes[2000]++; /* same page, not touched */
    assert_true(refresh(room));
    room->fake->bytes[1007]++;
    assert_false(refresh(room));
    assert_true(refresh(room));
    size_t reads = room->fake->reads;
    expect(room, 1000, 8);
    expect(room, 3 * PAGE, 200);
    assert_int_equal(room->fake->reads, reads);
    expect(room, 2000, 8); /* was not read again: comes now, fresh */
    assert_true(room->fake->reads > reads);
}

static void spans_of_a_page_come_together(void **state)
{
    struct room *room = *state;
    expect(room, 1000, 8);
    expect(room, 3000, 8);
    expect(room, PAGE + 10, 8); /* near enough to be joined */
    expect(room, 6 * PAGE, 8);
    size_t reads = room->fake->reads;
    assert_true(refresh(room));
    assert_int_equal(room->fake->reads - reads, 2);
    room->fake->bytes[2000]++; /* between two touched spans of one page: seen as a difference */
    assert_false(refresh(room));
}

static void untouched_pages_are_forgotten(void **state)
{
    struct room *room = *state;
    expect(room, 0, 8);
    expect(room, 8 * PAGE, 8);
    refresh(room);
    for (int i = 0; i < 2; i++) {
        expect(room, 0, 8);
        room->fake->bytes[8 * PAGE]++;
        assert_true(refresh(room)); /* the walk did not look there */
    }
    size_t reads = room->fake->reads;
    refresh(room);
    assert_int_equal(room->fake->reads - reads, 1);
    expect(room, 8 * PAGE, 8);
}

static void without_a_walk_nothing_is_forgotten(void **state)
{
    struct room *room = *state;
    expect(room, 0, 8);
    expect(room, 8 * PAGE, 8);
    for (int i = 0; i < 5; i++)
        assert_true(refresh(room));
    room->fake->bytes[8 * PAGE]++;
    assert_false(refresh(room));
}

static void lost_page(void **state)
{
    struct room *room = *state;
    expect(room, 5 * PAGE - 4, 8);
    expect(room, 9 * PAGE, 8);
    room->fake->lost[5] = true;
    assert_false(refresh(room));
    assert_null(prb_view_get(room->view[0], BASE + 5 * PAGE, 8));
    expect(room, 5 * PAGE - 4, 4);
    expect(room, 9 * PAGE, 8);
    assert_true(refresh(room));
    room->fake->lost[5] = false;
    expect(room, 5 * PAGE - 4, 8);
    assert_true(refresh(room));
}

static void wanted_pages_come_along(void **state)
{
    struct room *room = *state;
    for (int i = 1; i < 9; i++)
        prb_view_prefetch(room->view[0], BASE + (prb_addr)i * PAGE + 10, 20);
    uint64_t calls = room->mem->calls;
    expect(room, 0, 8);
    for (size_t i = 1; i < 9; i++)
        expect(room, i * PAGE + 10, 20);
    assert_int_equal(room->mem->calls - calls, 1);
    prb_view_clear(room->view[0]);
    prb_view_prefetch(room->view[0], BASE + 2 * PAGE - 8, 16);
    assert_true(refresh(room));
    calls = room->mem->calls;
    expect(room, 2 * PAGE - 8, 16);
    assert_int_equal(room->mem->calls, calls);
    prb_view_prefetch(room->view[0], UINT64_MAX - 8, 16);
    prb_view_prefetch(room->view[0], UINT64_MAX - 8, 8);
    assert_true(refresh(room));
}

static void several_views_share_a_call(void **state)
{
    struct room *room = *state;
    expect(room, 64, 64);
    assert_non_null(prb_view_get(room->view[1], BASE + 96, 128));
    assert_non_null(prb_view_get(room->view[1], BASE + 12 * PAGE, 128));
    bool same[2];
    struct prb_error err;
    size_t reads = room->fake->reads;
    uint64_t calls = room->mem->calls;
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_true(same[0] && same[1]);
    assert_int_equal(room->mem->calls - calls, 1);
    assert_int_equal(room->fake->reads - reads, 2);
    room->fake->bytes[12 * PAGE]++;
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_true(same[0] && !same[1]);
    room->fake->bytes[100]++; /* both look there */
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_false(same[0] || same[1]);
    /* A view born where another died is not taken for it. */
    prb_view_free(room->view[1]);
    room->view[1] = prb_view_new(room->mem, PAGE, NULL);
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_true(same[0] && same[1]);
}

/* What is late comes last, whatever its address, and never in one range with what is not. */
static void late_views_are_read_last(void **state)
{
    struct room *room = *state;
    bool same[2];
    struct prb_error err;
    prb_view_read_late(room->view[0]);
    expect(room, 64, 64);
    assert_non_null(prb_view_get(room->view[1], BASE + 256, 64));
    assert_non_null(prb_view_get(room->view[1], BASE + 12 * PAGE, 64));
    size_t reads = room->fake->reads;
    uint64_t calls = room->mem->calls;
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_int_equal(room->mem->calls - calls, 1);
    assert_int_equal(room->fake->reads - reads, 3);
    assert_int_equal(room->fake->last, BASE + 64);
    assert_true(same[0] && same[1]);
    room->fake->bytes[64]++;
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_true(!same[0] && same[1]);
}

static void many_pages(void **state)
{
    struct room *room = *state;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < PAGES * 16; i++)
            expect(room, (i * 7 % (PAGES * 16)) * 256, 8);
        assert_true(refresh(room));
    }
}

/* More than is read by one call: every range is compared, and told of its own view. */
static void many_ranges(void **state)
{
    struct room *room = *state;
    enum { LEN = 1500 }; /* with a gap behind it that is not read along */
    bool same[2];
    struct prb_error err;
    for (size_t page = 0; page < PAGES; page++)
        assert_non_null(prb_view_get(room->view[page % 2], BASE + page * PAGE, LEN));
    assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
    assert_true(same[0] && same[1]);
    for (size_t page = 0; page < PAGES; page++) {
        for (size_t k = 0; k < PAGES; k++)
            assert_memory_equal(prb_view_get(room->view[k % 2], BASE + k * PAGE, LEN),
                                room->fake->bytes + k * PAGE, LEN);
        room->fake->bytes[page * PAGE + LEN - 1]++;
        assert_ok(prb_view_refresh(room->view, 2, same, &err), err);
        assert_int_equal(same[page % 2], false);
        assert_int_equal(same[1 - page % 2], true);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(get_reads_a_page_once),
        CASE(late_views_are_read_last),
        CASE(refresh_compares_what_was_touched),
        CASE(spans_of_a_page_come_together),
        CASE(untouched_pages_are_forgotten),
        CASE(without_a_walk_nothing_is_forgotten),
        CASE(lost_page),
        CASE(wanted_pages_come_along),
        CASE(several_views_share_a_call),
        CASE(many_pages),
        CASE(many_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
