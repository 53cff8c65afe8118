/*
 * Prints the layout of one CPython: compiled against that interpreter's own headers (mk-layouts.sh
 * does it), it writes 3.N.def to standard output.  Offsets come from offsetof; what CPython defines
 * in its .c files is stated in objects.h, with the file it stands in, and tests/layout checks those
 * statements against debug information.
 *
 * To add a field: a line in ../fields.def, a line AT(struct, field, type, member) for the versions
 * that have it in interpreter.h or objects.h, then `make layouts`.  A field that is not set is
 * absent in that version.
 */
#define Py_BUILD_CORE 1
#include "mk.h"

#include "asyncio.h"
#include "interpreter.h"
#include "objects.h"
#include "traits.h"
#if PY_MINOR_VERSION >= 13
#include "debug_offsets.h"
#endif

static struct {
    bool set;
    long offset;
} fields[FIELD_COUNT];
static struct {
    bool set;
    long value;
} numbers[NUMBER_COUNT];
static const char *traits[TRAIT_COUNT];
static int failures;

static const struct {
    const char *struct_, *field;
    unsigned width;
} field_names[] = {
#define FIELD(struct_, field, width) {#struct_, #field, width},
#include "../fields.def"
#undef FIELD
};

void mk_set(enum field field, long offset, size_t width)
{
    unsigned wanted = field_names[field].width;
    if (fields[field].set || (wanted && width && wanted != width)) {
        fprintf(stderr, "%s.%s: %s (%zu bytes, fields.def has %u)\n", field_names[field].struct_,
                field_names[field].field, fields[field].set ? "set twice" : "another width", width,
                wanted);
        failures++;
    }
    fields[field].set = true;
    fields[field].offset = offset;
}

void mk_number(enum number number, long value)
{
    numbers[number].set = true;
    numbers[number].value = value;
}

void mk_trait(enum trait trait, const char *value) { traits[trait] = value; }

bool mk_has(enum field field) { return fields[field].set; }

static void print_fields(void)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (fields[i].set)
            printf("OFFSET(%s, %s, %ld)\n", field_names[i].struct_, field_names[i].field,
                   fields[i].offset);
        else
            printf("ABSENT(%s, %s)\n", field_names[i].struct_, field_names[i].field);
}

static void print_traits(void)
{
    static const char *const trait_names[] = {
#define TRAIT(name, values) #name,
#define NUMBER(name)
#include "../traits.def"
#undef TRAIT
#undef NUMBER
    };
    static const char *const number_names[] = {
#define TRAIT(name, values)
#define NUMBER(name) #name,
#include "../traits.def"
#undef TRAIT
#undef NUMBER
    };
    for (size_t i = 0; i < TRAIT_COUNT; i++) {
        if (!traits[i]) {
            fprintf(stderr, "trait %s has no value\n", trait_names[i]);
            failures++;
            continue;
        }
        printf("TRAIT(%s, %s)\n", trait_names[i], traits[i]);
    }
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i].set)
            printf("NUMBER(%s, %ld)\n", number_names[i], numbers[i].value);
        else
            printf("NONE(%s)\n", number_names[i]);
}

int main(int argc, char **argv)
{
    interpreter_fields();
    object_fields();
    asyncio_fields();
    traits_and_numbers();
    printf("/* CPython %s%s, x86-64: printed by mk/mk.c from %s.  Do not edit: make layouts. */\n",
           PY_VERSION, FREE_THREADED ? " free-threaded" : "",
           argc > 1 && *argv[1] ? argv[1] : "that interpreter's headers");
    printf("LAYOUT_BEGIN(3_%d%s, \"3.%d%s\", 3, %d, %d, %s)\n", PY_MINOR_VERSION,
           FREE_THREADED ? "t" : "", PY_MINOR_VERSION, FREE_THREADED ? "t" : "", PY_MINOR_VERSION,
           PY_MICRO_VERSION, FREE_THREADED ? "true" : "false");
    print_fields();
    print_traits();
#if PY_MINOR_VERSION >= 13
    debug_offsets();
#else
    printf("DEBUG_TABLE(0)\n");
#endif
    printf("LAYOUT_END\n");
    return failures ? 1 : 0;
}
