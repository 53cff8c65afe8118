/*
 * Numbers and texts of objects: float, int, bool, str, numpy's scalars, tensors of one element.  What a class is, is found once and kept by its address and its name's.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/libc.h"
#include "inject/probe/watch/watch.h"
#include "tensor/torch_places.h"
#include "training/variable_rows.h"

#define KINDS 64u
#define BASES_MAX 64
#define DIGITS_MAX 4
#define LAYOUT (&prb_watch_facts.layout)
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { CPU = 0, CUDA = 1 }; /* c10::DeviceType */
enum kind { OTHER, NONE, BOOL, INT, FLOAT, STR, SCALAR, TENSOR };
enum element { U8, I8, I16, I32, I64, F16, F32, F64, B8, BF16, U16, U32, U64, NO_ELEMENT };

static const char *pointer(uint64_t word) { return (const char *)(uintptr_t)word; }

/* ---- elements ---- */

static const unsigned char element_size[] = {1, 1, 2, 4, 8, 2, 4, 8, 1, 2, 2, 4, 8};

/* c10::ScalarType (torch/headeronly/core/ScalarType.h) */
static enum element torch_element(unsigned code)
{
    static const unsigned char elements[] = {
        U8,         I8,         I16,        I32, I64,        F16,        F32,        F64,
        NO_ELEMENT, NO_ELEMENT, NO_ELEMENT, B8,  NO_ELEMENT, NO_ELEMENT, NO_ELEMENT, BF16};
    enum { UINT16 = 27, UINT64 = 29 };
    if (code >= UINT16 && code <= UINT64)
        return (enum element)(U16 + (code - UINT16));
    return code < COUNT(elements) ? (enum element)elements[code] : NO_ELEMENT;
}

static double half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023, sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    double value = exponent ? 1 + mantissa / 1024 : mantissa / 1024;
    for (int e = exponent ? exponent : 1; e < 15; e++)
        value /= 2;
    for (int e = 15; e < exponent; e++)
        value *= 2;
    return sign * value;
}

/* False: a double does not hold it; then whole has it. */
static bool element_number(enum element element, const void *bytes, double *out, int64_t *whole,
                           bool *is_unsigned)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } v = {.u64 = 0};
    memcpy(&v, bytes, element_size[element]);
    *is_unsigned = element == U64;
    *whole = v.i64;
    switch (element) {
    case U8:
        *out = v.u8;
        return true;
    case B8:
        *out = v.u8 != 0;
        return true;
    case I8:
        *out = v.i8;
        return true;
    case U16:
        *out = v.u16;
        return true;
    case I16:
        *out = v.i16;
        return true;
    case U32:
        *out = v.u32;
        return true;
    case I32:
        *out = v.i32;
        return true;
    case F16:
        *out = half(v.u16);
        return true;
    case F32:
        *out = (double)v.f32;
        return true;
    case F64:
        *out = v.f64;
        return true;
    case BF16:
        v.u32 = (uint32_t)v.u16 << 16;
        *out = (double)v.f32;
        return true;
    case I64:
        *out = (double)v.i64;
        return llabs(v.i64) <= (int64_t)1 << 53;
    case U64:
        *out = (double)v.u64;
        return v.u64 <= (uint64_t)1 << 53;
    default:
        return false;
    }
}

static void put_element(enum element element, const void *bytes, struct prb_watch_value *out)
{
    int64_t whole = 0;
    bool is_unsigned = false;
    out->has_number = true;
    if (element_number(element, bytes, &out->number, &whole, &is_unsigned))
        return;
    int len = is_unsigned ? snprintf(out->text, sizeof out->text, "%llu", (unsigned long long)whole)
                          : snprintf(out->text, sizeof out->text, "%lld", (long long)whole);
    out->text_len = len > 0 ? (size_t)len : 0;
}

/* ---- tensors ---- */

/* What was found to hold for this process's torch, or neither was. */
static const struct prb_torch_place *place;
static const struct prb_torch_form *form;

static const char *find_impl(const struct prb_watch_reader *reader, const char *body,
                             const struct prb_torch_place *at)
{
    uint64_t impl, flag;
    if (!prb_watch_read(reader, body + at->impl, &impl, sizeof impl))
        return NULL;
    if (at->maybe_owned) {
        if (!prb_watch_read(reader, body, &flag, sizeof flag) ||
            ((uint8_t)flag && !prb_watch_read(reader, pointer(impl), &impl, sizeof impl)))
            return NULL;
    }
    return impl % 8 ? NULL : pointer(impl);
}

static uint64_t word_of(const uint8_t *bytes, unsigned at)
{
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

/* A form is right if what it says points back to the object, and the sizes multiply to their number
 * (lib/tensor/torch.c).  Read through the kernel: nothing is known to be right yet. */
static bool proves(const char *object, const char *impl, const struct prb_torch_form *at)
{
    const struct prb_watch_reader reader = {.direct = false};
    uint8_t bytes[PRB_TORCH_IMPL_READ];
    uint64_t back, product = 1;
    if (!prb_watch_read(&reader, impl + at->object, &back, sizeof back) ||
        pointer(back & ~(uint64_t)7) != object ||
        !prb_watch_read(&reader, impl + at->sizes, bytes, sizeof bytes))
        return false;
    uint64_t dims = word_of(bytes, PRB_TORCH_SIZES_COUNT);
    if (dims > PRB_TORCH_INLINE_MAX || !prb_torch_device_in(bytes))
        return false;
    for (unsigned i = 0; i < dims; i++)
        product *= word_of(bytes, PRB_TORCH_SIZES_INLINE + 8 * i);
    return product == word_of(bytes, PRB_TORCH_NUMEL);
}

static void find_form(const char *object, const char *body)
{
    const struct prb_watch_reader reader = {.direct = false};
    for (size_t p = 0; p < PRB_TORCH_PLACES && !form; p++) {
        const char *impl = find_impl(&reader, body, &prb_torch_places[p]);
        for (size_t f = 0; impl && f < PRB_TORCH_FORMS && !form; f++)
            if (proves(object, impl, &prb_torch_forms[f])) {
                place = &prb_torch_places[p];
                form = &prb_torch_forms[f];
            }
    }
}

/* Why there is no value: a sentence about "it", or about a part of what was written. */
static void put_why(struct prb_watch_value *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out->text[0] = PRB_VARIABLES_WHY;
    int len = vsnprintf(out->text + 1, sizeof out->text - 1, format, args);
    va_end(args);
    out->text_len = len < 0                              ? 1
                    : (size_t)len < sizeof out->text - 1 ? (size_t)len + 1
                                                         : sizeof out->text - 1;
    out->why = true;
}

static void put_tensor(const struct prb_watch_reader *reader, const char *object,
                       struct prb_watch_value *out)
{
    const char *body = object + PRB_OFF(LAYOUT, object, size), *impl;
    uint8_t bytes[PRB_TORCH_IMPL_READ], storage[PRB_TORCH_STORAGE_READ], element_bytes[8] = {0};
    uint64_t at;
    uint16_t code;
    const int8_t *device; /* its type, then its index in the byte beside it */
    if (!form)
        find_form(object, body);
    if (!form || !(impl = find_impl(reader, body, place)) ||
        !prb_watch_read(reader, impl + form->sizes, bytes, sizeof bytes) ||
        !(device = prb_torch_device_in(bytes))) {
        put_why(out, "it is a %s, whose memory this version of probing cannot read", out->type);
        return;
    }
    if (word_of(bytes, PRB_TORCH_NUMEL) != 1) {
        put_why(out, "it is a %s of %llu elements, and only one of a single element has one",
                out->type, (unsigned long long)word_of(bytes, PRB_TORCH_NUMEL));
        return;
    }
    if (*device != CPU && *device != CUDA) {
        put_why(out, "it is a %s on a device: reading it would wait for that", out->type);
        return;
    }
    memcpy(&code, bytes + PRB_TORCH_DTYPE, sizeof code);
    enum element element = torch_element(code);
    if (element == NO_ELEMENT)
        put_why(out, "it is a %s whose elements are no plain numbers", out->type);
    if (element == NO_ELEMENT || !prb_watch_read(reader, impl + form->head, &at, sizeof at) ||
        !at || !prb_watch_read(reader, pointer(at) + form->head, storage, sizeof storage))
        return;
    uint64_t data = word_of(storage, PRB_TORCH_STORAGE_DATA),
             size = word_of(storage, PRB_TORCH_STORAGE_SIZE),
             offset = word_of(bytes, PRB_TORCH_STORAGE_OFFSET) * element_size[element];
    if (!data || storage[PRB_TORCH_STORAGE_DEVICE] != *device || offset > size ||
        element_size[element] > size - offset)
        return;
    if (*device == CUDA) {
        out->element = (unsigned char)element;
        out->ticket =
            prb_watch_device_begin(pointer(data + offset), element_size[element], device[1]);
        if (!out->ticket)
            put_why(out, "it is a %s on a device, from which it could not be copied", out->type);
    } else if (prb_watch_read(reader, pointer(data + offset), element_bytes,
                              element_size[element])) {
        put_element(element, element_bytes, out);
    }
}

void prb_watch_value_arrived(uint64_t bytes, struct prb_watch_value *out)
{
    out->ticket = 0;
    put_element((enum element)out->element, &bytes, out);
}

/* ---- int, str ---- */

static void put_int(const struct prb_watch_reader *reader, const char *object,
                    struct prb_watch_value *out)
{
    uint64_t tag;
    uint32_t digits[DIGITS_MAX] = {0};
    if (!PRB_WATCH_FIELD(reader, object, long, tag, &tag))
        return;
    bool tagged = PRB_IS(LAYOUT, int_size, TAG);
    int64_t size = (int64_t)tag;
    bool negative = tagged ? (tag & 3) == 2 : size < 0;
    uint64_t count = tagged ? tag >> 3 : (uint64_t)(size < 0 ? -size : size);
    if (tagged && (tag & 3) == 1)
        count = 0;
    if (count > DIGITS_MAX)
        return; /* beyond 2^120 */
    if (count && !prb_watch_read(reader, object + PRB_OFF(LAYOUT, long, digits), digits, count * 4))
        return;
    unsigned __int128 whole = 0;
    for (uint64_t i = count; i-- > 0;)
        whole = whole << 30 | (digits[i] & 0x3fffffff);
    out->has_number = true;
    out->number = (negative ? -1.0 : 1.0) * (double)whole;
    if (whole <= (unsigned __int128)1 << 53)
        return;
    char text[44], *end = text + sizeof text, *begin = end;
    for (; whole; whole /= 10)
        *--begin = (char)('0' + (int)(whole % 10));
    if (negative)
        *--begin = '-';
    out->text_len = (size_t)(end - begin);
    memcpy(out->text, begin, out->text_len);
}

static size_t put_character(uint32_t c, char *out, size_t room)
{
    if (c < 0x80 && room >= 1)
        return *out = (char)c, 1;
    if (c < 0x800 && room >= 2)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c >= 0xd800 && c < 0xe000)
        c = 0xfffd; /* half of a pair */
    if (c < 0x10000 && room >= 3)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)),
               out[2] = (char)(0x80 | (c & 63)), 3;
    if (c >= 0x10000 && c < 0x110000 && room >= 4)
        return out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63)),
               out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63)), 4;
    return 0;
}

size_t prb_watch_str(const struct prb_watch_reader *reader, const char *str, char *out, size_t cap)
{
    enum { KIND_MASK = 7, KIND_MAX = 4 };
    uint8_t bytes[KIND_MAX * PRB_WATCH_TEXT_MAX];
    uint64_t length, state, data;
    if (!PRB_WATCH_FIELD(reader, str, str, length, &length) ||
        !PRB_WATCH_FIELD(reader, str, str, state, &state))
        return 0;
    unsigned kind = (unsigned)(state >> PRB_NUM(LAYOUT, str_kind_bit)) & KIND_MASK;
    bool compact = state >> PRB_NUM(LAYOUT, str_compact_bit) & 1;
    bool ascii = state >> PRB_NUM(LAYOUT, str_ascii_bit) & 1;
    const char *at =
        str + (ascii ? PRB_OFF(LAYOUT, str, ascii_data) : PRB_OFF(LAYOUT, str, compact_data));
    if (!compact) {
        if (!PRB_WATCH_FIELD(reader, str, str, data, &data))
            return 0;
        at = pointer(data);
    }
    if (kind != 1 && kind != 2 && kind != 4)
        return 0;
    size_t most = cap < PRB_WATCH_TEXT_MAX ? cap : PRB_WATCH_TEXT_MAX;
    size_t count = length < most ? (size_t)length : most, len = 0;
    if (!prb_watch_read(reader, at, bytes, count * kind))
        return 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t c = 0;
        memcpy(&c, bytes + i * kind, kind);
        size_t more = put_character(c, out + len, cap - len);
        if (!more)
            break;
        len += more;
    }
    return len;
}

/* ---- what a class is ---- */

static const struct {
    const char *name;
    enum element element;
} scalars[] = {
    {"numpy.int8", I8},     {"numpy.int16", I16},     {"numpy.int32", I32},
    {"numpy.int64", I64},   {"numpy.longlong", I64},  {"numpy.intc", I32},
    {"numpy.uint8", U8},    {"numpy.uint16", U16},    {"numpy.uint32", U32},
    {"numpy.uint64", U64},  {"numpy.ulonglong", U64}, {"numpy.uintc", U32},
    {"numpy.float16", F16}, {"numpy.float32", F32},   {"numpy.float64", F64},
    {"numpy.bool_", B8},    {"numpy.bool", B8},
};
/* The C class below torch.Tensor, old and new. */
static const char *const tensors[] = {"torch._C.TensorBase", "torch._C._TensorBase"};

struct known {
    const char *type;
    uint64_t name_at; /* an address that another class has by now has another name */
    enum kind kind;
    enum element element;
    char name[PRB_WATCH_TEXT_MAX];
};
static struct known kinds[KINDS];
static unsigned kind_count;

static bool read_name(const struct prb_watch_reader *reader, uint64_t at, char *out, size_t cap)
{
    /* Piece by piece: the end of a mapping may be near. */
    for (size_t len = 0; len + 1 < cap; len++) {
        if (!prb_watch_read(reader, pointer(at + len), out + len, 1))
            return false;
        if (!out[len])
            return true;
    }
    out[cap - 1] = '\0';
    return true;
}

static void classify(const struct prb_watch_reader *reader, const char *type, struct known *out)
{
    char name[PRB_WATCH_TEXT_MAX];
    uint64_t base = 0, at;
    for (int i = 0; type && i < BASES_MAX && out->kind == OTHER; i++) {
        out->kind = type == prb_watch_facts.bool_type    ? BOOL
                    : type == prb_watch_facts.int_type   ? INT
                    : type == prb_watch_facts.float_type ? FLOAT
                    : type == prb_watch_facts.str_type   ? STR
                                                         : OTHER;
        if (out->kind != OTHER || !PRB_WATCH_FIELD(reader, type, type, name, &at) ||
            !read_name(reader, at, name, sizeof name))
            return;
        for (size_t s = 0; s < COUNT(scalars); s++)
            if (strcmp(scalars[s].name, name) == 0) {
                out->kind = SCALAR;
                out->element = scalars[s].element;
            }
        for (size_t t = 0; t < COUNT(tensors); t++)
            if (strcmp(tensors[t], name) == 0)
                out->kind = TENSOR;
        if (!PRB_WATCH_FIELD(reader, type, type, base, &base))
            return;
        type = pointer(base);
    }
}

/* "torch.Tensor": classes written in Python do not have the module in their name. */
static void full_name(const struct prb_watch_reader *reader, const char *type, struct known *out)
{
    uint64_t dict = 0;
    char name[PRB_WATCH_TEXT_MAX / 2], module[PRB_WATCH_TEXT_MAX / 2 - 2];
    if (!read_name(reader, out->name_at, name, sizeof name))
        return;
    const char *value = NULL;
    if (!strchr(name, '.') && PRB_WATCH_FIELD(reader, type, type, dict, &dict) && dict)
        value = prb_watch_dict_get(reader, pointer(dict), prb_watch_facts.module_key);
    size_t len = value && prb_watch_type_of(reader, value) == prb_watch_facts.str_type
                     ? prb_watch_str(reader, value, module, sizeof module)
                     : 0;
    bool plain = !len || (len == strlen("builtins") && !memcmp(module, "builtins", len));
    snprintf(out->name, sizeof out->name, "%.*s%s%s", plain ? 0 : (int)len, module,
             plain ? "" : ".", name);
}

/* Its place among those that are known; NULL: no room for more. */
static const struct known *known_of(const struct prb_watch_reader *reader, const char *type)
{
    uint64_t name;
    if (!PRB_WATCH_FIELD(reader, type, type, name, &name))
        return NULL;
    for (unsigned i = 0; i < kind_count; i++)
        if (kinds[i].type == type && kinds[i].name_at == name)
            return &kinds[i];
    if (kind_count == KINDS)
        return NULL;
    struct known *one = &kinds[kind_count];
    *one = (struct known){.type = type, .name_at = name};
    classify(reader, type, one);
    full_name(reader, type, one);
    kind_count++;
    return one;
}

void prb_watch_value_of_int(int64_t number, struct prb_watch_value *out)
{
    *out = (struct prb_watch_value){.bound = true, .type = "int"};
    put_element(I64, &number, out);
}

void prb_watch_value(const struct prb_watch_reader *reader, const char *object,
                     struct prb_watch_value *out)
{
    out->bound = object != NULL;
    out->has_number = out->why = false;
    out->ticket = 0;
    out->type = NULL;
    out->text_len = 0;
    const char *type = object ? prb_watch_type_of(reader, object) : NULL;
    const struct known *known = type ? known_of(reader, type) : NULL;
    uint64_t word = 0;
    if (!known)
        return;
    out->type = known->name;
    switch (known->kind) {
    case FLOAT:
        out->has_number = PRB_WATCH_FIELD(reader, object, float, value, &word);
        memcpy(&out->number, &word, sizeof out->number);
        break;
    case BOOL:
    case INT:
        put_int(reader, object, out);
        break;
    case SCALAR:
        if (prb_watch_read(reader, object + PRB_OFF(LAYOUT, object, size), &word,
                           element_size[known->element]))
            put_element(known->element, &word, out);
        break;
    case TENSOR:
        put_tensor(reader, object, out);
        break;
    case STR:
        out->text_len = prb_watch_str(reader, object, out->text, sizeof out->text);
        break;
    default:
        if (object != prb_watch_facts.none)
            put_why(out, "it is of type %s", out->type);
        break;
    }
}

void prb_watch_value_ends(const struct prb_watch_reader *reader, const char *object,
                          const char *text, size_t at, size_t end, struct prb_watch_value *out)
{
    const char *type = prb_watch_type_of(reader, object);
    const struct known *known = type ? known_of(reader, type) : NULL;
    put_why(out, "%.*s is of type %s, in which %.*s is not found", (int)at, text,
            known ? known->name : "value", (int)(end - at), text + at);
}
