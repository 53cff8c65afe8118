/* Objects in synthetic memory: every layout, damaged, and cut short at every read. */
#include "unit.h"

#include <limits.h>

#include "object_image.h"
#include "repr/parts.h"
#include "repr/repr.h"

/* ---- checks ---- */

static char *text_of(struct fixture *f, prb_addr object, size_t characters)
{
    struct prb_repr_limits limits = {.characters = characters};
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err = {0};
    prb_objects_clear(f->objects);
    if (!prb_object_repr(f->objects, object, &limits, &out, &err)) {
        assert_true(err.code != PRB_OK);
        assert_int_equal(out.len, 0);
        return NULL;
    }
    return prb_buf_steal(&out);
}

static void expect(struct fixture *f, prb_addr object, const char *text)
{
    PRB_AUTO_FREE char *got = text_of(f, object, 0);
    if (!got || strcmp(got, text))
        fail_msg("layout %s: %s, expected %s", f->image.py.layout.name, got ? got : "(none)", text);
}

typedef void case_fn(struct fixture *f);

/* Run a case in every layout. */
static void each_layout(case_fn *run)
{
    for (size_t i = 0; i < sizeof image_versions / sizeof *image_versions; i++) {
        struct fixture f;
        fixture_init(&f, i);
        run(&f);
        fixture_deinit(&f);
    }
}

#define CASE(name)                                                                                 \
    static void name##_case(struct fixture *f);                                                    \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        each_layout(name##_case);                                                                  \
    }                                                                                              \
    static void name##_case(struct fixture *f)

/* ---- cases ---- */

CASE(ints)
{
    const uint32_t top = (1u << 30) - 1, big[] = {0, 0, 16}, edge[] = {top, top, 7},
                   under[] = {0, 0, 8};
    int64_t value;
    expect(f, new_int(f, 1, NULL, 0), "0");
    expect(f, new_int(f, 1, &top, 1), "1073741823");
    expect(f, new_int(f, -1, &top, 1), "-1073741823");
    expect(f, new_int(f, 1, big, 3), "18446744073709551616");
    assert_true(prb_object_int(f->objects, new_int(f, 1, edge, 3), &value, NULL));
    assert_true(value == INT64_MAX);
    assert_true(prb_object_int(f->objects, new_int(f, -1, under, 3), &value, NULL));
    assert_true(value == INT64_MIN);
    assert_false(prb_object_int(f->objects, new_int(f, 1, under, 3), &value, NULL));
    assert_false(prb_object_int(f->objects, new_int(f, 1, big, 3), &value, NULL));
    assert_false(prb_object_int(f->objects, new_float(f, 1), &value, NULL));
}

CASE(damaged_ints)
{
    const uint32_t wide = 1u << 30;
    expect(f, new_int(f, 1, &wide, 1), "<unreadable>");
    expect(f, new_int(f, 1, NULL, 1ull << 60), "<unreadable>");
    expect(f, new_int(f, -1, NULL, (1ull << 60) - 1), "<unreadable>");
    expect(f, new_int(f, 1, NULL, 1 << 20), "<unreadable>");
}

CASE(floats)
{
    expect(f, new_float(f, 1.0), "1.0");
    expect(f, new_float(f, -0.0), "-0.0");
    expect(f, new_float(f, 1e16), "1e+16");
    expect(f, new_float(f, 5e-324), "5e-324");
}

CASE(strings)
{
    const uint16_t two[] = {0x65e5, 0xdc80, '\''};
    const uint32_t four[] = {0x1f600, 'a', 0x110000};
    expect(f, ascii(f, ""), "''");
    expect(f, ascii(f, "it's\n"), "\"it's\\n\"");
    expect(f, new_str(f, "\xe9\x80", 2, 1, STR_COMPACT), "'\xc3\xa9\\x80'");
    expect(f, new_str(f, two, 3, 2, STR_COMPACT), "\"\xe6\x97\xa5\\udc80'\"");
    expect(f, new_str(f, four, 3, 4, STR_COMPACT),
           "'\xf0\x9f\x98\x80"
           "a\\U00110000'");
    expect(f, new_str(f, four, 2, 4, 0),
           "'\xf0\x9f\x98\x80"
           "a'");
    assert_true(prb_str_equals(f->objects, ascii(f, "abc"), "abc"));
    assert_false(prb_str_equals(f->objects, ascii(f, "abc"), "abd"));
    assert_false(prb_str_equals(f->objects, small(f, 3), "abc"));
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    assert_true(prb_object_str(f->objects, ascii(f, "abcdef"), 4, &out, NULL));
    assert_string_equal(out.data, "abcd");
}

CASE(legacy_strings)
{
    if (!PRB_HAS(&f->image.py.layout, str, wstr))
        return;
    const uint32_t text[] = {'a', 0x65e5};
    prb_addr object = image_object(&f->image, f->types.str), data = image_alloc(&f->image);
    image_write(&f->image, data, text, sizeof text);
    PUT(&f->image, object, str, wstr, data);
    PUT(&f->image, object, str, wstr_length, 2);
    expect(f, object, "'a\xe6\x97\xa5'");
}

CASE(damaged_strings)
{
    expect(f, new_str(f, NULL, 4, 3, STR_COMPACT), "<unreadable>");
    expect(f, new_str(f, NULL, 1ull << 62, 4, STR_COMPACT), "<unreadable>");
    prb_addr moved = new_str(f, "x", 1, 1, 0);
    PUT(&f->image, moved, str, data, 16);
    expect(f, moved, "<unreadable>");
    /* Longer than memory, but what is asked for is there. */
    prb_addr longer = ascii(f, "abcdefgh");
    PUT(&f->image, longer, str, length, 1ull << 40);
    PRB_AUTO_FREE char *text = text_of(f, longer, 5);
    assert_string_equal(text, "'abc\xe2\x80\xa6");
}

CASE(sequences)
{
    const uint64_t items[] = {small(f, 1), ascii(f, "b"), 0, 8};
    expect(f, new_list(f, items, 2), "[1, 'b']");
    expect(f, new_tuple(f, items, 2), "(1, 'b')");
    expect(f, new_tuple(f, items, 1), "(1,)");
    expect(f, new_list(f, items, 4), "[1, 'b', <unreadable>, <unreadable>]");
    const uint64_t entries[4][2] = {
        {0, 0}, {items[0], 1}, {f->types.none, UINT64_MAX}, {items[1], 77}};
    expect(f, new_set(f, entries, 4, 2), "{1, 'b'}");
    expect(f, new_set(f, entries, 4, 0), "set()");
}

CASE(damaged_sequences)
{
    const uint64_t items[] = {small(f, 1)};
    prb_addr list = new_list(f, items, 1);
    PUT(&f->image, list, list, size, 1ull << 62);
    PRB_AUTO_FREE char *text = text_of(f, list, 0);
    assert_non_null(strstr(text, "<unreadable>"));
    PUT(&f->image, list, list, size, UINT64_MAX);
    PRB_AUTO_FREE char *negative = text_of(f, list, 0);
    assert_non_null(strstr(negative, "<unreadable>"));
    PUT(&f->image, list, list, size, 1);
    PUT(&f->image, list, list, items, 4);
    expect(f, list, "[<unreadable>]");
    const uint64_t empty[1][2] = {{0, 0}};
    prb_addr set = new_set(f, empty, 1, 1);
    PUT(&f->image, set, set, mask, UINT64_MAX);
    PRB_AUTO_FREE char *huge = text_of(f, set, 0);
    assert_non_null(huge);
}

/* A chain of blocks that bites its tail: ends when the steps do. */
CASE(endless_deque)
{
    prb_addr deque = image_object(&f->image, f->types.deque), block = image_alloc(&f->image);
    PUT(&f->image, deque, deque, leftblock, block);
    PUT(&f->image, deque, deque, length, 1ull << 50);
    PUT(&f->image, block, deque, block_right, block);
    PRB_AUTO_FREE char *text = text_of(f, deque, 1u << 28);
    assert_non_null(text);
    assert_string_equal(text + strlen(text) - 3, "\xe2\x80\xa6");
    PUT(&f->image, deque, deque, leftindex, 1ull << 40);
    expect(f, deque, "deque([<unreadable>], maxlen=0)");
}

CASE(dicts)
{
    const uint64_t pairs[3][2] = {
        {ascii(f, "a"), small(f, 1)}, {0, 0}, {ascii(f, "b"), small(f, 2)}};
    const uint64_t values[3] = {small(f, 7), small(f, 8), 0};
    prb_addr found;
    for (unsigned kind = 0; kind < 2; kind++)
        expect(f, new_dict(f, new_keys(f, pairs, 3, kind), 0), "{'a': 1, 'b': 2}");
    expect(f, new_dict(f, new_keys(f, pairs, 3, 2), new_values(f, values, 3)), "{'a': 7}");
    prb_addr dict = new_dict(f, new_keys(f, pairs, 3, 1), 0);
    assert_true(prb_dict_get(f->objects, dict, "b", &found, NULL));
    assert_true(found == pairs[2][1]);
    assert_true(prb_dict_get(f->objects, dict, "c", &found, NULL));
    assert_true(found == 0);
    assert_false(prb_dict_get(f->objects, small(f, 1), "c", &found, NULL));
}

/* With PYTHONHASHSEED=0: what CPython 3.11 and 3.13 say, then 3.8 and 3.10. */
CASE(hashes_of_names)
{
    static const struct {
        const char *name;
        uint64_t hash[PRB_STR_HASHES];
    } known[] = {
        {"a", {4644417185603328019u, 10863254463029944905u}},
        {"threading", {18229489001160538324u, 13020730814678026785u}},
        {"_active", {9987415794341598409u, 13086545688465033296u}},
        {"multiprocessing.process", {7373279181216095754u, 16772301595949639049u}},
    };
    uint64_t hash[PRB_STR_HASHES];
    f->image.py.hash_secret = image_alloc(&f->image);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(prb_str_hashes(f->objects, known[i].name, hash) == PRB_STR_HASHES);
        assert_memory_equal(hash, known[i].hash, sizeof hash);
    }
    assert_true(prb_str_hashes(f->objects, "\xc3\xa4", hash) == 0);
}

/* Of two items with the same key, a walk finds the first, a look-up the one that its hash leads to. */
CASE(dicts_by_hash)
{
    enum { SLOT_13 = 3, SLOT_24 = 1, DELETED = 0xfe };
    const uint64_t pairs[2][2] = {{ascii(f, "a"), small(f, 1)}, {ascii(f, "a"), small(f, 2)}};
    prb_addr keys = new_keys(f, pairs, 2, 1), dict = new_dict(f, keys, 0), found;
    prb_addr indices = keys + OFF(&f->image, dict_keys, indices);
    if (PRB_IS(&f->image.py.layout, dict_keys, HASH_TABLE))
        return;
    image_write(&f->image, indices, (uint8_t[8]){1, 1, 1, 1, 1, 1, 1, 1}, 8);
    assert_true(prb_dict_get(f->objects, dict, "a", &found, NULL) && found == pairs[0][1]);
    prb_objects_free(f->objects);
    f->objects = prb_objects_new(&f->image.py, NULL);
    assert_non_null(f->objects);
    f->image.py.hash_secret = image_alloc(&f->image);
    for (int slot = SLOT_24; slot <= SLOT_13; slot += SLOT_13 - SLOT_24) {
        uint8_t index[8];
        memset(index, 0xff, sizeof index);
        index[slot] = 1;
        image_write(&f->image, indices, index, sizeof index);
        prb_objects_clear(f->objects);
        assert_true(prb_dict_get(f->objects, dict, "a", &found, NULL) && found == pairs[1][1]);
    }
    image_write(&f->image, indices, (uint8_t[8]){1, 1, 1, DELETED, 1, 1, 1, 1}, 8);
    prb_objects_clear(f->objects);
    assert_true(prb_dict_get(f->objects, dict, "a", &found, NULL) && found == pairs[1][1]);
    /* Indices that lead nowhere: walked. */
    image_write(&f->image, indices, (uint8_t[8]){9, 9, 9, 9, 9, 9, 9, 9}, 8);
    prb_objects_clear(f->objects);
    assert_true(prb_dict_get(f->objects, dict, "a", &found, NULL) && found == pairs[0][1]);
}

CASE(damaged_dicts)
{
    const uint64_t pairs[1][2] = {{ascii(f, "a"), small(f, 1)}};
    static const enum prb_field fields[] = {PRB_F_dict_keys_size, PRB_F_dict_keys_nentries,
                                            PRB_F_dict_keys_log2_index_bytes};
    static const uint64_t bad[] = {1ull << 20, 1ull << 39, 1ull << 63, UINT64_MAX, 63, 200};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            if (f->image.py.layout.offset[fields[i]] == PRB_ABSENT)
                continue;
            prb_addr keys = new_keys(f, pairs, 1, 0);
            image_put(&f->image, keys, fields[i], bad[k]);
            PRB_AUTO_FREE char *text = text_of(f, new_dict(f, keys, 0), 0);
            assert_non_null(text);
        }
    expect(f, new_dict(f, 0, 0), "{<unreadable>}");
    expect(f, new_dict(f, new_keys(f, pairs, 1, 2), 24), "{<unreadable>}");
}

CASE(instances)
{
    const uint64_t pairs[1][2] = {{ascii(f, "x"), small(f, 5)}};
    prb_addr dict = new_dict(f, new_keys(f, pairs, 1, 1), 0);
    prb_addr object = new_instance(f, "Thing", dict);
    char text[100];
    snprintf(text, sizeof text, "<__main__.Thing x=5 at 0x%llx>", (unsigned long long)object);
    expect(f, object, text);
    object = new_instance(f, "Thing", 64);
    snprintf(text, sizeof text, "<__main__.Thing <unreadable> at 0x%llx>",
             (unsigned long long)object);
    expect(f, object, text);
    prb_addr found;
    object = new_instance(f, "Thing", dict);
    assert_true(prb_attribute_get(f->objects, object, "x", &found, NULL));
    assert_true(found == pairs[0][1]);
}

/* ---- parts ---- */

/* "name=access " of each part; "-" where no expression leads there. */
static bool note_part(void *context, const struct prb_raw_part *part)
{
    prb_buf_addf(context, "%s=%s ", part->name, part->access ? part->access : "-");
    return true;
}

static void expect_elements(struct fixture *f, prb_addr object, uint64_t start, uint64_t count,
                            const char *wanted)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_objects_clear(f->objects);
    assert_true(prb_object_elements(f->objects, object, start, count, note_part, &text, NULL));
    assert_string_equal(text.data ? text.data : "", wanted);
}

CASE(parts)
{
    const uint64_t items[] = {small(f, 1), small(f, 2), small(f, 3)};
    const uint64_t pairs[2][2] = {{ascii(f, "a"), items[0]}, {ascii(f, "b"), items[1]}};
    uint64_t indexed, named;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_addr list = new_list(f, items, 3), dict = new_dict(f, new_keys(f, pairs, 2, 1), 0);
    PUT(&f->image, dict, dict, used, 2);
    expect_elements(f, list, 0, 10, "0=[0] 1=[1] 2=[2] ");
    expect_elements(f, list, 1, 1, "1=[1] ");
    expect_elements(f, list, 3, UINT64_MAX, "");
    expect_elements(f, dict, 1, UINT64_MAX, "'b'=['b'] ");
    expect_elements(f, items[0], 0, 10, "");
    prb_addr object = new_instance(f, "Thing", dict);
    assert_true(prb_object_counts(f->objects, object, &indexed, &named, NULL));
    assert_true(indexed == 0 && named == 2);
    assert_true(prb_object_attributes(f->objects, object, note_part, &text, NULL));
    assert_string_equal(text.data, "a=.a b=.b ");
}

CASE(damaged_parts)
{
    const uint64_t items[] = {small(f, 1)};
    prb_addr list = new_list(f, items, 1);
    prb_addr deque = image_object(&f->image, f->types.deque), block = image_alloc(&f->image);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    PUT(&f->image, list, list, size, 1ull << 62);
    assert_false(prb_object_elements(f->objects, list, 0, 1, note_part, &text, NULL));
    assert_false(prb_object_elements(f->objects, 4, 0, 1, note_part, &text, NULL));
    assert_false(prb_object_attributes(f->objects, 4, note_part, &text, NULL));
    /* A chain of blocks that bites its tail: what is asked for comes, and the way there is bounded.
     */
    PUT(&f->image, deque, deque, leftblock, block);
    PUT(&f->image, deque, deque, length, 1ull << 50);
    PUT(&f->image, block, deque, block_right, block);
    expect_elements(f, deque, 10, 2, "10=[10] 11=[11] ");
    assert_false(prb_object_elements(f->objects, deque, 1ull << 40, 1, note_part, &text, NULL));
}

CASE(types_that_are_none)
{
    struct image *image = &f->image;
    prb_addr object = image_object(image, 0);
    assert_null(text_of(f, object, 0));
    assert_null(text_of(f, 0, 0));
    assert_null(text_of(f, 1, 0));
    assert_null(text_of(f, UINT64_MAX - 7, 0));
    assert_null(text_of(f, image_object(image, UINT64_MAX - 15), 0));
    assert_null(text_of(f, image_object(image, image_alloc(image)), 0));
    prb_addr huge = image_type(image, "huge", 0, 0);
    PUT(image, huge, type, basicsize, 1ull << 40);
    assert_null(text_of(f, image_object(image, huge), 0));
    prb_addr nameless = image_type(image, "", 0, 0);
    assert_null(text_of(f, image_object(image, nameless), 0));
}

/* Bases and method resolution orders that go round. */
CASE(cyclic_classes)
{
    struct image *image = &f->image;
    prb_addr first = image_type(image, "First", HEAP, 0),
             second = image_type(image, "Second", HEAP, first);
    PUT(image, first, type, base, second);
    const uint64_t mro[2] = {second, first};
    prb_addr both = new_tuple(f, mro, 2);
    PUT(image, first, type, mro, both);
    PUT(image, second, type, mro, both);
    PRB_AUTO_FREE char *text = text_of(f, image_object(image, first), 0);
    assert_non_null(strstr(text, "First object at"));
}

CASE(cycles)
{
    const uint64_t zero[1] = {0};
    prb_addr list = new_list(f, zero, 1), outer;
    uint64_t array;
    PRB_GET(f->objects, list, list, items, &array);
    image_word(&f->image, array, list);
    expect(f, list, "[[...]]");
    const uint64_t twice[2] = {list, list};
    outer = new_tuple(f, twice, 2);
    expect(f, outer, "([[...]], [[...]])");
}

/* Every text is a prefix of the whole and never longer than asked. */
CASE(cut_texts)
{
    const uint64_t items[] = {small(f, 12), ascii(f, "abc"), new_float(f, 0.5)};
    prb_addr list = new_list(f, items, 3);
    PRB_AUTO_FREE char *whole = text_of(f, list, 0);
    assert_string_equal(whole, "[12, 'abc', 0.5]");
    for (size_t limit = 1; limit < 20; limit++) {
        PRB_AUTO_FREE char *text = text_of(f, list, limit);
        if (limit >= strlen(whole)) {
            assert_string_equal(text, whole);
            continue;
        }
        assert_int_equal(strlen(text), limit - 1 + 3);
        assert_memory_equal(text, whole, limit - 1);
        assert_string_equal(text + limit - 1, "\xe2\x80\xa6");
    }
}

/* The n-th read fails, or all from the n-th on: marked, and never more than that. */
CASE(failing_reads)
{
    const uint32_t digits[] = {5, 6, 7};
    const uint64_t pairs[2][2] = {{ascii(f, "k"), new_int(f, 1, digits, 3)},
                                  {small(f, 1), new_float(f, 2.5)}};
    const uint64_t entries[2][2] = {{small(f, 3), 3}, {ascii(f, "m"), 4}};
    const uint64_t attribute[1][2] = {{ascii(f, "x"), new_tuple(f, pairs[0], 2)}};
    prb_addr inner = new_instance(f, "Thing", new_dict(f, new_keys(f, attribute, 1, 1), 0));
    const uint64_t items[] = {new_dict(f, new_keys(f, pairs, 2, 0), 0), new_set(f, entries, 2, 2),
                              inner, new_str(f, "far", 3, 1, 0)};
    prb_addr list = new_list(f, items, 4);
    f->image.reads = 0;
    PRB_AUTO_FREE char *whole = text_of(f, list, 0);
    unsigned long reads = f->image.reads;
    assert_true(reads > 20);
    for (int all = 0; all < 2; all++)
        for (unsigned long n = 1; n <= reads; n++) {
            f->image.reads = 0;
            f->image.fail_from = n;
            f->image.fail_until = all ? ULONG_MAX : n + 1;
            PRB_AUTO_FREE char *text = text_of(f, list, 0);
            /* A name that cannot be read is "?". */
            if (text && strcmp(text, whole) && !strstr(text, "<unreadable>") && !strstr(text, "?"))
                fail_msg("layout %s, read %lu: %s", f->image.py.layout.name, n, text);
            if (all && text && !strcmp(text, whole))
                fail_msg("layout %s, reads from %lu: nothing is missing", f->image.py.layout.name,
                         n);
        }
}

/* Characters are counted, not bytes, whether char has a sign or not. */
static void cut_between_characters(void **state)
{
    (void)state;
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_text text;
    prb_text_init(&text, &out, 6);
    prb_text_add(&text, "a\u00e9\u20acb\U0001f40d");
    prb_text_add(&text, "z");
    assert_string_equal(out.data, "a\u00e9\u20acb\U0001f40dz");
    prb_text_add(&text, "\u00e9");
    prb_text_finish(&text);
    assert_string_equal(out.data, "a\u00e9\u20acb\U0001f40d\u2026");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ints),
        cmocka_unit_test(damaged_ints),
        cmocka_unit_test(floats),
        cmocka_unit_test(strings),
        cmocka_unit_test(legacy_strings),
        cmocka_unit_test(damaged_strings),
        cmocka_unit_test(sequences),
        cmocka_unit_test(damaged_sequences),
        cmocka_unit_test(endless_deque),
        cmocka_unit_test(dicts),
        cmocka_unit_test(hashes_of_names),
        cmocka_unit_test(dicts_by_hash),
        cmocka_unit_test(damaged_dicts),
        cmocka_unit_test(instances),
        cmocka_unit_test(parts),
        cmocka_unit_test(damaged_parts),
        cmocka_unit_test(types_that_are_none),
        cmocka_unit_test(cyclic_classes),
        cmocka_unit_test(cycles),
        cmocka_unit_test(cut_texts),
        cmocka_unit_test(cut_between_characters),
        cmocka_unit_test(failing_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
