/*
 * The inner loops for one kind of CPU, included by kernel.c once for each with
 *   NAME(x)   the names of this kind
 *   BYTES     of a vector register
 *   MIN32, MAX32, MIN64, MAX64 (a, b)   lane by lane; b where either is NaN
 *   WIDE(x)   half a register of floats as one of doubles
 *   PLUS(a, b)   of doubles
 * Most blocks have finite elements only.  So a block is summed as if it did; if not, the sum of
 * squares is not finite, and the block is summed again, with care.
 */
#define F32S (BYTES / 4)
#define F64S (BYTES / 8)

typedef float NAME(f32) __attribute__((vector_size(BYTES)));
typedef int32_t NAME(i32) __attribute__((vector_size(BYTES)));
typedef uint16_t NAME(u16) __attribute__((vector_size(BYTES / 2)));
typedef float NAME(f32h) __attribute__((vector_size(BYTES / 2)));
typedef double NAME(f64) __attribute__((vector_size(BYTES)));
typedef int64_t NAME(i64) __attribute__((vector_size(BYTES)));

/* ---- float32 ---- */

/* The sums of a run of elements, in registers: an array of vectors would live in memory. */
struct NAME(f32_sums) {
    NAME(f32) low, high;
    NAME(i32) zero;
    NAME(f64) sum, sum2, squares, squares2;
};

static void NAME(f32_init)(struct NAME(f32_sums) * sums)
{
    *sums = (struct NAME(f32_sums)){.low = (NAME(f32)){0} + INFINITY,
                                    .high = (NAME(f32)){0} - INFINITY};
}

/* By copies: a vector whose lanes are taken by number would live in memory. */
static void NAME(f32_total)(const struct NAME(f32_sums) * sums, struct prb_block *out)
{
    NAME(f64) sum = sums->sum + sums->sum2, squares = sums->squares + sums->squares2;
    float low[F32S], high[F32S];
    int32_t zero[F32S];
    double all[F64S], all_squares[F64S];
    memcpy(low, &sums->low, BYTES);
    memcpy(high, &sums->high, BYTES);
    memcpy(zero, &sums->zero, BYTES);
    memcpy(all, &sum, BYTES);
    memcpy(all_squares, &squares, BYTES);
    for (int k = 0; k < F32S; k++) {
        out->zero += zero[k];
        out->low = lesser(out->low, (double)low[k]);
        out->high = greater(out->high, (double)high[k]);
    }
    for (int k = 0; k < F64S; k++) {
        out->sum += all[k];
        out->squares += all_squares[k];
    }
}

static void NAME(f32_quick)(const char *from, size_t count, struct prb_block *out)
{
    struct NAME(f32_sums) sums;
    NAME(f64) pivot = (NAME(f64)){0} + out->pivot;
    NAME(f32_init)(&sums);
    for (size_t i = 0; i < count; i += F32S) {
        NAME(f32) value;
        NAME(f32h) left, right; /* from memory: to take a register apart costs more */
        LOAD(value, from + 4 * i);
        LOAD(left, from + 4 * i);
        LOAD(right, from + 4 * i + BYTES / 2);
        NAME(f64) away = WIDE(left) - pivot, away2 = WIDE(right) - pivot;
        sums.zero -= value == 0;
        sums.low = MIN32(value, sums.low);
        sums.high = MAX32(value, sums.high);
        sums.sum = PLUS(sums.sum, away);
        sums.sum2 = PLUS(sums.sum2, away2);
        sums.squares += away * away;
        sums.squares2 += away2 * away2;
    }
    NAME(f32_total)(&sums, out);
}

static void NAME(f32_careful)(const char *from, size_t count, struct prb_block *out)
{
    struct NAME(f32_sums) sums;
    NAME(f32) stand_in = (NAME(f32)){0} + (float)out->pivot;
    NAME(i32) finite = {0}, number = {0};
    NAME(f64) pivot = (NAME(f64)){0} + out->pivot;
    NAME(f32_init)(&sums);
    for (size_t i = 0; i < count; i += F32S) {
        NAME(f32) value;
        NAME(f32h) left, right;
        LOAD(value, from + 4 * i);
        NAME(i32) good = (NAME(f32))((NAME(i32))value & INT32_MAX) <= FLT_MAX;
        finite -= good;
        number -= value == value;
        sums.zero -= value == 0;
        sums.low = MIN32(value, sums.low);
        sums.high = MAX32(value, sums.high);
        value = (NAME(f32))(((NAME(i32))value & good) | ((NAME(i32))stand_in & ~good));
        memcpy(&left, &value, BYTES / 2);
        memcpy(&right, (const char *)&value + BYTES / 2, BYTES / 2);
        NAME(f64) away = WIDE(left) - pivot, away2 = WIDE(right) - pivot;
        sums.sum += away;
        sums.sum2 += away2;
        sums.squares += away * away;
        sums.squares2 += away2 * away2;
    }
    NAME(f32_total)(&sums, out);
    int32_t finites[F32S], numbers[F32S];
    memcpy(finites, &finite, BYTES);
    memcpy(numbers, &number, BYTES);
    out->nan += (int64_t)count;
    for (int k = 0; k < F32S; k++) {
        out->nan -= numbers[k];
        out->infinite += numbers[k] - finites[k];
    }
}

static void NAME(f32_block)(const void *elements, size_t count, struct prb_block *out)
{
    const char *from = elements;
    size_t whole = count / F32S * F32S;
    double pivot = first_finite32(from, count);
    block_init(pivot, out);
    NAME(f32_quick)(from, whole, out);
    if (!(out->squares <= DBL_MAX)) {
        block_init(pivot, out);
        NAME(f32_careful)(from, whole, out);
    }
    for (size_t i = whole; i < count; i++) {
        float value;
        LOAD(value, from + 4 * i);
        add_one((double)value, out);
    }
}

/* ---- float64 ---- */

static void NAME(f64_quick)(const char *from, size_t count, struct prb_block *out)
{
    NAME(f64) none = {0}, pivot = none + out->pivot;
    NAME(f64) low[2] = {none + INFINITY, none + INFINITY}, high[2] = {-low[0], -low[0]};
    NAME(f64) sum[2] = {{0}}, squares[2] = {{0}};
    NAME(i64) zero = {0};
    for (size_t i = 0; i < count; i += 2 * F64S)
        for (size_t k = 0; k < 2; k++) {
            NAME(f64) value;
            LOAD(value, from + 8 * (i + k * F64S));
            zero -= value == 0;
            low[k] = MIN64(value, low[k]);
            high[k] = MAX64(value, high[k]);
            NAME(f64) away = value - pivot;
            sum[k] += away;
            squares[k] += away * away;
        }
    for (int k = 0; k < F64S; k++) {
        out->zero += zero[k];
        out->low = lesser(out->low, lesser(low[0][k], low[1][k]));
        out->high = greater(out->high, greater(high[0][k], high[1][k]));
        out->sum += sum[0][k] + sum[1][k];
        out->squares += squares[0][k] + squares[1][k];
    }
}

static void NAME(f64_careful)(const char *from, size_t count, struct prb_block *out)
{
    NAME(f64) none = {0}, pivot = none + out->pivot, low = none + INFINITY, high = -low;
    NAME(f64) sum = {0}, squares = {0};
    NAME(i64) finite = {0}, number = {0}, zero = {0};
    for (size_t i = 0; i < count; i += F64S) {
        NAME(f64) value;
        LOAD(value, from + 8 * i);
        NAME(i64) good = (NAME(f64))((NAME(i64))value & INT64_MAX) <= DBL_MAX;
        finite -= good;
        number -= value == value;
        zero -= value == 0;
        low = MIN64(value, low);
        high = MAX64(value, high);
        NAME(f64)
        away = (NAME(f64))(((NAME(i64))value & good) | ((NAME(i64))pivot & ~good)) - pivot;
        sum += away;
        squares += away * away;
    }
    out->nan += (int64_t)count;
    for (int k = 0; k < F64S; k++) {
        out->nan -= number[k];
        out->infinite += number[k] - finite[k];
        out->zero += zero[k];
        out->low = lesser(out->low, low[k]);
        out->high = greater(out->high, high[k]);
        out->sum += sum[k];
        out->squares += squares[k];
    }
}

static void NAME(f64_block)(const void *elements, size_t count, struct prb_block *out)
{
    const char *from = elements;
    size_t whole = count / (2 * F64S) * (2 * F64S);
    double pivot = first_finite64(from, count);
    block_init(pivot, out);
    NAME(f64_quick)(from, whole, out);
    if (!(out->squares <= DBL_MAX)) {
        block_init(pivot, out);
        NAME(f64_careful)(from, whole, out);
    }
    for (size_t i = whole; i < count; i++) {
        double value;
        LOAD(value, from + 8 * i);
        add_one(value, out);
    }
}

/* ---- 16-bit floats to float32 ---- */

/* Exponent and fraction in their new places lack 112 in the exponent, infinities and NaNs twice;
 * what is below the normal ones is a multiple of 2^-24. */
static void NAME(half)(const void *halves, size_t count, float *out)
{
    const char *from = halves;
    for (size_t i = 0; i < count; i += F32S) {
        uint16_t padded[F32S] = {0};
        NAME(u16) narrow;
        size_t n = count - i < F32S ? count - i : F32S;
        if (n < F32S)
            memcpy(padded, from + 2 * i, 2 * n);
        LOAD(narrow, n < F32S ? (const char *)padded : from + 2 * i);
        NAME(i32) half = __builtin_convertvector(narrow, NAME(i32)), size = half & 0x7fff;
        NAME(i32) special = (size > 0x7bff) & (112 << 23), small = size < 0x400;
        NAME(f32) least = __builtin_convertvector(size, NAME(f32)) * 0x1p-24f;
        NAME(i32) bits = ((size << 13) + (112 << 23) + special);
        bits = (bits & ~small) | ((NAME(i32))least & small) | (half & 0x8000) << 16;
        memcpy(out + i, &bits, n * sizeof *out);
    }
}

static void NAME(bfloat)(const void *halves, size_t count, float *out)
{
    const char *from = halves;
    size_t i = 0;
    for (; i + F32S <= count; i += F32S) {
        NAME(u16) narrow;
        LOAD(narrow, from + 2 * i);
        NAME(i32) bits = __builtin_convertvector(narrow, NAME(i32)) << 16;
        memcpy(out + i, &bits, sizeof bits);
    }
    for (; i < count; i++) {
        uint16_t narrow;
        LOAD(narrow, from + 2 * i);
        uint32_t bits = (uint32_t)narrow << 16;
        memcpy(out + i, &bits, sizeof bits);
    }
}

static const struct prb_kernel NAME(kernel) = {NAME(f32_block), NAME(f64_block), NAME(half),
                                               NAME(bfloat)};

#undef F32S
#undef F64S
#undef NAME
#undef BYTES
#undef MIN32
#undef MAX32
#undef MIN64
#undef MAX64
#undef WIDE
#undef PLUS
