/* Element types by name: torch's in the order of c10::ScalarType, then what numpy has beside them.
 */
#include <string.h>

#include "tensor/tensor.h"

#define NAMED(name, size) {name, size, PRB_DTYPE_NAMED, {0}}
#define OF(name, size, kind) {name, size, PRB_DTYPE_##kind, {0}}

/* The order is torch's (torch/headeronly/core/ScalarType.h), which only ever grew at its end. */
static const struct prb_dtype torch_types[] = {
    OF("uint8", 1, UINT),
    OF("int8", 1, INT),
    OF("int16", 2, INT),
    OF("int32", 4, INT),
    OF("int64", 8, INT),
    OF("float16", 2, HALF),
    OF("float32", 4, FLOAT),
    OF("float64", 8, DOUBLE),
    OF("complex32", 4, COMPLEX_HALF),
    OF("complex64", 8, COMPLEX),
    OF("complex128", 16, COMPLEX_DOUBLE),
    OF("bool", 1, BOOL),
    NAMED("qint8", 1),
    NAMED("quint8", 1),
    NAMED("qint32", 4),
    OF("bfloat16", 2, BFLOAT),
    NAMED("quint4x2", 1),
    NAMED("quint2x4", 1),
    NAMED("bits1x8", 1),
    NAMED("bits2x4", 1),
    NAMED("bits4x2", 1),
    NAMED("bits8", 1),
    NAMED("bits16", 2),
    {"float8_e5m2", 1, PRB_DTYPE_TINY, {5, 15, true, true, false}},
    {"float8_e4m3fn", 1, PRB_DTYPE_TINY, {4, 7, true, false, false}},
    {"float8_e5m2fnuz", 1, PRB_DTYPE_TINY, {5, 16, true, false, true}},
    {"float8_e4m3fnuz", 1, PRB_DTYPE_TINY, {4, 8, true, false, true}},
    OF("uint16", 2, UINT),
    OF("uint32", 4, UINT),
    OF("uint64", 8, UINT),
    NAMED("uint1", 1),
    NAMED("uint2", 1),
    NAMED("uint3", 1),
    NAMED("uint4", 1),
    NAMED("uint5", 1),
    NAMED("uint6", 1),
    NAMED("uint7", 1),
    NAMED("int1", 1),
    NAMED("int2", 1),
    NAMED("int3", 1),
    NAMED("int4", 1),
    NAMED("int5", 1),
    NAMED("int6", 1),
    NAMED("int7", 1),
    {"float8_e8m0fnu", 1, PRB_DTYPE_TINY, {8, 127, false, false, false}},
    NAMED("float4_e2m1fn_x2", 1),
};

static const struct prb_dtype other_types[] = {
    OF("float128", 16, LONG_DOUBLE),
    {"float8_e4m3", 1, PRB_DTYPE_TINY, {4, 7, true, true, false}},
    {"float8_e4m3b11fnuz", 1, PRB_DTYPE_TINY, {4, 11, true, false, true}},
};

/* numpy's codes in names of the other byte order: ">f4". */
static const struct {
    char code;
    enum prb_dtype_kind kinds[3]; /* of 2, 4, 8 bytes; NAMED: there is none */
} swapped_types[] = {
    {'i', {PRB_DTYPE_INT, PRB_DTYPE_INT, PRB_DTYPE_INT}},
    {'u', {PRB_DTYPE_UINT, PRB_DTYPE_UINT, PRB_DTYPE_UINT}},
    {'f', {PRB_DTYPE_HALF, PRB_DTYPE_FLOAT, PRB_DTYPE_DOUBLE}},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

const struct prb_dtype *prb_torch_dtype(unsigned code)
{
    return code < COUNT(torch_types) ? &torch_types[code] : NULL;
}

const struct prb_dtype *prb_dtype_find(const char *name)
{
    for (size_t i = 0; i < COUNT(torch_types); i++)
        if (!strcmp(torch_types[i].name, name))
            return &torch_types[i];
    for (size_t i = 0; i < COUNT(other_types); i++)
        if (!strcmp(other_types[i].name, name))
            return &other_types[i];
    return NULL;
}

static const struct prb_dtype *of_kind(enum prb_dtype_kind kind, unsigned size)
{
    for (size_t i = 0; i < COUNT(torch_types); i++)
        if (torch_types[i].kind == kind && torch_types[i].size == size)
            return &torch_types[i];
    return NULL;
}

static const struct prb_dtype *swapped(const char *name)
{
    unsigned size = name[1] && name[2] && !name[3] ? (unsigned)(name[2] - '0') : 0;
    unsigned column = size == 2 ? 0 : size == 4 ? 1 : 2;
    if (name[0] != '>' || (size != 2 && size != 4 && size != 8))
        return NULL;
    for (size_t i = 0; i < COUNT(swapped_types); i++)
        if (swapped_types[i].code == name[1])
            return of_kind(swapped_types[i].kinds[column], size);
    return NULL;
}

bool prb_element_type_find(const char *name, struct prb_element_type *out)
{
    struct prb_element_type found = {prb_dtype_find(name), false};
    if (!found.dtype) {
        found.dtype = swapped(name);
        found.swapped = true;
    }
    if (!found.dtype || found.dtype->kind == PRB_DTYPE_NAMED)
        return false;
    *out = found;
    return true;
}
