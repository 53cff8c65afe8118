/*
 * The texts of decimals, of array.array and of ctypes' simple types, as their repr() gives them.
 * Sources: Modules/_decimal (mpdecimal's basearith: words of 10^19), Modules/arraymodule.c,
 * Modules/_ctypes/_ctypes.c.
 */
#include <inttypes.h>
#include <string.h>

#include "repr/writer.h"

/* ---- decimal ---- */

enum { WORD_DIGITS = 19, WORDS_MAX = 256, NEGATIVE = 1, INFINITE = 2, NAN_ = 4, SIGNALING = 8 };

static bool decimal_digits(struct prb_repr *repr, prb_addr object, struct prb_buf *out)
{
    uint64_t length, at, words[WORDS_MAX];
    if (!PRB_GET(repr->objects, object, decimal, length, &length) || length > WORDS_MAX ||
        !PRB_GET(repr->objects, object, decimal, words, &at) ||
        (length && !prb_objects_words(repr->objects, at, words, length)))
        return false;
    for (uint64_t i = length; i > 0; i--)
        prb_buf_addf(out, "%0*" PRIu64, i == length ? 1 : WORD_DIGITS, words[i - 1]);
    return prb_buf_ok(out) && (!length || out->data);
}

/* The specification's to-scientific-string. */
static void add_number(struct prb_repr *repr, const char *digits, int64_t exponent)
{
    int64_t count = (int64_t)strlen(digits), adjusted = exponent + count - 1;
    int64_t point = exponent <= 0 && adjusted >= -6 ? count + exponent : 1;
    if (point <= 0)
        prb_text_add(&repr->text, "0.");
    for (int64_t i = point; i < 0; i++)
        prb_text_add(&repr->text, "0");
    for (int64_t i = 0; i < count; i++) {
        if (i == point && i > 0)
            prb_text_add(&repr->text, ".");
        prb_text_ascii(&repr->text, digits + i, 1);
    }
    if (exponent > 0 || adjusted < -6)
        prb_text_addf(&repr->text, "E%+" PRId64, adjusted);
}

#define EXPONENT_MAX 2000000000000000000 /* of 64-bit builds: MAX_EMAX, MIN_ETINY */

void prb_repr_decimal(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    PRB_AUTO(prb_buf) struct prb_buf digits = {0};
    uint64_t flags, exponent;
    if (!PRB_GET(repr->objects, object, decimal, flags, &flags) ||
        !PRB_GET(repr->objects, object, decimal, exponent, &exponent) ||
        (int64_t)exponent > EXPONENT_MAX || (int64_t)exponent < -EXPONENT_MAX ||
        !decimal_digits(repr, object, &digits)) {
        prb_repr_short(repr, object, type);
        return;
    }
    const char *number = digits.data ? digits.data : "";
    prb_text_add(&repr->text, flags & NEGATIVE ? "Decimal('-" : "Decimal('");
    if (flags & INFINITE) {
        prb_text_add(&repr->text, "Infinity");
    } else if (flags & (NAN_ | SIGNALING)) {
        prb_text_add(&repr->text, flags & SIGNALING ? "sNaN" : "NaN");
        prb_text_add(&repr->text, number);
    } else {
        add_number(repr, number, (int64_t)exponent);
    }
    prb_text_add(&repr->text, "')");
}

/* The 64 bits of an int; false when it is larger or not an int. */
static bool small_int(struct prb_repr *repr, prb_addr object, int64_t *out)
{
    struct prb_int number;
    const uint32_t *digits = NULL;
    *out = 0;
    if (!object || prb_object_kind(repr->objects, object, NULL) != PRB_OBJ_INT ||
        !prb_int_open(repr->objects, object, &number, NULL) || number.count > 2)
        return false;
    if (!number.sign)
        return true;
    if (!(digits = prb_objects_get(repr->objects, number.digits, number.count * sizeof *digits)))
        return false;
    for (uint64_t i = number.count; i > 0; i--)
        *out = *out << 30 | digits[i - 1];
    *out *= number.sign;
    return true;
}

/* _pydecimal's: _exp is an int, or "F" (infinite), "n" (NaN), "N" (sNaN). */
void prb_repr_python_decimal(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { SIGN, DIGITS, EXPONENT, COUNT };
    static const char *const names[] = {"_sign", "_int", "_exp", NULL};
    PRB_AUTO(prb_buf) struct prb_buf digits = {0}, special = {0};
    prb_addr values[COUNT];
    int64_t sign, exponent = 0;
    if (!prb_pick_attributes(repr->objects, object, type, names, values) || !values[DIGITS] ||
        !small_int(repr, values[SIGN], &sign) || !values[EXPONENT] ||
        !prb_object_str(repr->objects, values[DIGITS], PRB_REPR_CHARACTERS, &digits, NULL) ||
        (!small_int(repr, values[EXPONENT], &exponent) &&
         !prb_object_str(repr->objects, values[EXPONENT], 2, &special, NULL))) {
        prb_repr_short(repr, object, type);
        return;
    }
    const char *number = digits.data ? digits.data : "";
    prb_text_add(&repr->text, sign ? "Decimal('-" : "Decimal('");
    if (!special.data) {
        add_number(repr, number, exponent);
    } else if (*special.data == 'F') {
        prb_text_add(&repr->text, "Infinity");
    } else {
        prb_text_add(&repr->text, *special.data == 'N' ? "sNaN" : "NaN");
        prb_text_add(&repr->text, number);
    }
    prb_text_add(&repr->text, "')");
}

/* ---- numbers in memory: array.array and ctypes, by the letters that both use ---- */

static size_t size_of_code(char code)
{
    switch (code) {
    case 'b':
    case 'B':
    case '?':
    case 'c':
        return 1;
    case 'h':
    case 'H':
        return 2;
    case 'i':
    case 'I':
    case 'f':
    case 'u': /* wchar_t */
    case 'w':
        return 4;
    case 'l':
    case 'L':
    case 'q':
    case 'Q':
    case 'd':
    case 'P':
    case 'O':
    case 'z':
    case 'Z':
        return 8;
    default:
        return 0;
    }
}

static void add_real(struct prb_repr *repr, double value)
{
    char text[PRB_FLOAT_TEXT];
    prb_float_format(value, true, text);
    prb_text_add(&repr->text, text);
}

static void add_code(struct prb_repr *repr, char code, const void *data)
{
    uint64_t bits = 0;
    size_t size = size_of_code(code);
    float single;
    double real;
    memcpy(&bits, data, size);
    switch (code) {
    case 'f':
        memcpy(&single, data, sizeof single);
        add_real(repr, (double)single);
        return;
    case 'd':
        memcpy(&real, data, sizeof real);
        add_real(repr, real);
        return;
    case '?':
        prb_text_add(&repr->text, bits ? "True" : "False");
        return;
    case 'P':
        prb_text_addf(&repr->text, bits ? "%" PRIu64 : "None", bits);
        return;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
        prb_text_addf(&repr->text, "%" PRId64,
                      (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
        return;
    default:
        prb_text_addf(&repr->text, "%" PRIu64, bits);
    }
}

static void add_characters(struct prb_repr *repr, prb_addr at, uint64_t length)
{
    struct prb_str str = {.length = length, .width = sizeof(wchar_t), .data = at};
    if (!prb_characters_write(repr->objects, &str, &repr->text))
        prb_text_add(&repr->text, PRB_UNREADABLE);
}

void prb_repr_array_array(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_objects *objects = repr->objects;
    uint64_t descr, code, length, items;
    size_t count = 0, size = 0;
    if (PRB_GET(objects, object, array, descr, &descr) &&
        PRB_GET(objects, descr, array_descr, code, &code) &&
        PRB_GET(objects, object, array, length, &length) &&
        PRB_GET(objects, object, array, items, &items))
        size = strchr("bBhHiIlLqQfduw", (char)code) ? size_of_code((char)code) : 0;
    if (!size) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_head(repr, prb_type_short_name(type));
    prb_text_addf(&repr->text, length ? "'%c', " : "'%c')", (char)code);
    if (length && (code == 'u' || code == 'w')) {
        add_characters(repr, items, length);
        prb_text_add(&repr->text, ")");
        return;
    }
    prb_text_add(&repr->text, length ? "[" : "");
    for (uint64_t i = 0; i < length && prb_repr_item(repr, &count); i++) {
        const void *data = prb_objects_get(objects, items + i * size, size);
        if (!data) {
            prb_text_add(&repr->text, PRB_UNREADABLE);
            break;
        }
        add_code(repr, (char)code, data);
    }
    if (length)
        prb_text_add(&repr->text, "])");
}

bool prb_is_ctypes_simple(const struct prb_object_type *type)
{
    return type->python && !strcmp(type->builtin, "_ctypes._SimpleCData");
}

/* What a simple ctypes object of this code has at data. */
static void add_simple(struct prb_repr *repr, char code, prb_addr at)
{
    size_t size = size_of_code(code);
    const void *data = prb_objects_get(repr->objects, at, size);
    uint64_t pointer = 0;
    if (data && size == sizeof pointer)
        memcpy(&pointer, data, size);
    if (!data)
        prb_text_add(&repr->text, PRB_UNREADABLE);
    else if (code == 'u')
        add_characters(repr, at, 1);
    else if (code == 'O' && !pointer)
        prb_text_add(&repr->text, "<NULL>");
    else if (code == 'O')
        prb_repr_value(repr, pointer);
    else if (code == 'z' || code == 'Z') /* repr() gives the address, too: the text may be gone */
        add_code(repr, 'P', data);
    else if (code != 'c')
        add_code(repr, code, data);
    else if (!prb_raw_bytes_write(repr->objects, at, 1, &repr->text))
        prb_text_add(&repr->text, PRB_UNREADABLE);
}

/* Classes of the user's below c_int and the like print themselves as any instance. */
void prb_repr_ctypes_simple(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_objects *objects = repr->objects;
    PRB_AUTO(prb_buf) struct prb_buf code = {0};
    prb_addr letter = 0;
    uint64_t at;
    struct prb_object_type *base = prb_type_at(objects, type->base, NULL);
    if (!base || base->python || !type->dict ||
        !prb_dict_get(objects, type->dict, "_type_", &letter, NULL) || !letter ||
        !prb_object_str(objects, letter, 2, &code, NULL) || !code.data ||
        !size_of_code(*code.data) || !PRB_GET(objects, object, ctypes, data, &at)) {
        prb_repr_short(repr, object, type);
        return;
    }
    /* One that leads to itself ends here. */
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_repr_head(repr, type->name);
    add_simple(repr, *code.data, at);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}
