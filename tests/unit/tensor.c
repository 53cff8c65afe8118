/* Elements, parts and statistics of tensors over this process's own memory, and each kernel that
 * the processor can run against sums made one by one. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "mem/mem.h"
#include "tensor/kernel.h"
#include "tensor/tensor.h"

static struct prb_tensor tensor_of(const void *data, const char *dtype, unsigned size,
                                   unsigned dims, const int64_t *shape)
{
    struct prb_tensor tensor = {.torch = true,
                                .dims = dims,
                                .numel = 1,
                                .item_size = size,
                                .data = (prb_addr)(uintptr_t)data,
                                .storage_size = -1,
                                .version = -1,
                                .layout = "strided",
                                .device = "cpu"};
    int64_t stride = size;
    snprintf(tensor.dtype, sizeof tensor.dtype, "%s", dtype);
    for (unsigned i = dims; i-- > 0;) {
        tensor.shape[i] = shape[i];
        tensor.stride[i] = stride;
        stride *= shape[i];
        tensor.numel *= shape[i];
    }
    tensor.storage = tensor.data;
    tensor.storage_size = stride;
    prb_tensor_settle(&tensor);
    return tensor;
}

static struct prb_tensor part_of(const struct prb_tensor *tensor, const char *subscript)
{
    struct prb_tensor part;
    struct prb_error err = {0};
    assert_ok(prb_tensor_slice(tensor, subscript, &part, &err), err);
    return part;
}

static void expect_text(const struct prb_tensor *tensor, size_t limit, const char *text)
{
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(NULL);
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err = {0};
    assert_ok(prb_tensor_text_in(mem, tensor, limit, &out, &err), err);
    assert_string_equal(out.data, text);
}

/* ---- parts and text ---- */

static void parts(void **state)
{
    (void)state;
    static const struct {
        const char *subscript, *text;
    } cases[] = {
        {"", "[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], "
             "[20, 21, "
             "22, 23]]]"},
        {"1", "[[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]"},
        {"-1, 2", "[20, 21, 22, 23]"},
        {"1,1,-4", "16"},
        {"..., 0", "[[0, 4, 8], [12, 16, 20]]"},
        {"0, ..., ::2", "[[0, 2], [4, 6], [8, 10]]"},
        {":, 1:, 1:3", "[[[5, 6], [9, 10]], [[17, 18], [21, 22]]]"},
        {"0, ::-1, -1:0:-2", "[[11, 9], [7, 5], [3, 1]]"},
        {"0, 5:, :", "[]"},
        {"0, 0, 100:-100:-1", "[3, 2, 1, 0]"},
        {"1, ...", "[[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]"},
    };
    int32_t numbers[24];
    const int64_t shape[] = {2, 3, 4};
    for (int i = 0; i < 24; i++)
        numbers[i] = i;
    struct prb_tensor tensor = tensor_of(numbers, "int32", 4, 3, shape);
    assert_true(tensor.contiguous);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_tensor part = part_of(&tensor, cases[i].subscript);
        expect_text(&part, 0, cases[i].text);
    }
    static const char *const wrong[] = {"2",        "0, 3", "0,0,0,0", "a",  "1.5",
                                        "..., ...", "::0",  "1 2",     "-3", "0x1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct prb_tensor part;
        struct prb_error err = {0};
        if (prb_tensor_slice(&tensor, wrong[i], &part, &err))
            fail_msg("[%s] was taken", wrong[i]);
        assert_int_equal(err.code, PRB_USAGE);
    }
}

static void long_text(void **state)
{
    (void)state;
    uint8_t numbers[400] = {0};
    const int64_t shape[] = {20, 20}, long_shape[] = {400};
    struct prb_tensor tensor = tensor_of(numbers, "uint8", 1, 1, long_shape);
    expect_text(&tensor, 10, "[0, 0, 0, ..., 0, 0, 0]");
    tensor = tensor_of(numbers, "bool", 1, 2, shape);
    expect_text(&tensor, 3, "[...]");
}

static void texts_of_types(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        unsigned size;
        uint8_t bytes[16];
        const char *text;
    } cases[] = {
        {"float32", 4, {0xcd, 0xcc, 0xcc, 0x3d}, "0.1"},
        {"float16", 2, {0x66, 0x2e}, "0.1"},
        {"bfloat16", 2, {0x80, 0x3f}, "1.0"},
        {"bfloat16", 2, {0xcd, 0x3d}, "0.1"},
        {"bfloat16", 2, {0x80, 0x7f}, "inf"},
        {"float64", 8, {0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f}, "0.1"},
        {"float8_e5m2", 1, {0x3c}, "1.0"},
        {"float8_e5m2", 1, {0x7c}, "inf"},
        {"float8_e5m2", 1, {0x7f}, "nan"},
        {"float8_e4m3fn", 1, {0x38}, "1.0"},
        {"float8_e4m3fn", 1, {0x7e}, "448.0"},
        {"float8_e4m3fn", 1, {0xff}, "nan"},
        {"float8_e4m3fnuz", 1, {0x40}, "1.0"},
        {"float8_e4m3fnuz", 1, {0x80}, "nan"},
        {"float8_e5m2fnuz", 1, {0x40}, "1.0"},
        {"float8_e8m0fnu", 1, {0x7f}, "1.0"},
        {"float8_e8m0fnu", 1, {0xff}, "nan"},
        {"complex64", 8, {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}, "1.5-2j"},
        {"bool", 1, {1}, "True"},
        {"uint64", 8, {255, 255, 255, 255, 255, 255, 255, 255}, "18446744073709551615"},
        {"int8", 1, {0xff}, "-1"},
        {">f4", 4, {0x3d, 0xcc, 0xcc, 0xcd}, "0.1"},
        {">i2", 2, {0xff, 0xfe}, "-2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_tensor tensor =
            tensor_of(cases[i].bytes, cases[i].dtype, cases[i].size, 0, NULL);
        expect_text(&tensor, 0, cases[i].text);
    }
}

static void refused(void **state)
{
    (void)state;
    float numbers[4] = {0};
    const int64_t shape[] = {4};
    struct prb_statistics made;
    struct prb_error err = {0};
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(NULL);
    struct prb_tensor good = tensor_of(numbers, "float32", 4, 1, shape), bad = good;
    bad.storage_size = 15;
    prb_tensor_settle(&bad);
    assert_non_null(strstr(bad.unreadable, "over its storage"));
    bad = good;
    bad.stride[0] = INT64_MAX / 2;
    prb_tensor_settle(&bad);
    assert_non_null(strstr(bad.unreadable, "beyond all memory"));
    bad = good;
    snprintf(bad.device, sizeof bad.device, "cuda:0");
    prb_tensor_settle(&bad);
    assert_string_equal(bad.unreadable, "it is on cuda:0");
    assert_false(prb_tensor_statistics_in(mem, &bad, NULL, &made, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    bad = good;
    snprintf(bad.dtype, sizeof bad.dtype, "quint8");
    prb_tensor_settle(&bad);
    assert_non_null(strstr(bad.unreadable, "quint8"));
    bad = good; /* ten thousand million elements, each repeated, in some kilobytes */
    bad.dims = 8;
    bad.numel = 1;
    for (unsigned i = 0; i < bad.dims; i++) {
        bad.shape[i] = 100;
        bad.stride[i] = i < 3 ? 1 : 0;
        bad.numel *= 100;
    }
    bad.shape[3] = bad.shape[0] = 1000;
    bad.stride[3] = 1;
    bad.numel *= 100;
    bad.storage_size = -1;
    prb_tensor_settle(&bad);
    assert_string_equal(bad.unreadable, "");
    assert_false(prb_tensor_statistics_in(mem, &bad, NULL, &made, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    bad = good;
    bad.data = 8; /* nothing is there */
    assert_false(prb_tensor_statistics_in(mem, &bad, NULL, &made, &err));
    assert_int_equal(err.code, PRB_FAULT);
}

/* ---- kernels ---- */

static void sum_plainly(const double *numbers, size_t count, double pivot, struct prb_block *out)
{
    *out = (struct prb_block){.low = INFINITY, .high = -INFINITY, .pivot = pivot};
    for (size_t i = 0; i < count; i++) {
        out->nan += isnan(numbers[i]);
        out->infinite += isinf(numbers[i]) != 0;
        out->zero += numbers[i] == 0;
        out->low = fmin(out->low, numbers[i]);
        out->high = fmax(out->high, numbers[i]);
        if (isfinite(numbers[i])) {
            out->sum += numbers[i] - pivot;
            out->squares += (numbers[i] - pivot) * (numbers[i] - pivot);
        }
    }
}

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b)) + 1e-12)
        fail_msg("%.17g and %.17g", a, b);
}

static void compare(const struct prb_block *got, const struct prb_block *expected)
{
    assert_int_equal(got->nan, expected->nan);
    assert_int_equal(got->infinite, expected->infinite);
    assert_int_equal(got->zero, expected->zero);
    assert_true(got->low == expected->low && got->high == expected->high);
    assert_near(got->sum, expected->sum);
    assert_near(got->squares, expected->squares);
}

/* Numbers with some of each kind; special: with NaN and infinities. */
static double number_for(unsigned i, unsigned special)
{
    unsigned mixed = i * 2654435761u >> 7;
    if (special && mixed % special == 0)
        return mixed / special % 3 == 0 ? NAN : mixed / special % 3 == 1 ? INFINITY : -INFINITY;
    return mixed % 11 == 0 ? 0 : (double)(float)((int)(mixed % 2001) - 1000) / 8;
}

static void kernels(void **state)
{
    (void)state;
    static float narrow[PRB_BLOCK + 1];
    static double wide[PRB_BLOCK + 1], numbers[PRB_BLOCK];
    static const unsigned specials[] = {0, 13, 1};
    for (size_t k = 0; prb_kernel_at(k); k++)
        for (size_t s = 0; s < 3; s++)
            for (size_t count = 0; count <= PRB_BLOCK; count += count < 40 ? 1 : 251) {
                const struct prb_kernel *kernel = prb_kernel_at(k);
                struct prb_block got, expected;
                char *odd = (char *)narrow + 1; /* unaligned */
                for (size_t i = 0; i < count; i++) {
                    float one;
                    numbers[i] = number_for((unsigned)(i + 7 * count), specials[s]);
                    wide[i] = numbers[i];
                    one = (float)numbers[i];
                    memcpy(odd + 4 * i, &one, 4);
                }
                kernel->f32(odd, count, &got);
                sum_plainly(numbers, count, got.pivot, &expected);
                compare(&got, &expected);
                kernel->f64(wide, count, &got);
                sum_plainly(numbers, count, got.pivot, &expected);
                compare(&got, &expected);
            }
}

static void halves(void **state)
{
    (void)state;
    static uint16_t codes[65536];
    static float made[PRB_BLOCK];
    for (unsigned i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (size_t k = 0; prb_kernel_at(k); k++)
        for (size_t from = 0; from < 65536; from += PRB_BLOCK - 3) {
            size_t count = 65536 - from < PRB_BLOCK - 3 ? 65536 - from : PRB_BLOCK - 3;
            prb_kernel_at(k)->half(codes + from, count, made);
            for (size_t i = 0; i < count; i++) {
                float expected = prb_half_to_float(codes[from + i]);
                assert_true(isnan(expected) ? isnan(made[i]) : made[i] == expected);
            }
            prb_kernel_at(k)->bfloat(codes + from, count, made);
            for (size_t i = 0; i < count; i++) {
                uint32_t bits;
                memcpy(&bits, &made[i], 4);
                assert_int_equal(bits, (uint32_t)codes[from + i] << 16);
            }
        }
}

/* ---- statistics ---- */

static struct prb_statistics statistics_of(const struct prb_tensor *tensor,
                                           const struct prb_statistics_options *options)
{
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(NULL);
    struct prb_statistics made;
    struct prb_error err = {0};
    assert_ok(prb_tensor_statistics_in(mem, tensor, options, &made, &err), err);
    return made;
}

/* The same from the elements one by one, in the order of rows. */
static void expect_statistics(const struct prb_tensor *tensor)
{
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(NULL);
    struct prb_statistics made = statistics_of(tensor, NULL);
    size_t count = (size_t)tensor->numel;
    struct prb_element *elements = calloc(count + 1, sizeof *elements);
    struct prb_error err = {0};
    double sum = 0, squares = 0, norm = 0, low = INFINITY, high = -INFINITY;
    assert_ok(prb_tensor_elements_in(mem, tensor, 0, count, elements, &err), err);
    for (size_t i = 0; i < count; i++) {
        double x =
            elements[i].kind == PRB_ELEMENT_REAL ? elements[i].real : (double)elements[i].integer;
        sum += x;
        norm += x * x;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    for (size_t i = 0; i < count; i++) {
        double x =
            elements[i].kind == PRB_ELEMENT_REAL ? elements[i].real : (double)elements[i].integer;
        squares += (x - sum / (double)count) * (x - sum / (double)count);
    }
    free(elements);
    assert_int_equal(made.count, tensor->numel);
    assert_true(made.min == low && made.max == high);
    assert_near(made.mean, sum / (double)count);
    assert_near(made.norm, sqrt(norm));
    if (count > 1)
        assert_near(made.std, sqrt(squares / (double)(count - 1)));
}

static void strides(void **state)
{
    (void)state;
    enum { ROWS = 37, COLUMNS = 41, PAGES = 53 };
    static float numbers[ROWS * COLUMNS * PAGES];
    static const char *const subscripts[] = {
        "",       "::2",  ":, ::3, ::5",   "::-1, :, ::-2", "5",
        "..., 7", ":, 7", "3:4, 5:6, 7:8", "0, 0, 0",       ":, ::40, ::52"};
    const int64_t shape[] = {ROWS, COLUMNS, PAGES};
    for (size_t i = 0; i < ROWS * COLUMNS * PAGES; i++)
        numbers[i] = (float)number_for((unsigned)i, 0);
    struct prb_tensor tensor = tensor_of(numbers, "float32", 4, 3, shape);
    for (size_t i = 0; i < sizeof subscripts / sizeof *subscripts; i++) {
        struct prb_tensor part = part_of(&tensor, subscripts[i]);
        expect_statistics(&part);
    }
    struct prb_tensor turned = tensor;
    turned.shape[0] = PAGES, turned.shape[2] = ROWS;
    turned.stride[0] = tensor.stride[2], turned.stride[2] = tensor.stride[0];
    prb_tensor_settle(&turned);
    assert_false(turned.contiguous);
    expect_statistics(&turned);
    struct prb_tensor repeated = part_of(&tensor, "0");
    repeated.dims = 3;
    repeated.shape[2] = 9, repeated.stride[2] = 0;
    repeated.numel *= 9;
    expect_statistics(&repeated);
    struct prb_tensor overlapping = part_of(&tensor, "0");
    overlapping.stride[0] = 4; /* rows begin one element apart */
    expect_statistics(&overlapping);
}

static void types(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        unsigned size;
    } cases[] = {{"int8", 1},  {"uint8", 1},    {"bool", 1},         {"int16", 2},   {"uint16", 2},
                 {"int32", 4}, {"uint32", 4},   {"int64", 8},        {"float64", 8}, {"float16", 2},
                 {">i4", 4},   {"bfloat16", 2}, {"float8_e4m3fn", 1}};
    static uint8_t bytes[80000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t shape[] = {9999};
        for (size_t k = 0; k < sizeof bytes; k++) /* no NaN or infinity in any of them */
            bytes[k] = (uint8_t)(k * 2654435761u >> 11) & 0x3b;
        struct prb_tensor tensor = tensor_of(bytes, cases[i].dtype, cases[i].size, 1, shape);
        if (strcmp(cases[i].dtype, "float64"))
            expect_statistics(&tensor);
        else
            assert_int_equal(statistics_of(&tensor, NULL).count, 9999);
    }
}

/* A mean far above the spread costs no digits. */
static void far_from_zero(void **state)
{
    (void)state;
    static double numbers[100000];
    const int64_t shape[] = {100000};
    for (size_t i = 0; i < 100000; i++)
        numbers[i] = 1e9 + (double)(i % 2);
    struct prb_tensor tensor = tensor_of(numbers, "float64", 8, 1, shape);
    struct prb_statistics made = statistics_of(&tensor, NULL);
    assert_near(made.mean, 1e9 + 0.5);
    assert_near(made.std, sqrt(0.25 * 100000 / 99999));
    numbers[0] = NAN;
    numbers[1] = -INFINITY;
    made = statistics_of(&tensor, NULL);
    assert_int_equal(made.nan, 1);
    assert_int_equal(made.inf, 1);
    assert_true(made.min == -INFINITY && made.max == 1e9 + 1);
    assert_near(made.mean, 1e9 + 0.5);
}

static void complex_and_histogram(void **state)
{
    (void)state;
    float pairs[] = {1, 2, 3, -4, NAN, 0, 0, 0};
    const int64_t four[] = {4};
    struct prb_tensor tensor = tensor_of(pairs, "complex64", 8, 1, four);
    struct prb_statistics made = statistics_of(&tensor, NULL);
    assert_int_equal(made.nan, 1);
    assert_int_equal(made.zero, 1);
    assert_true(isnan(made.min));
    assert_near(made.mean, 4.0 / 3);
    assert_near(made.mean_imag, -2.0 / 3);
    assert_near(made.norm, sqrt(30));
    tensor.conjugated = true;
    assert_near(statistics_of(&tensor, NULL).mean_imag, 2.0 / 3);
    float numbers[] = {0, 1, 2, 3, 4, NAN, INFINITY, 4};
    const int64_t eight[] = {8};
    struct prb_statistics_options options = {.bins = 4, .low = 0, .high = 4};
    tensor = tensor_of(numbers, "float32", 4, 1, eight);
    made = statistics_of(&tensor, &options);
    static const int64_t expected[] = {1, 1, 1, 3};
    for (int i = 0; i < 4; i++)
        assert_int_equal(made.histogram[i], expected[i]);
    const int64_t none[] = {0};
    tensor = tensor_of(numbers, "float32", 4, 1, none);
    made = statistics_of(&tensor, &options);
    assert_true(made.count == 0 && isnan(made.min) && isnan(made.mean));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),          cmocka_unit_test(long_text),
        cmocka_unit_test(texts_of_types), cmocka_unit_test(refused),
        cmocka_unit_test(kernels),        cmocka_unit_test(halves),
        cmocka_unit_test(strides),        cmocka_unit_test(types),
        cmocka_unit_test(far_from_zero),  cmocka_unit_test(complex_and_histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
