/* Layouts: against offsets measured elsewhere (debug information, gdb, running interpreters), and
 * hostile tables. */
#include "unit.h"

#include "py/layout/layout.h"

#include <stdio.h>

#define HEX(minor, patch) (0x030000f0u | (uint32_t)(minor) << 16 | (uint32_t)(patch) << 8)

static struct prb_layout layout_of(unsigned minor, unsigned patch, bool free_threaded)
{
    struct prb_layout layout;
    struct prb_error err;
    assert_ok(prb_layout_find(HEX(minor, patch), free_threaded, &layout, &err), err);
    return layout;
}

/* ---- offsets measured from the debug information of 3.6.15 to 3.13.0, and of a 3.14.0 binary ----
 */

enum { NO = PRB_ABSENT, __ = INT32_MAX /* not measured */, COLUMNS = 9 };
static const unsigned patch_of[COLUMNS] = {15, 16, 18, 18, 13, 7, 1, 0, 0};

#define ROW(struct_, field, ...)                                                                   \
    {                                                                                              \
        PRB_F_##struct_##_##field, { __VA_ARGS__ }                                                 \
    }
static const struct {
    enum prb_field field;
    int32_t offset[COLUMNS];
} measured[] = {
    /*                             3.6  3.7   3.8   3.9   3.10  3.11  3.12  3.13  3.14 */
    ROW(runtime, interpreters_head, NO, 24, 32, 32, 32, 40, 40, 632, __),
    ROW(runtime, interpreters_main, NO, 32, 40, 40, 40, 48, 48, 640, __),
    ROW(runtime, tstate_current, NO, 1480, 1368, 568, 568, 576, NO, NO, NO),
    ROW(runtime, finalizing, NO, 8, 16, 16, 16, 24, 24, 608, __),
    ROW(runtime, gc_collecting, NO, 632, 544, NO, NO, NO, NO, NO, NO),
    ROW(runtime, size, NO, 1520, 1464, 656, 672, 166688, 459944, 283320, __),
    ROW(interp, next, 0, 0, 0, 0, 0, 0, 0, 7264, 7272),
    ROW(interp, threads_head, 8, 8, 8, 8, 8, 16, 72, 7344, 7344),
    ROW(interp, id, NO, 16, 16, 24, 24, 48, 8, 7272, 7280),
    ROW(interp, modules, 16, 40, 56, 856, 856, 888, 944, 7656, 7664),
    ROW(interp, sysdict, 32, 56, 72, 872, 872, 904, 352, 7640, 7648),
    ROW(interp, builtins, 40, 64, 80, 880, 880, 912, 360, 7648, 7656),
    ROW(interp, gc_collecting, NO, NO, NO, 816, 816, 848, 312, 7600, __),
    ROW(interp, gil, NO, NO, NO, NO, NO, NO, 384, 16, 16),
    ROW(interp, size, 120, 2568, 2720, 5656, 113528, 107752, 383552, 194968, 225808),
    ROW(gil, last_holder, NO, 8, 8, 8, 8, 8, 8, 8, 8),
    ROW(gil, locked, NO, 16, 16, 16, 16, 16, 16, 16, 16),
    ROW(thread, prev, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ROW(thread, next, 8, 8, 8, 8, 8, 8, 8, 8, 8),
    ROW(thread, interp, 16, 16, 16, 16, 16, 16, 16, 16, 16),
    ROW(thread, frame, 24, 24, 24, 24, 24, NO, NO, 72, 72),
    ROW(thread, cframe, NO, NO, NO, NO, 48, 56, 56, NO, NO),
    ROW(cframe, current_frame, NO, NO, NO, NO, NO, 8, 0, NO, NO),
    ROW(cframe, previous, NO, NO, NO, NO, 8, 16, 8, NO, NO),
    ROW(thread, thread_id, 152, 176, 176, 176, 176, 152, 136, 152, 152),
    ROW(thread, native_thread_id, NO, NO, NO, NO, NO, 160, 144, 160, 160),
    ROW(thread, id, NO, 272, 256, 256, 256, 240, 224, 224, 224),
    ROW(thread, status, NO, NO, NO, NO, NO, NO, 24, 32, 32),
    ROW(thread, holds_gil, NO, NO, NO, NO, NO, NO, NO, NO, 36),
    ROW(thread, state, NO, NO, NO, NO, NO, NO, NO, 40, 44),
    ROW(thread, current_exception, 80, 88, 88, 88, 88, 96, 96, 112, 112),
    ROW(thread, exc_info, NO, 144, 144, 144, 144, 120, 104, 120, 120),
    ROW(thread, datastack_chunk, NO, NO, NO, NO, NO, 296, 232, 232, 232),
    ROW(thread, size, __, 280, 264, 264, 280, 360, 288, 304, 824),
    ROW(stack_chunk, data, NO, NO, NO, NO, NO, 24, 24, 24, 24),
    ROW(frame, previous, 24, 24, 24, 24, 24, 48, 8, 8, 8),
    ROW(frame, code, 32, 32, 32, 32, 32, 32, 0, 0, 0),
    ROW(frame, stacktop, 72, 72, 72, 72, 80, 64, 64, 64, 64),
    ROW(frame, instr, 120, 104, 104, 104, 96, 56, 56, 56, 56),
    ROW(frame, gen, 112, 96, 96, 96, 88, NO, NO, NO, NO),
    ROW(frame, state, 132, 116, 116, 116, 108, NO, NO, NO, NO),
    ROW(frame, localsplus, 376, 360, 360, 360, 352, 72, 72, 72, 80),
    ROW(frame, func, NO, NO, NO, NO, NO, 0, 16, 16, 16),
    ROW(frame, frame_obj, NO, NO, NO, NO, NO, 40, 48, 48, 48),
    ROW(frame, return_offset, NO, NO, NO, NO, NO, NO, 68, 68, 72),
    ROW(frame, is_entry, NO, NO, NO, NO, NO, 68, NO, NO, NO),
    ROW(frame, owner, NO, NO, NO, NO, NO, 69, 70, 70, 74),
    ROW(code, argcount, 16, 16, 16, 16, 16, 56, 52, 52, 52),
    ROW(code, posonlyargcount, NO, NO, 20, 20, 20, 60, 56, 56, 56),
    ROW(code, nlocals, 24, 24, 28, 28, 28, 80, 80, 80, 80),
    ROW(code, flags, 32, 32, 36, 36, 36, 48, 48, 48, 48),
    ROW(code, firstlineno, 36, 36, 40, 40, 40, 72, 68, 68, 68),
    ROW(code, bytecode, 40, 40, 48, 48, 48, 184, 192, 200, 208),
    ROW(code, varnames, 64, 64, 72, 72, 72, NO, NO, NO, NO),
    ROW(code, localsplusnames, NO, NO, NO, NO, NO, 96, 96, 96, 96),
    ROW(code, nlocalsplus, NO, NO, NO, NO, NO, 76, 72, 72, 72),
    ROW(code, filename, 96, 96, 104, 104, 104, 112, 112, 112, 112),
    ROW(code, qualname, NO, NO, NO, NO, NO, 128, 128, 128, 128),
    ROW(code, linetable, 112, 112, 120, 120, 120, 136, 136, 136, 136),
    ROW(type, heap_cached_keys, 856, 856, 872, 864, 872, 872, 880, 880, __),
    ROW(tuple, items, 24, 24, 24, 24, 24, 24, 24, 24, 32),
    ROW(str, ascii_data, 48, 48, 48, 48, 48, 48, 40, 40, 40),
    ROW(str, compact_data, 72, 72, 72, 72, 72, 72, 56, 56, 56),
    ROW(managed_dict, values, NO, NO, NO, NO, NO, -32, NO, NO, NO),
    ROW(managed_dict, dict, NO, NO, NO, NO, NO, -24, -24, -24, -24),
    ROW(dict_keys, nentries, 32, 32, 32, 32, 32, 24, 24, 24, 24),
    ROW(dict_keys, indices, 40, 40, 40, 40, 40, 32, 32, 32, 32),
    ROW(function, code, 16, 16, 16, 16, 48, 48, 48, 48, 48),
    ROW(gen, frame, 16, 16, 16, 16, 16, 80, 72, 72, __),
    ROW(gen, state, 24, 24, 24, 24, NO, 75, 67, 67, __),
};

static void test_measured_offsets(void **state)
{
    (void)state;
#ifndef __x86_64__
    skip(); /* measured there */
#endif
    for (unsigned column = 0; column < COLUMNS; column++) {
        struct prb_layout layout = layout_of(6 + column, patch_of[column], false);
        for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
            if (measured[i].offset[column] != __ &&
                measured[i].offset[column] != layout.offset[measured[i].field])
                fail_msg("%s %s is %d, measured %d", layout.name, prb_field_name(measured[i].field),
                         layout.offset[measured[i].field], measured[i].offset[column]);
    }
}

static void test_patch_releases(void **state)
{
    (void)state;
#ifndef __x86_64__
    skip(); /* offsets of x86-64 */
#endif
    static const struct {
        unsigned minor, patch;
        enum prb_field field;
        int32_t offset;
    } moved[] = {
        {7, 0, PRB_F_runtime_tstate_current, 1392},
        {7, 3, PRB_F_runtime_tstate_current, 1392},
        {7, 4, PRB_F_runtime_tstate_current, 1480},
        {7, 17, PRB_F_runtime_tstate_current, 1480},
        {7, 3, PRB_F_runtime_gil, 1176},
        {7, 4, PRB_F_runtime_gil, 1264},
        {14, 4, PRB_F_interp_modules, 7664},
        {14, 5, PRB_F_interp_modules, 7688},
        {14, 10, PRB_F_interp_modules, 7688},
        {13, 0, PRB_F_thread_size, 304},
        {13, 18, PRB_F_thread_size, 312},
        {4, 0, PRB_F_frame_localsplus, 376},
    };
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        struct prb_layout layout = layout_of(moved[i].minor, moved[i].patch, false);
        assert_int_equal(layout.offset[moved[i].field], moved[i].offset);
    }
}

static void test_every_layout_is_plausible(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *name; (name = prb_layout_name(count)); count++) {
        unsigned minor = (unsigned)strtoul(name + 2, NULL, 10);
        struct prb_layout layout = layout_of(minor, 255, strchr(name, 't') != NULL);
        assert_string_equal(layout.name, name);
        assert_int_equal(layout.minor, minor);
        for (size_t field = 0; field < PRB_FIELD_COUNT; field++) {
            int32_t offset = layout.offset[field];
            unsigned width = prb_field_width((enum prb_field)field);
            if (offset != PRB_ABSENT &&
                (offset < -32 || offset > 1 << 20 || (width && offset % (int)width)))
                fail_msg("%s %s is at %d", name, prb_field_name((enum prb_field)field), offset);
        }
        /* What every version has; the offset 0 is never a default. */
        assert_true(PRB_HAS(&layout, thread, interp) && PRB_OFF(&layout, thread, interp) == 16);
        assert_true(PRB_HAS(&layout, code, filename) && PRB_OFF(&layout, code, filename) > 0);
        assert_true(PRB_HAS(&layout, frame, localsplus) && PRB_OFF(&layout, frame, localsplus) > 0);
        int header = layout.free_threaded ? 32 : 16;
        assert_int_equal(PRB_OFF(&layout, object, size), header);
        assert_int_equal(PRB_OFF(&layout, object, type), header - 8);
        assert_int_equal(PRB_NUM(&layout, member_object_ex), 16);
    }
    assert_int_equal(count, 15);
    assert_string_equal(prb_field_name(PRB_F_frame_code), "frame.code");
    assert_string_equal(prb_field_name(PRB_FIELD_COUNT), "?");
    assert_int_equal(prb_field_width(PRB_F_frame_owner), 1);
}

static void test_traits_and_numbers(void **state)
{
    (void)state;
    struct prb_layout old = layout_of(5, 10, false), layout = layout_of(10, 13, false);
    assert_true(PRB_IS(&old, line_table, LNOTAB_UNSIGNED) && PRB_IS(&old, dict_keys, HASH_TABLE));
    assert_true(PRB_IS(&layout, line_table, LINES) && PRB_IS(&layout, anchor, CFRAMES));
    assert_int_equal(PRB_NUM(&layout, owner_thread), PRB_NONE);
    assert_int_equal(PRB_NUM(&layout, str_kind_bit), 2);
    assert_int_equal(PRB_NUM(&layout, str_ready_bit), 7);
    layout = layout_of(14, 10, false);
    assert_true(PRB_IS(&layout, reference, TAGGED) && PRB_NUM(&layout, reference_mask) == 3);
    assert_int_equal(PRB_NUM(&layout, owner_interpreter), 3);
    assert_int_equal(PRB_NUM(&layout, owner_cstack), 4);
    assert_int_equal(PRB_NUM(&layout, frame_suspended), -1);
    assert_int_equal(PRB_NUM(&layout, str_interned_bits), 2);
    layout = layout_of(14, 10, true);
    assert_int_equal(PRB_NUM(&layout, str_interned_bits), 8);
    assert_int_equal(PRB_NUM(&layout, str_kind_bit), 8);
    assert_true(PRB_IS(&layout, gil, NONE));
    assert_int_equal(PRB_OFF(&layout, managed_dict, dict), -8);
    layout = layout_of(15, 2, false);
    assert_int_equal(PRB_NUM(&layout, frame_created), 0);
    assert_int_equal(PRB_NUM(&layout, frame_suspended), 3);
    assert_int_equal(PRB_NUM(&layout, frame_completed), 5);
}

static void test_unknown_versions(void **state)
{
    (void)state;
    struct prb_layout layout;
    struct prb_error err;
    assert_false(prb_layout_find(HEX(16, 0), false, &layout, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "3.16.0"));
    assert_non_null(strstr(err.text, "3.4 to 3.15"));
    assert_false(prb_layout_find(HEX(12, 1), true, &layout, &err)); /* no free-threaded 3.12 */
    assert_false(prb_layout_find(0x020712f0, false, &layout, &err));
    assert_false(prb_layout_find(0, false, &layout, NULL));
    assert_false(prb_layout_find(0x030f00b2, false, &layout, &err)); /* 3.15.0b2 */
    assert_non_null(strstr(err.text, "beta"));
    assert_true(prb_layout_find(0x030f00c1, false, &layout, &err)); /* 3.15.0rc1 */
}

/* ---- the target's own table ---- */

#define RUNTIME 0x10000u

struct table {
    uint64_t words[128];
    size_t len; /* bytes that can be read */
};

static size_t read_table(void *context, prb_addr addr, void *buf, size_t len)
{
    const struct table *table = context;
    if (addr < RUNTIME || addr - RUNTIME >= table->len)
        return 0;
    size_t have = table->len - (addr - RUNTIME);
    len = len < have ? len : have;
    memcpy(buf, (const char *)table->words + (addr - RUNTIME), len);
    return len;
}

/* A table of 3.13 that says what our file says; places as pycore_debug_offsets.h has them. */
static struct table honest_table(const struct prb_layout *layout)
{
    struct table table = {.len = 584};
    memcpy(table.words, "xdebugpy", 8);
    table.words[1] = HEX(13, 0);
    static const struct {
        unsigned place;
        enum prb_field field;
    } words[] = {
        {24, PRB_F_runtime_size},
        {32, PRB_F_runtime_finalizing},
        {40, PRB_F_runtime_interpreters_head},
        {48, PRB_F_interp_size},
        {56, PRB_F_interp_id},
        {64, PRB_F_interp_next},
        {72, PRB_F_interp_threads_head},
        {152, PRB_F_thread_size},
        {168, PRB_F_thread_next},
        {184, PRB_F_thread_frame},
        {224, PRB_F_frame_size},
        {232, PRB_F_frame_previous},
        {240, PRB_F_frame_code},
        {264, PRB_F_frame_owner},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        table.words[words[i].place / 8] = (uint64_t)layout->offset[words[i].field];
    return table;
}

struct outcome {
    struct prb_layout layout;
    unsigned agreed, differed, refused;
};

static struct outcome apply(struct table *table)
{
    struct prb_error err;
    struct outcome outcome = {.layout = layout_of(13, 0, false)};
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_callback_new(read_table, table, &err);
    assert_non_null(mem);
    assert_ok(prb_debug_offsets_apply(mem, RUNTIME, &outcome.layout, &outcome.agreed,
                                      &outcome.differed, &outcome.refused, &err),
              err);
    return outcome;
}

static void test_table_that_agrees(void **state)
{
    (void)state;
    struct prb_layout layout = layout_of(13, 0, false);
    struct table table = honest_table(&layout);
    struct outcome outcome = apply(&table);
    /* Structs that the table leaves at 0 bytes are refused, not believed. */
    assert_true(outcome.agreed >= 14 && outcome.refused > 20);
    assert_memory_equal(&outcome.layout.offset[PRB_F_code_filename],
                        &layout.offset[PRB_F_code_filename], 4);
    table.words[264 / 8] = 71;
    assert_int_equal(apply(&table).layout.offset[PRB_F_frame_owner], 71);
    assert_int_equal(apply(&table).differed, outcome.differed + 1);
}

static void test_hostile_words(void **state)
{
    (void)state;
    struct prb_layout layout = layout_of(13, 0, false);
    static const struct {
        unsigned place;
        uint64_t word;
        enum prb_field field;
    } lies[] = {
        {72, UINT64_MAX, PRB_F_interp_threads_head},
        {72, (uint64_t)INT64_MIN, PRB_F_interp_threads_head},
        {72, 194968 - 4, PRB_F_interp_threads_head}, /* hangs over the end of its struct */
        {72, 7345, PRB_F_interp_threads_head},       /* unaligned */
        {184, 304, PRB_F_thread_frame},
        {184, 1 << 20, PRB_F_thread_frame},
        {152, UINT64_MAX, PRB_F_thread_frame}, /* the struct itself is too large */
        {152, 0, PRB_F_thread_frame},
        {152, (1 << 20) + 8, PRB_F_thread_size},
        {264, 80, PRB_F_frame_owner},
    };
    unsigned refused = 0;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct table table = honest_table(&layout);
        refused = apply(&table).refused;
        table.words[lies[i].place / 8] = lies[i].word;
        struct outcome outcome = apply(&table);
        if (outcome.layout.offset[lies[i].field] != layout.offset[lies[i].field] ||
            outcome.refused <= refused)
            fail_msg("%s believed %#llx", prb_field_name(lies[i].field),
                     (unsigned long long)lies[i].word);
    }
    struct table table = honest_table(&layout);
    for (size_t i = 3; i < 128; i++)
        table.words[i] = UINT64_MAX;
    struct outcome outcome = apply(&table);
    assert_int_equal(outcome.agreed + outcome.differed, 0);
    assert_memory_equal(outcome.layout.offset, layout.offset, sizeof layout.offset);
}

static void test_truncated_table(void **state)
{
    (void)state;
    struct prb_layout layout = layout_of(13, 0, false), untouched = layout;
    struct table table = honest_table(&layout);
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_callback_new(read_table, &table, &err);
    unsigned agreed = 7, differed = 7, refused = 7;
    for (table.len = 0; table.len < 584; table.len++) {
        assert_false(
            prb_debug_offsets_apply(mem, RUNTIME, &layout, &agreed, &differed, &refused, &err));
        assert_int_equal(err.code, PRB_FAULT);
    }
    assert_memory_equal(layout.offset, untouched.offset, sizeof layout.offset);
    assert_int_equal(agreed, 7);
    layout = layout_of(12, 1, false);
    assert_false(
        prb_debug_offsets_apply(mem, RUNTIME, &layout, &agreed, &differed, &refused, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
}

static void test_head(void **state)
{
    (void)state;
    struct prb_layout layout = layout_of(13, 0, false);
    struct table table = honest_table(&layout);
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_callback_new(read_table, &table, &err);
    uint32_t version = 0;
    bool free_threaded = true;
    assert_ok(prb_debug_offsets_head(mem, RUNTIME, &version, &free_threaded, &err), err);
    assert_int_equal(version, HEX(13, 0));
    assert_false(free_threaded);
    table.words[2] = 1;
    assert_true(prb_debug_offsets_head(mem, RUNTIME, &version, &free_threaded, &err) &&
                free_threaded);
    table.words[2] = 2;
    assert_false(prb_debug_offsets_head(mem, RUNTIME, &version, &free_threaded, &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    table.words[2] = 0;
    table.words[1] = UINT64_C(1) << 32;
    assert_false(prb_debug_offsets_head(mem, RUNTIME, &version, &free_threaded, &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    table.words[0]++;
    assert_false(prb_debug_offsets_head(mem, RUNTIME, &version, &free_threaded, &err));
    assert_int_equal(err.code, PRB_NOT_FOUND);
    table.len = 23;
    assert_false(prb_debug_offsets_head(mem, RUNTIME, &version, &free_threaded, &err));
    assert_int_equal(err.code, PRB_FAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_offsets),
        cmocka_unit_test(test_patch_releases),
        cmocka_unit_test(test_traits_and_numbers),
        cmocka_unit_test(test_every_layout_is_plausible),
        cmocka_unit_test(test_unknown_versions),
        cmocka_unit_test(test_table_that_agrees),
        cmocka_unit_test(test_hostile_words),
        cmocka_unit_test(test_truncated_table),
        cmocka_unit_test(test_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
