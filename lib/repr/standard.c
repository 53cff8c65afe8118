/*
 * The texts of the standard library's usual types, as their repr() gives them.
 * Sources: Modules/_datetimemodule.c, Modules/_decimal (mpdecimal's basearith: words of 10^19),
 * Modules/arraymodule.c, Modules/_ctypes/_ctypes.c, Modules/_threadmodule.c, Objects/dictobject.c;
 * Lib/pathlib, Lib/uuid.py, Lib/fractions.py, Lib/threading.py of 3.6 to 3.15.
 *
 * To add a type made in C: its fields (py/layout/fields.def), a writer here, its name in repr.c.
 * One written in Python: its class in forms_by_name (py/object/class.c), a writer here, its form
 * in repr.c.  Then a value in tests/targets/values.py.
 */
#include <inttypes.h>
#include <string.h>

#include "base/secret.h"
#include "repr/writer.h"

static void add_head(struct prb_repr *repr, const char *name)
{
    prb_text_add(&repr->text, name);
    prb_text_add(&repr->text, "(");
}

/* ---- datetime ---- */

static const uint8_t *bytes_of(struct prb_repr *repr, prb_addr object, enum prb_field field,
                               size_t count)
{
    int64_t offset = repr->objects->layout->offset[field];
    return offset == PRB_ABSENT ? NULL
                                : prb_objects_get(repr->objects, object + (uint64_t)offset, count);
}

static void add_date(struct prb_repr *repr, const uint8_t *data)
{
    prb_text_addf(&repr->text, "%u, %u, %u", (unsigned)(data[0] << 8 | data[1]), data[2], data[3]);
}

/* Hours and minutes, and what follows as far as it is not 0. */
static void add_time(struct prb_repr *repr, const uint8_t *data)
{
    unsigned microsecond = (unsigned)(data[3] << 16 | data[4] << 8 | data[5]);
    prb_text_addf(&repr->text, "%u, %u", data[0], data[1]);
    if (data[2] || microsecond)
        prb_text_addf(&repr->text, ", %u", data[2]);
    if (microsecond)
        prb_text_addf(&repr->text, ", %u", microsecond);
}

static void add_zone(struct prb_repr *repr, bool has_zone, prb_addr object, enum prb_field field,
                     bool fold)
{
    uint64_t zone;
    if (has_zone && prb_objects_field(repr->objects, object, field, &zone)) {
        prb_text_add(&repr->text, ", tzinfo=");
        prb_repr_value(repr, zone);
    }
    prb_text_add(&repr->text, fold ? ", fold=1)" : ")");
}

void prb_repr_date(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    const uint8_t *data = bytes_of(repr, object, PRB_F_date_data, 4);
    if (!data) {
        prb_repr_short(repr, object, type);
        return;
    }
    add_head(repr, type->name);
    add_date(repr, data);
    prb_text_add(&repr->text, ")");
}

enum { DATE_BYTES = 4, TIME_BYTES = 6 };

void prb_repr_time(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t has_zone, fold = 0;
    const uint8_t *data = NULL;
    (void)PRB_GET(repr->objects, object, time, fold, &fold);
    if (PRB_GET(repr->objects, object, time, has_zone, &has_zone))
        data = bytes_of(repr, object, PRB_F_time_data, TIME_BYTES);
    if (!data) {
        prb_repr_short(repr, object, type);
        return;
    }
    add_head(repr, type->name);
    add_time(repr, data);
    add_zone(repr, has_zone != 0, object, PRB_F_time_zone, fold == 1);
}

void prb_repr_datetime(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t has_zone, fold = 0;
    const uint8_t *data = NULL;
    (void)PRB_GET(repr->objects, object, datetime, fold, &fold);
    if (PRB_GET(repr->objects, object, datetime, has_zone, &has_zone))
        data = bytes_of(repr, object, PRB_F_datetime_data, DATE_BYTES + TIME_BYTES);
    if (!data) {
        prb_repr_short(repr, object, type);
        return;
    }
    add_head(repr, type->name);
    add_date(repr, data);
    prb_text_add(&repr->text, ", ");
    add_time(repr, data + DATE_BYTES);
    prb_text_add(&repr->text, fold == 1 ? ", fold=1" : ""); /* here before the zone */
    add_zone(repr, has_zone != 0, object, PRB_F_datetime_zone, false);
}

static bool read_delta(struct prb_repr *repr, prb_addr object, int32_t parts[3])
{
    static const enum prb_field fields[] = {PRB_F_timedelta_days, PRB_F_timedelta_seconds,
                                            PRB_F_timedelta_microseconds};
    for (size_t i = 0; i < 3; i++) {
        uint64_t value;
        if (!prb_objects_field(repr->objects, object, fields[i], &value))
            return false;
        parts[i] = (int32_t)(uint32_t)value;
    }
    return true;
}

/* As 3.7 and newer print it. */
void prb_repr_timedelta(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"days", "seconds", "microseconds"};
    int32_t parts[3];
    size_t count = 0;
    if (!read_delta(repr, object, parts)) {
        prb_repr_short(repr, object, type);
        return;
    }
    add_head(repr, type->name);
    for (size_t i = 0; i < 3; i++)
        if (parts[i])
            prb_text_addf(&repr->text, "%s%s=%" PRId32, count++ ? ", " : "", names[i], parts[i]);
    prb_text_add(&repr->text, count ? ")" : "0)");
}

void prb_repr_timezone(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t offset, name;
    int32_t parts[3];
    if (!PRB_GET(repr->objects, object, timezone, offset, &offset) ||
        !PRB_GET(repr->objects, object, timezone, name, &name) ||
        !read_delta(repr, offset, parts)) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (!name && !parts[0] && !parts[1] && !parts[2]) {
        prb_text_add(&repr->text, "datetime.timezone.utc");
        return;
    }
    add_head(repr, type->name);
    prb_repr_value(repr, offset);
    if (name) {
        prb_text_add(&repr->text, ", ");
        prb_repr_value(repr, name);
    }
    prb_text_add(&repr->text, ")");
}

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
    add_head(repr, prb_type_short_name(type));
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
    add_head(repr, type->name);
    add_simple(repr, *code.data, at);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

/* ---- views ---- */

void prb_repr_memoryview(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    prb_text_addf(&repr->text, "<memory at 0x%" PRIx64 ">", object);
}

struct view {
    struct prb_repr *repr;
    char kind; /* of dict_keys, dict_values, dict_items: the letter after the "_" */
    size_t count;
};

static bool write_viewed(void *context, prb_addr key, prb_addr value)
{
    struct view *view = context;
    struct prb_repr *repr = view->repr;
    if (!prb_repr_item(repr, &view->count))
        return false;
    if (view->kind == 'i')
        prb_text_add(&repr->text, "(");
    if (view->kind != 'v')
        prb_repr_value(repr, key);
    if (view->kind == 'i')
        prb_text_add(&repr->text, ", ");
    if (view->kind != 'k')
        prb_repr_value(repr, value);
    if (view->kind == 'i')
        prb_text_add(&repr->text, ")");
    return !repr->text.full;
}

void prb_repr_dict_view(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct view view = {.repr = repr, .kind = strchr(type->name, '_')[1]};
    uint64_t dict;
    if (!prb_repr_enter(repr, object, "..."))
        return;
    add_head(repr, type->name);
    prb_text_add(&repr->text, "[");
    bool good = PRB_GET(repr->objects, object, dict_view, dict, &dict) &&
                prb_dict_walk(repr->objects, dict, write_viewed, &view, NULL);
    prb_repr_walked(repr, good, &view.count);
    prb_text_add(&repr->text, "])");
    prb_repr_leave(repr);
}

/* ---- locks ---- */

void prb_repr_lock(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    const struct prb_layout *layout = repr->objects->layout;
    bool large =
        PRB_HAS(layout, lock, locked) && type->basicsize > (int64_t)PRB_OFF(layout, lock, locked);
    uint64_t locked;
    if (!prb_objects_field(repr->objects, object, large ? PRB_F_lock_locked : PRB_F_lock_mutex,
                           &locked)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_text_add(&repr->text, locked & 1 ? "<locked " : "<unlocked ");
    prb_text_addf(&repr->text, "%s object at 0x%" PRIx64 ">", type->name, object);
}

void prb_repr_rlock(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_objects *objects = repr->objects;
    uint64_t owner, count, mutex;
    if (!PRB_GET(objects, object, rlock, owner, &owner) ||
        !PRB_GET(objects, object, rlock, count, &count)) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (PRB_GET(objects, object, rlock, mutex, &mutex))
        count = mutex & 1 ? count + 1 : 0;
    prb_text_addf(&repr->text,
                  "<%s %s object owner=%" PRIu64 " count=%" PRIu64 " at 0x%" PRIx64 ">",
                  count ? "locked" : "unlocked", type->name, count ? owner : 0, count, object);
}

/* "<threading.Event at 0x…: set>", as 3.11 and newer print it. */
void prb_repr_event(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_flag", NULL};
    prb_addr flag;
    struct prb_int set;
    if (!prb_pick_attributes(repr->objects, object, type, names, &flag) || !flag ||
        !prb_int_open(repr->objects, flag, &set, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_begin(repr, type);
    prb_text_addf(&repr->text, " at 0x%" PRIx64 ": %s>", object, set.sign ? "set" : "unset");
}

void prb_repr_semaphore(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_value", NULL};
    prb_addr value;
    if (!prb_pick_attributes(repr->objects, object, type, names, &value) || !value) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_begin(repr, type);
    prb_text_addf(&repr->text, " at 0x%" PRIx64 ": value=", object);
    prb_repr_value(repr, value);
    prb_text_add(&repr->text, ">");
}

/* "<Condition(<unlocked _thread.lock …>, 2)>": its lock, and how many threads wait. */
void prb_repr_condition(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { LOCK, WAITERS, COUNT };
    static const char *const names[] = {"_lock", "_waiters", NULL};
    prb_addr values[COUNT];
    uint64_t waiters;
    if (!prb_pick_attributes(repr->objects, object, type, names, values) || !values[LOCK] ||
        !values[WAITERS] || !PRB_GET(repr->objects, values[WAITERS], deque, length, &waiters)) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, "<Condition(");
    prb_repr_value(repr, values[LOCK]);
    prb_text_addf(&repr->text, ", %" PRIu64 ")>", waiters);
    prb_repr_leave(repr);
}

static bool is_true(struct prb_objects *objects, prb_addr object)
{
    struct prb_int number;
    return object && prb_int_open(objects, object, &number, NULL) && number.sign;
}

/* "<Thread(loader, started daemon 139…)>" (Thread.__repr__ of Lib/threading.py).  From 3.13 on C
 * code knows whether it is running: the word is left out. */
void prb_repr_thread(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { NAME, DAEMON, IDENT, STOPPED, COUNT };
    static const char *const names[] = {"_name", "_daemonic", "_ident", "_is_stopped", NULL};
    struct prb_objects *objects = repr->objects;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_addr values[COUNT];
    if (!prb_pick_attributes(objects, object, type, names, values) || !values[NAME] ||
        !prb_object_str(objects, values[NAME], PRB_REPR_CHARACTERS, &name, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    bool began = values[IDENT] && prb_object_kind(objects, values[IDENT], NULL) == PRB_OBJ_INT;
    prb_text_addf(&repr->text, "<%s(%s,", prb_type_short_name(type), name.data ? name.data : "");
    if (!began)
        prb_text_add(&repr->text, " initial");
    else if (values[STOPPED])
        prb_text_add(&repr->text, is_true(objects, values[STOPPED]) ? " stopped" : " started");
    if (is_true(objects, values[DAEMON]))
        prb_text_add(&repr->text, " daemon");
    if (began) {
        prb_text_add(&repr->text, " ");
        prb_repr_value(repr, values[IDENT]);
    }
    prb_text_add(&repr->text, ")>");
}

/* What processes of multiprocessing prove themselves with: repr() shows its bytes. */
void prb_repr_authkey(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)object;
    prb_text_addf(&repr->text, "<%s %s>", prb_type_short_name(type), PRB_MASK);
}

/* ---- UUID, Fraction, Path ---- */

void prb_repr_uuid(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { DIGITS = 5 }; /* of 30 bits in 128 */
    static const char *const names[] = {"int", NULL};
    prb_addr value = 0;
    struct prb_int number = {.count = DIGITS + 1};
    const uint32_t *digits = NULL;
    if (prb_pick_attributes(repr->objects, object, type, names, &value) && value &&
        prb_int_open(repr->objects, value, &number, NULL) && number.count <= DIGITS && number.sign)
        digits = prb_objects_get(repr->objects, number.digits, number.count * sizeof *digits);
    if (!digits && (!value || number.sign || number.count > DIGITS)) {
        prb_repr_short(repr, object, type);
        return;
    }
    unsigned __int128 bits = 0;
    for (uint64_t i = number.sign ? number.count : 0; i > 0; i--)
        bits = bits << 30 | digits[i - 1];
    uint64_t high = (uint64_t)(bits >> 64), low = (uint64_t)bits;
    add_head(repr, prb_type_short_name(type));
    prb_text_addf(&repr->text, "'%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64, high >> 32,
                  high >> 16 & 0xffff, high & 0xffff);
    prb_text_addf(&repr->text, "-%04" PRIx64 "-%012" PRIx64 "')", low >> 48, low & 0xffffffffffff);
}

void prb_repr_fraction(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_numerator", "_denominator", NULL};
    prb_addr values[2];
    if (!prb_pick_attributes(repr->objects, object, type, names, values) || !values[0] ||
        !values[1]) {
        prb_repr_short(repr, object, type);
        return;
    }
    add_head(repr, prb_type_short_name(type));
    prb_repr_value(repr, values[0]);
    prb_text_add(&repr->text, ", ");
    prb_repr_value(repr, values[1]);
    prb_text_add(&repr->text, ")");
}

struct path {
    struct prb_repr *repr;
    struct prb_buf *text;
};

/* One segment more; an absolute one begins anew. */
static bool add_segment(void *context, prb_addr key, prb_addr segment)
{
    (void)key;
    struct path *path = context;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_object_str(path->repr->objects, segment, PRB_REPR_CHARACTERS, &text, NULL))
        return false;
    if (!text.data)
        return true;
    if (*text.data == '/')
        path->text->len = 0;
    else if (path->text->len && path->text->data[path->text->len - 1] != '/')
        prb_buf_addc(path->text, '/');
    prb_buf_adds(path->text, text.data);
    return true;
}

/* Without "." and empty segments, as PurePosixPath leaves them out. */
static void add_path(struct prb_repr *repr, const char *path)
{
    size_t slashes = strspn(path, "/");
    bool none = true, quote = strchr(path, '\'') != NULL && !strchr(path, '"');
    prb_text_add(&repr->text, quote ? "\"" : "'");
    prb_text_add(&repr->text, slashes == 2 ? "//" : slashes ? "/" : "");
    for (const char *at = path + slashes; *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");
        if (len != 1 || *at != '.') {
            PRB_AUTO(prb_buf) struct prb_buf part = {0};
            for (size_t i = 0; i < len; i++) {
                if (at[i] == '\\' || (at[i] == '\'' && !quote))
                    prb_buf_addc(&part, '\\');
                prb_buf_addc(&part, at[i]);
            }
            prb_text_add(&repr->text, none ? "" : "/");
            prb_text_add(&repr->text, part.data ? part.data : "");
            none = false;
        }
        at += len;
    }
    prb_text_add(&repr->text, none && !slashes ? "." : "");
    prb_text_add(&repr->text, quote ? "\"" : "'");
}

/* Its segments: _raw_paths from 3.12 on, _parts before. */
void prb_repr_path(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { RAW, PARTS, COUNT };
    static const char *const names[] = {"_raw_paths", "_parts", NULL};
    prb_addr values[COUNT];
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct path path = {.repr = repr, .text = &text};
    bool good = prb_pick_attributes(repr->objects, object, type, names, values);
    prb_addr segments = values[RAW] ? values[RAW] : values[PARTS];
    if (!good || !segments ||
        !prb_sequence_each(repr->objects, segments, add_segment, &path, NULL) ||
        !prb_buf_ok(&text)) {
        prb_repr_short(repr, object, type);
    } else {
        add_head(repr, prb_type_short_name(type));
        add_path(repr, text.data && text.len ? text.data : "");
        prb_text_add(&repr->text, ")");
    }
}
