/* numpy arrays and torch tensors in synthetic memory: every place their parts are known to lie, and
 * damage. */
#include "unit.h"

#include "object_image.h"
#include "py/object/reader.h"
#include "tensor/tensor.h"

enum { VERSION_3_11 = 7 };

struct tensor {
    struct fixture f;
    prb_addr object, impl;
    uint64_t sizes; /* offset in impl */
};

static void put_u16(struct image *image, prb_addr at, uint16_t value)
{
    image_write(image, at, &value, 2);
}

/* A cpu tensor (2, 3) of float32. */
static void tensor_init(struct tensor *t, uint64_t sizes, bool maybe_owned, bool borrowed)
{
    fixture_init(&t->f, VERSION_3_11);
    struct image *image = &t->f.image;
    const uint64_t shape[] = {2, 2, 3};
    prb_addr type = image_type(image, "torch._C.TensorBase", 0, t->f.types.object);
    t->object = image_object(image, type);
    t->impl = image_alloc(image);
    t->sizes = sizes;
    prb_addr body = t->object + OFF(image, object, size), to = t->impl;
    if (borrowed) {
        to = image_alloc(image);
        image_word(image, to, t->impl);
    }
    if (maybe_owned)
        image_word(image, body, borrowed);
    image_word(image, body + (maybe_owned ? 8 : 0), to);
    for (uint64_t i = 0; i < sizes; i += 8) /* what stands before: pointers */
        image_word(image, t->impl + i, t->impl);
    image_write(image, t->impl + sizes, shape, sizeof shape);
    image_word(image, t->impl + sizes + 96, 6);
    put_u16(image, t->impl + sizes + 104, 6);
    image_write(image, t->impl + sizes + 106, "\0\xff\1", 3);
}

static void tensor_deinit(struct tensor *t) { fixture_deinit(&t->f); }

static void every_place(void **state)
{
    (void)state;
    for (uint64_t sizes = 56; sizes <= 72; sizes += 8)
        for (int how = 0; how < 3; how++) {
            struct tensor t;
            struct prb_tensor array;
            struct prb_error err;
            tensor_init(&t, sizes, how > 0, how > 1);
            assert_ok(prb_torch_read(t.f.objects, t.object, &array, &err), err);
            assert_int_equal(array.dims, 2);
            assert_int_equal(array.shape[0], 2);
            assert_int_equal(array.shape[1], 3);
            assert_string_equal(array.dtype, "float32");
            assert_string_equal(array.device, "cpu");
            tensor_deinit(&t);
        }
}

/* How the releases of torch lay out what lies behind a tensor, from their headers. */
static const struct release {
    const char *name;
    uint64_t sizes, head, function;
    bool maybe_owned, hooks, old_string;
} releases[] = {
    {"1.13, 2.0", 72, 24, 16, true, false, true},     {"2.1, 2.2", 72, 24, 16, true, true, true},
    {"2.3 to 2.5", 64, 16, 16, true, true, true},     {"2.6 to 2.9", 64, 16, 16, true, true, false},
    {"2.10 to 2.12", 64, 16, 16, false, true, false}, {"2.13", 56, 16, 8, false, true, false},
};

/* Storage of 24 bytes, of which the tensor begins at the ninth; third version; requires a gradient.
 */
static void add_behind(struct tensor *t, const struct release *release, bool made)
{
    struct image *image = &t->f.image;
    prb_addr storage = image_alloc(image), data = image_alloc(image), meta = image_alloc(image),
             counter = image_alloc(image);
    uint64_t after = meta + 8 + (release->old_string ? 8 : 32), type;
    const uint64_t strides[] = {3, 1};
    image_write(image, t->impl + t->sizes + 48, strides, sizeof strides);
    image_word(image, t->impl + t->sizes + 88, 2);
    image_word(image, t->impl + t->sizes + 112, 0);
    image_word(image, t->impl + t->sizes - 8, t->object);
    image_word(image, t->impl + release->head, storage);
    image_word(image, t->impl + release->head + 8, meta);
    image_word(image, t->impl + release->head + 24, counter);
    image_word(image, storage + release->head, data);
    image_write(image, storage + release->head + 24, "\0\xff", 2);
    image_word(image, storage + release->head + 32, 32);
    image_word(image, meta + 8, release->old_string ? data : meta + 24);
    image_word(image, after, data); /* the gradient: a tensor that is undefined */
    image_word(image, after + 8, made ? data : 0);
    image_word(image, after + 8 + 2 * release->function + 56 + (release->hooks ? 8 : 0), !made);
    image_word(image, counter + release->head, 3);
    assert_true(PRB_GET(t->f.objects, t->object, object, type, &type));
    PUT(image, type, type, basicsize,
        OFF(image, object, size) + (release->maybe_owned ? 16 : 8) + (release->hooks ? 16 : 8));
    prb_objects_clear(t->f.objects);
}

static void every_release(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        for (int made = 0; made < 2; made++) {
            struct tensor t;
            struct prb_tensor array;
            struct prb_error err;
            tensor_init(&t, releases[i].sizes, releases[i].maybe_owned, false);
            add_behind(&t, &releases[i], made);
            assert_ok(prb_torch_read(t.f.objects, t.object, &array, &err), err);
            assert_int_equal(array.storage_size, 32);
            assert_int_equal(array.storage_offset, 8);
            assert_true(array.data == array.storage + 8);
            assert_int_equal(array.stride[0], 12);
            assert_int_equal(array.version, 3);
            assert_true(array.requires_grad);
            assert_int_equal(array.is_leaf, !made);
            assert_string_equal(array.unreadable, "");
            assert_string_equal(array.layout, "strided");
            assert_true(array.contiguous && !array.grad);
            image_word(&t.f.image, t.impl + t.sizes + 88, 3); /* one element too far */
            prb_objects_clear(t.f.objects);
            assert_true(prb_torch_read(t.f.objects, t.object, &array, NULL));
            assert_non_null(strstr(array.unreadable, "over its storage"));
            tensor_deinit(&t);
        }
}

static void contradictions(void **state)
{
    (void)state;
    static const struct {
        unsigned at;
        uint64_t value;
    } damage[] = {
        {0, 65},
        {0, UINT64_MAX},
        {0, 6},
        {8, (uint64_t)-2},
        {8, 1ull << 62},
        {16, 4},
        {96, 7},
        {104, 0x1ff0063},
        {104, 0x1ff7f0006},
        {104, 0x1fe000006},
        {104, 0xff000006},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        struct tensor t;
        struct prb_tensor array;
        struct prb_error err = {0};
        tensor_init(&t, 64, false, false);
        image_word(&t.f.image, t.impl + t.sizes + damage[i].at, damage[i].value);
        if (prb_torch_read(t.f.objects, t.object, &array, &err))
            fail_msg("damage %zu was not seen", i);
        assert_int_equal(err.code, PRB_CORRUPT);
        tensor_deinit(&t);
    }
}

static void more_dimensions_than_inline(void **state)
{
    (void)state;
    struct tensor t;
    struct prb_tensor array;
    const uint64_t shape[] = {1, 2, 3, 1, 1, 1, 1};
    tensor_init(&t, 56, false, false);
    prb_addr outside = image_alloc(&t.f.image);
    image_write(&t.f.image, outside, shape, sizeof shape);
    image_word(&t.f.image, t.impl + t.sizes, 7);
    image_word(&t.f.image, t.impl + t.sizes + 8, outside);
    image_write(&t.f.image, t.impl + t.sizes + 106, "\1\2\1", 3);
    assert_true(prb_torch_read(t.f.objects, t.object, &array, NULL));
    assert_int_equal(array.dims, 7);
    assert_int_equal(array.shape[2], 3);
    assert_string_equal(array.device, "cuda:2");
    tensor_deinit(&t);
}

/* An array of two dimensions; its descr as numpy 1 or 2 has it. */
static prb_addr new_ndarray(struct fixture *f, bool numpy2, const char *kind_type_order,
                            uint64_t size, int32_t dims)
{
    struct image *image = &f->image;
    const uint64_t shape[] = {4, 5};
    const int32_t alignment = 8, narrow = (int32_t)size;
    prb_addr type = image_type(image, "numpy.ndarray", 0, f->types.object);
    prb_addr object = image_object(image, type), descr = image_object(image, type),
             where = image_alloc(image);
    prb_addr body = object + OFF(image, object, size),
             descr_body = descr + OFF(image, object, size);
    image_write(image, where, shape, sizeof shape);
    image_write(image, body + 8, &dims, 4);
    image_word(image, body + 16, where);
    image_word(image, body + 40, descr);
    image_word(image, descr_body, f->types.object);
    image_write(image, descr_body + 8, kind_type_order, 3);
    if (numpy2) {
        image_word(image, descr_body + 24, size);
    } else {
        image_write(image, descr_body + 16, &narrow, 4);
        image_write(image, descr_body + 20, &alignment, 4);
        image_word(image, descr_body + 24, 0x7f0012345678); /* subarray */
    }
    return object;
}

static void numpy_types(void **state)
{
    (void)state;
    static const struct {
        const char *code, *name;
        uint64_t size;
    } cases[] = {
        {"fd=", "float64", 8}, {"ib|", "int8", 1},       {"il>", ">i8", 8},
        {"b?|", "bool", 1},    {"O0|", "object", 8},     {"SS|", "|S7", 7},
        {"UU=", "<U3", 12},    {"UU>", ">U3", 12},       {"cD=", "complex128", 16},
        {"VV|", "object", 6},  {"MM=", "datetime64", 8}, {"uH=", "uint16", 2},
    };
    for (int numpy2 = 0; numpy2 < 2; numpy2++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture f;
            struct prb_tensor array;
            struct prb_error err;
            fixture_init(&f, VERSION_3_11);
            prb_addr object = new_ndarray(&f, numpy2, cases[i].code, cases[i].size, 2);
            assert_ok(prb_ndarray_read(f.objects, object, &array, &err), err);
            assert_string_equal(array.dtype, cases[i].name);
            assert_int_equal(array.dims, 2);
            assert_int_equal(array.shape[1], 5);
            assert_string_equal(array.device, "");
            fixture_deinit(&f);
        }
}

static void damaged_arrays(void **state)
{
    (void)state;
    struct fixture f;
    struct prb_tensor array;
    fixture_init(&f, VERSION_3_11);
    assert_false(prb_ndarray_read(f.objects, new_ndarray(&f, true, "fd=", 8, 65), &array, NULL));
    assert_false(prb_ndarray_read(f.objects, new_ndarray(&f, true, "fd=", 8, -1), &array, NULL));
    assert_false(prb_ndarray_read(f.objects, new_ndarray(&f, true, "?d=", 8, 2), &array, NULL));
    assert_false(
        prb_ndarray_read(f.objects, new_ndarray(&f, true, "fd=", 1ull << 50, 2), &array, NULL));
    assert_false(prb_ndarray_read(f.objects, 64, &array, NULL));
    fixture_deinit(&f);
}

static void scalars(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint64_t bits;
        const char *text;
    } cases[] = {
        {"numpy.int8", 0xff, "-1"},
        {"numpy.uint8", 0xff, "255"},
        {"numpy.int64", 1ull << 63, "-9223372036854775808"},
        {"numpy.float16", 0x2e66, "0.1"},
        {"numpy.float16", 0x7c00, "inf"},
        {"numpy.float16", 0x8000, "-0.0"},
        {"numpy.float16", 0x0001, "6e-08"},
        {"numpy.float32", 0x3dcccccd, "0.1"},
        {"numpy.float32", 0x7f800001, "nan"},
        {"numpy.bool_", 1, "True"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        PRB_AUTO(prb_buf) struct prb_buf out = {0};
        fixture_init(&f, VERSION_3_11);
        prb_addr object = image_object(&f.image, f.types.object);
        image_word(&f.image, object + OFF(&f.image, object, size), cases[i].bits);
        assert_true(prb_scalar_read(f.objects, object, cases[i].type, &out, NULL));
        assert_string_equal(out.data, cases[i].text);
        fixture_deinit(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place),    cmocka_unit_test(every_release),
        cmocka_unit_test(contradictions), cmocka_unit_test(more_dimensions_than_inline),
        cmocka_unit_test(numpy_types),    cmocka_unit_test(damaged_arrays),
        cmocka_unit_test(scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
