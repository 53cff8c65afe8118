/* See pickle.h.  A pickle is a program of a machine with a stack, and a memo of values. */
#include "table/shared/pickle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define VALUES_MAX ((size_t)4 << 20) /* made in all */
#define DEPTH_MAX 32                 /* of values in values */

/* Only those that Python writes for plain values. */
enum opcode {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    NONE = 'N',
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    BININT1 = 'K',
    BININT2 = 'M',
    BININT = 'J',
    LONG1 = 0x8a,
    BINFLOAT = 'G',
    BINUNICODE = 'X',
    EMPTY_LIST = ']',
    APPEND = 'a',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEM = 's',
    SETITEMS = 'u',
    EMPTY_TUPLE = ')',
    TUPLE = 't',
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    BINGET = 'h',
    LONG_BINGET = 'j',
};

struct value {
    json_t *json; /* owned; NULL: a mark */
    unsigned depth;
};

struct machine {
    const unsigned char *at, *end;
    struct value *stack;
    size_t count, cap;
    json_t **memo; /* texts, each owned; NULL: of another value, which is not taken twice */
    size_t memo_count, memo_cap;
    size_t made;
    bool stopped;
};

static void machine_deinit(struct machine *machine)
{
    for (size_t i = 0; i < machine->count; i++)
        json_decref(machine->stack[i].json);
    for (size_t i = 0; i < machine->memo_count; i++)
        json_decref(machine->memo[i]);
    free(machine->stack);
    free(machine->memo);
}
PRB_DEFINE_AUTO(machine, struct machine, machine_deinit)

/* ---- its text ---- */

/* A little-endian number of so many bytes. */
static bool take(struct machine *machine, size_t bytes, uint64_t *out)
{
    *out = 0;
    if ((size_t)(machine->end - machine->at) < bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        *out |= (uint64_t)machine->at[i] << 8 * i;
    machine->at += bytes;
    return true;
}

/* ---- its stack ---- */

/* json is taken over; NULL: it could not be made. */
static bool push(struct machine *machine, json_t *json, unsigned depth)
{
    if (!json || ++machine->made > VALUES_MAX || depth > DEPTH_MAX ||
        !PRB_GROW(machine->stack, machine->count, machine->cap)) {
        json_decref(json);
        return false;
    }
    machine->stack[machine->count++] = (struct value){json, depth};
    return true;
}

static bool push_mark(struct machine *machine)
{
    if (!PRB_GROW(machine->stack, machine->count, machine->cap))
        return false;
    machine->stack[machine->count++] = (struct value){0};
    return true;
}

static bool find_mark(const struct machine *machine, size_t *out)
{
    for (*out = machine->count; *out; --*out)
        if (!machine->stack[*out - 1].json)
            return true;
    return false;
}

/* Below base stands one of the type, to put values in. */
static struct value *container(const struct machine *machine, size_t base, json_type type)
{
    struct value *value = base ? &machine->stack[base - 1] : NULL;
    return value && value->json && json_typeof(value->json) == type ? value : NULL;
}

static unsigned deepest(const struct machine *machine, size_t from)
{
    unsigned depth = 0;
    for (size_t i = from; i < machine->count; i++)
        depth = machine->stack[i].depth > depth ? machine->stack[i].depth : depth;
    return depth + 1;
}

/* The values from there on go to the end of a list. */
static bool append(struct machine *machine, size_t from, struct value *list)
{
    unsigned depth = deepest(machine, from);
    list->depth = depth > list->depth ? depth : list->depth;
    bool good = list->depth <= DEPTH_MAX;
    for (size_t i = from; i < machine->count; i++) {
        json_t *json = machine->stack[i].json;
        machine->stack[i].json = NULL;
        good = json && good && json_array_append(list->json, json) == 0;
        json_decref(json);
    }
    machine->count = from;
    return good;
}

static bool set_items(struct machine *machine, size_t from, struct value *dict)
{
    unsigned depth = deepest(machine, from);
    dict->depth = depth > dict->depth ? depth : dict->depth;
    bool good = dict->depth <= DEPTH_MAX && (machine->count - from) % 2 == 0;
    for (size_t i = from; good && i < machine->count; i += 2) {
        const char *key = json_string_value(machine->stack[i].json);
        good = key && machine->stack[i + 1].json &&
               json_object_set(dict->json, key, machine->stack[i + 1].json) == 0;
    }
    while (machine->count > from)
        json_decref(machine->stack[--machine->count].json);
    return good;
}

/* The values from there on; of the stack what is below base stays. */
static bool append_to(struct machine *machine, size_t from, size_t base)
{
    struct value *list = container(machine, base, JSON_ARRAY);
    bool good = list && append(machine, from, list);
    machine->count = good ? base : machine->count;
    return good;
}

static bool set_in(struct machine *machine, size_t from, size_t base)
{
    struct value *dict = container(machine, base, JSON_OBJECT);
    bool good = dict && set_items(machine, from, dict);
    machine->count = good ? base : machine->count;
    return good;
}

static bool make_tuple(struct machine *machine, size_t from, size_t base)
{
    struct value tuple = {json_array(), 1};
    if (!tuple.json || !append(machine, from, &tuple)) {
        json_decref(tuple.json);
        return false;
    }
    machine->count = base;
    return push(machine, tuple.json, tuple.depth);
}

/* ---- its memo ---- */

static bool put(struct machine *machine, size_t index)
{
    const json_t *top = machine->count ? machine->stack[machine->count - 1].json : NULL;
    if (!top || index != machine->memo_count ||
        !PRB_GROW(machine->memo, machine->memo_count, machine->memo_cap))
        return false;
    machine->memo[machine->memo_count++] =
        json_is_string(top) ? json_incref(machine->stack[machine->count - 1].json) : NULL;
    return true;
}

static bool get(struct machine *machine, size_t index)
{
    return index < machine->memo_count && machine->memo[index] &&
           push(machine, json_incref(machine->memo[index]), 0);
}

/* ---- scalars ---- */

static bool push_text(struct machine *machine)
{
    uint64_t len;
    if (!take(machine, 4, &len) || len > (size_t)(machine->end - machine->at))
        return false;
    const char *text = (const char *)machine->at;
    machine->at += len;
    json_t *json = json_stringn(text, len);
    if (json)
        return push(machine, json, 0);
    PRB_AUTO(prb_buf) struct prb_buf plain = {0}; /* it is not UTF-8 */
    prb_utf8_add(&plain, text, len);
    return prb_buf_ok(&plain) && push(machine, json_stringn(plain.data, plain.len), 0);
}

/* Its highest bit is its sign. */
static bool push_integer(struct machine *machine, size_t bytes, bool has_sign)
{
    uint64_t number;
    if (bytes > sizeof number || !take(machine, bytes, &number))
        return false;
    if (has_sign && bytes && bytes < sizeof number && number >> (8 * bytes - 1))
        number |= UINT64_MAX << 8 * bytes;
    return push(machine, json_integer((json_int_t)number), 0);
}

static bool push_real(struct machine *machine)
{
    uint64_t bits;
    double number;
    if (!take(machine, sizeof bits, &bits))
        return false;
    bits = __builtin_bswap64(bits);
    memcpy(&number, &bits, sizeof number);
    return push(machine, isfinite(number) ? json_real(number) : json_null(), 0);
}

/* ---- its steps ---- */

static bool step(struct machine *machine)
{
    uint64_t number;
    size_t mark = 0, count = machine->count;
    enum opcode opcode = machine->at < machine->end ? *machine->at++ : 0;
    switch (opcode) {
    case PROTO:
        return take(machine, 1, &number);
    case STOP:
        machine->stopped = true;
        return count == 1 && machine->stack[0].json;
    case MARK:
        return push_mark(machine);
    case NONE:
        return push(machine, json_null(), 0);
    case NEWTRUE:
        return push(machine, json_true(), 0);
    case NEWFALSE:
        return push(machine, json_false(), 0);
    case BININT1:
        return push_integer(machine, 1, false);
    case BININT2:
        return push_integer(machine, 2, false);
    case BININT:
        return push_integer(machine, 4, true);
    case LONG1:
        return take(machine, 1, &number) && push_integer(machine, number, true);
    case BINFLOAT:
        return push_real(machine);
    case BINUNICODE:
        return push_text(machine);
    case EMPTY_LIST:
    case EMPTY_TUPLE:
        return push(machine, json_array(), 1);
    case EMPTY_DICT:
        return push(machine, json_object(), 1);
    case APPEND:
        return count >= 2 && append_to(machine, count - 1, count - 1);
    case SETITEM:
        return count >= 3 && set_in(machine, count - 2, count - 2);
    case APPENDS:
        return find_mark(machine, &mark) && append_to(machine, mark, mark - 1);
    case SETITEMS:
        return find_mark(machine, &mark) && set_in(machine, mark, mark - 1);
    case TUPLE:
        return find_mark(machine, &mark) && make_tuple(machine, mark, mark - 1);
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
        mark = opcode - TUPLE1 + 1;
        return count >= mark && make_tuple(machine, count - mark, count - mark);
    case BINPUT:
        return take(machine, 1, &number) && put(machine, number);
    case LONG_BINPUT:
        return take(machine, 4, &number) && put(machine, number);
    case BINGET:
        return take(machine, 1, &number) && get(machine, number);
    case LONG_BINGET:
        return take(machine, 4, &number) && get(machine, number);
    }
    return false;
}

bool prb_is_pickle(const char *data, size_t len)
{
    return len > 2 && (unsigned char)data[0] == PROTO;
}

json_t *prb_pickle_parse(const char *data, size_t len, struct prb_error *err)
{
    const unsigned char *begin = (const unsigned char *)data;
    PRB_AUTO(machine) struct machine machine = {.at = begin, .end = begin + len};
    while (!machine.stopped) {
        size_t at = (size_t)(machine.at - begin);
        if (!step(&machine))
            return PRB_NULL(
                prb_fail(err, PRB_CORRUPT, "no pickle of plain values (byte %zu of %zu)", at, len));
    }
    return json_incref(machine.stack[0].json);
}
