/* Line tables of every encoding, whole and hostile. */
#include "unit.h"

#include "py/code.h"

#define LOOK(kind, table, first, at)                                                               \
    prb_line_lookup(PRB_line_table_##kind, table, sizeof table, first, at)

static void lnotab_is_signed_from_36(void **state)
{
    (void)state;
    /* 6 bytes on line 10, 4 on 11, 2 on 9 */
    const uint8_t table[] = {6, 1, 4, 0xfe, 2, 1};
    assert_int_equal(LOOK(LNOTAB, table, 10, 0).line, 10);
    assert_int_equal(LOOK(LNOTAB, table, 10, 5).line, 10);
    assert_int_equal(LOOK(LNOTAB, table, 10, 6).line, 11);
    assert_int_equal(LOOK(LNOTAB, table, 10, 10).line, 9);
    assert_int_equal(LOOK(LNOTAB, table, 10, 12).line, 10);
    assert_int_equal(LOOK(LNOTAB_UNSIGNED, table, 10, 10).line, 265);
    assert_int_equal(LOOK(LNOTAB, table, 10, -1).line, 10);
    assert_int_equal(LOOK(LNOTAB, table, 10, 0).column, -1);
}

static void lines_of_310_have_gaps(void **state)
{
    (void)state;
    const uint8_t table[] = {4, 0, 2, 0x80, 6, 3, 2, 0xff};
    assert_int_equal(LOOK(LINES, table, 20, 0).line, 20);
    assert_int_equal(LOOK(LINES, table, 20, 3).line, 20);
    assert_int_equal(LOOK(LINES, table, 20, 4).line, 0);
    assert_int_equal(LOOK(LINES, table, 20, 6).line, 23);
    assert_int_equal(LOOK(LINES, table, 20, 12).line, 22);
    assert_int_equal(LOOK(LINES, table, 20, 14).line, 0);
}

static void locations_of_every_form(void **state)
{
    (void)state;
    const uint8_t table[] = {
        0x80 | 2 << 3 | 0,
        0x35, /* short: 1 unit, column 2*8+3, 5 wide */
        0x80 | 11 << 3 | 1,
        7,
        9, /* one line on, 2 units, columns 7–9 */
        0x80 | 13 << 3 | 0,
        0x05, /* no columns, line -2 */
        /* long: +2 lines, 3 more, columns 10 and 64 */
        0x80 | 14 << 3 | 0,
        0x04,
        0x03,
        0x0b,
        0x41,
        0x01,
        0x80 | 15 << 3 | 0, /* none */
    };
    struct prb_position at = LOOK(LOCATIONS, table, 100, 0);
    assert_int_equal(at.line, 100);
    assert_int_equal(at.column, 19);
    assert_int_equal(at.end_column, 24);
    at = LOOK(LOCATIONS, table, 100, 4);
    assert_int_equal(at.line, 101);
    assert_int_equal(at.column, 7);
    assert_int_equal(at.end_column, 9);
    at = LOOK(LOCATIONS, table, 100, 6);
    assert_int_equal(at.line, 99);
    assert_int_equal(at.column, -1);
    at = LOOK(LOCATIONS, table, 100, 8);
    assert_int_equal(at.line, 101);
    assert_int_equal(at.end_line, 104);
    assert_int_equal(at.column, 10);
    assert_int_equal(at.end_column, 64);
    assert_int_equal(LOOK(LOCATIONS, table, 100, 10).line, 0);
    assert_int_equal(LOOK(LOCATIONS, table, 100, 12).line, 0);
    assert_int_equal(LOOK(LOCATIONS, table, 100, -1).line, 100);
}

/* Cut at every byte, and every single byte as a table: bounded, and never a negative line. */
static void hostile_tables(void **state)
{
    (void)state;
    uint8_t table[64];
    for (unsigned seed = 0; seed < 256; seed++)
        for (size_t len = 0; len <= sizeof table; len++)
            for (int kind = 0; kind <= PRB_line_table_LOCATIONS; kind++) {
                for (size_t i = 0; i < len; i++)
                    table[i] = (uint8_t)(seed * 31 + i * seed + i);
                struct prb_position at = prb_line_lookup((enum prb_line_table)kind, table, len,
                                                         INT32_MAX, (int)(seed * 8));
                assert_true(at.line >= 0 && at.column >= -1 && at.end_column >= -1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lnotab_is_signed_from_36),
        cmocka_unit_test(lines_of_310_have_gaps),
        cmocka_unit_test(locations_of_every_form),
        cmocka_unit_test(hostile_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
