/*
 * Shared by the files of this folder, lib/tensor and lib/repr: the reader with its caches, types,
 * and the bounded text that values are written to. Relies on mem/view.h for pages and on py/layout
 * for places; nothing here knows a version.
 */
#ifndef PRB_PY_OBJECT_READER_H
#define PRB_PY_OBJECT_READER_H

#include "base/hash_map.h"
#include "mem/view.h"
#include "py/object/object.h"

/* ---- limits: what a sane target stays below ---- */

#define PRB_TYPE_NAME_MAX 512       /* bytes of a class's name that are shown */
#define PRB_BASICSIZE_MAX (1 << 24) /* bytes of an instance */
#define PRB_MRO_MAX 256             /* classes that a class inherits from */
#define PRB_BASES_MAX 64            /* of those, one above the other */
#define PRB_CLASS_NAMES_MAX 4096    /* names of a class that are searched */
#define PRB_MEMBERS_MAX 4096        /* __slots__ of one class */
#define PRB_INT_DIGITS_MAX                                                                         \
    1024 /* 30-bit digits (9,247 decimal ones) that are converted; above: hexadecimal */
#define PRB_REPR_STEPS 200000           /* slots and digits read for one text */
#define PRB_REPR_DEPTH_MAX 200          /* whatever the caller asks */
#define PRB_CACHED_BYTES_MAX (8u << 20) /* then they are forgotten: bounds the tool's memory */

/* ---- types ---- */

/* Include/object.h; bits below 10 count for the versions whose traits say so. */
enum {
    PRB_TPFLAG_INLINE_VALUES = 1 << 2, /* trait instance INLINE_VALUES */
    PRB_TPFLAG_MANAGED_DICT = 1 << 4,  /* trait instance VALUES_AND_DICT and later */
    PRB_TPFLAG_HEAP = 1 << 9,
};
#define PRB_TPFLAG_TYPE_SUBCLASS (1ull << 31)

/* What a class written in Python is beside its kind. */
enum prb_class_form {
    PRB_CLASS_PLAIN,
    PRB_CLASS_DATACLASS,
    PRB_CLASS_NAMEDTUPLE,
    PRB_CLASS_ENUM,
    PRB_CLASS_TORCH_MODULE,
    PRB_CLASS_TORCH_OPTIMIZER,
    PRB_CLASS_PATH,
    PRB_CLASS_UUID,
    PRB_CLASS_FRACTION,
    PRB_CLASS_DECIMAL,
    PRB_CLASS_EVENT,
    PRB_CLASS_SEMAPHORE,
    PRB_CLASS_CONDITION,
    PRB_CLASS_THREAD,
    PRB_CLASS_AUTHKEY,
    PRB_CLASS_NAMESPACE, /* argparse.Namespace */
};

struct prb_member {
    const char *name; /* UTF-8, as __slots__ has it (private ones mangled) */
    int64_t offset;   /* bytes from the object */
};

struct prb_object_type {
    prb_addr addr, base, dict;
    const char *name;     /* tp_name: "list", "collections.deque", "Model" */
    const char *module;   /* NULL until prb_type_module() */
    const char *qualname; /* NULL until prb_type_qualname() */
    uint64_t flags;
    int64_t basicsize, itemsize, dictoffset;
    enum prb_object_kind kind;
    const char *builtin; /* tp_name of the C type that decides the kind */
    bool exact;          /* it is that C type itself */
    bool python;         /* made by a class statement */
    bool form_known, members_known;
    enum prb_class_form form;
    prb_addr fields; /* DATACLASS: __dataclass_fields__ (dict); NAMEDTUPLE: _fields (tuple) */
    struct prb_member *members; /* of the class itself, not of its bases */
    size_t member_count;
    prb_addr *mro; /* NULL until prb_type_mro() */
    size_t mro_count;
};

/* Names that are searched in every class's dict: found once, then recognized by address, because
 * they are interned. */
enum prb_known_name { PRB_NAME_MODULE, PRB_NAME_DATACLASS_FIELDS, PRB_NAME_FIELDS, PRB_NAME_COUNT };

struct prb_objects {
    struct prb_py *py; /* borrowed */
    const struct prb_layout *layout;
    struct prb_view *view;
    bool looking_up;           /* one item is sought: values are not announced to the view */
    size_t steps;              /* what the walk under way may still read */
    struct prb_arena arena;    /* types and their strings */
    struct prb_hash_map types; /* struct prb_object_type by address */
    unsigned type_depth;       /* how many bases deep the reading of types is */
    prb_addr names[PRB_NAME_COUNT];
    bool secret_tried, secret_known;
    uint64_t secret[2];            /* the key of str hashes */
    struct prb_cached_text *texts; /* of lib/repr: those that stand in many frames */
    size_t text_count, text_bytes;
};

/* The type at addr, CORRUPT when it is none.  Borrowed until prb_objects_clear. */
struct prb_object_type *prb_type_at(struct prb_objects *objects, prb_addr addr,
                                    struct prb_error *err);
/* The type of an object. */
struct prb_object_type *prb_type_of(struct prb_objects *objects, prb_addr object,
                                    struct prb_error *err);
/* Read many types, for prb_type_at, and the orders of their bases: hundreds in a few calls. */
void prb_types_read(struct prb_objects *objects, const prb_addr *types, size_t count);
/* The classes whose attributes a class has, itself first, at most PRB_MRO_MAX; borrowed as the type is. */
const prb_addr *prb_type_mro(struct prb_objects *objects, struct prb_object_type *type,
                             size_t *count_out);
/* Whether a class that is written in Python is, or derives from, such a one of this name. */
bool prb_type_derives(struct prb_objects *objects, struct prb_object_type *type, const char *name,
                      const char *module);
/* "module.qualname" in parts; never NULL ("?" when unreadable). */
const char *prb_type_module(struct prb_objects *objects, struct prb_object_type *type);
const char *prb_type_qualname(struct prb_objects *objects, struct prb_object_type *type);
/* Append "module.qualname", without "builtins.". */
void prb_type_full_name(struct prb_objects *objects, struct prb_object_type *type,
                        struct prb_buf *out);
/* The class's __name__. */
const char *prb_type_short_name(const struct prb_object_type *type);
enum prb_class_form prb_type_form(struct prb_objects *objects, struct prb_object_type *type);
/* Members that hold an object (__slots__, and what C types publish), of the class itself. */
const struct prb_member *prb_type_members(struct prb_objects *objects, struct prb_object_type *type,
                                          size_t *count_out);
/* kind_name → kind; PRB_OBJ_OTHER when the name means nothing special. */
enum prb_object_kind prb_kind_by_name(const char *c_type_name);

/* ---- reading ---- */

/* len bytes at addr through the page cache, valid until the next read; NULL when they cannot be
 * read. */
const void *prb_objects_get(struct prb_objects *objects, prb_addr addr, size_t len);
/* A field by its width, zero-extended; false when absent or unreadable. */
bool prb_objects_field(struct prb_objects *objects, prb_addr addr, enum prb_field field,
                       uint64_t *out);
#define PRB_GET(objects, addr, struct_, field_, out)                                               \
    prb_objects_field(objects, addr, PRB_F_##struct_##_##field_, out)
/* count pointers at addr, to out. */
bool prb_objects_words(struct prb_objects *objects, prb_addr addr, uint64_t *out, size_t count);
/* A NUL-terminated string of C, cut at max bytes, in the arena; NULL when unreadable. */
const char *prb_objects_cstring(struct prb_objects *objects, prb_addr addr, size_t max);
/* The text of a str, in the arena; NULL when it is none. */
const char *prb_objects_strdup(struct prb_objects *objects, prb_addr str, size_t max);
/* Whether a str object is text (ASCII). */
bool prb_str_equals(struct prb_objects *objects, prb_addr str, const char *text);
/* Say that the heads of these objects will be read next, so that they come in one call. */
void prb_objects_prefetch(struct prb_objects *objects, const uint64_t *addrs, size_t count);
/* So many things at most are announced at once, a few pages each, once there is room for them. */
#define PRB_OBJECTS_BATCH 256
void prb_objects_make_room(struct prb_objects *objects);
/* The hash of an ASCII str under the target's key, each way CPython makes it, the likeliest first.  0: it
 * is not known. */
#define PRB_STR_HASHES 2
size_t prb_str_hashes(struct prb_objects *objects, const char *text, uint64_t out[PRB_STR_HASHES]);
/* Take n from the steps left; false when there are none: the walk ends. */
bool prb_objects_spend(struct prb_objects *objects, size_t n);

/* ---- shapes of the containers ---- */

struct prb_str {
    uint64_t length; /* code points */
    unsigned width;  /* bytes of one: 1, 2, 4 */
    prb_addr data;
};
bool prb_str_open(struct prb_objects *objects, prb_addr object, struct prb_str *out,
                  struct prb_error *err);

struct prb_int {
    int sign;       /* -1, 0, 1 */
    uint64_t count; /* of 30-bit digits */
    prb_addr digits;
};
bool prb_int_open(struct prb_objects *objects, prb_addr object, struct prb_int *out,
                  struct prb_error *err);

/* Bytes of a bytes or bytearray object. */
bool prb_bytes_open(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind,
                    prb_addr *data_out, uint64_t *length_out, struct prb_error *err);

/* Items of a tuple, list, set or deque; the kind is the caller's word. */
bool prb_sequence_walk(struct prb_objects *objects, prb_addr sequence, enum prb_object_kind kind,
                       prb_item_fn *each, void *context, struct prb_error *err);
/* The same as prb_dict_each and prb_attributes_each, within the steps left, for a caller that knows
 * the kind. */
bool prb_dict_walk(struct prb_objects *objects, prb_addr dict, prb_item_fn *each, void *context,
                   struct prb_error *err);
bool prb_attributes_walk(struct prb_objects *objects, prb_addr object, struct prb_object_type *type,
                         prb_attribute_fn *each, void *context, struct prb_error *err);
/* Values of an instance stored beside shared keys (the class's, or a split dict's). */
bool prb_shared_values_each(struct prb_objects *objects, prb_addr keys, prb_addr values,
                            prb_item_fn *each, void *context, struct prb_error *err);
/* Where an instance has its attributes: a dict, or values beside its class's keys; 0: it has none.
 */
struct prb_attribute_place {
    prb_addr dict, values, keys;
};
/* False when that cannot be read. */
bool prb_attribute_place_find(struct prb_objects *objects, prb_addr object,
                              const struct prb_object_type *type, struct prb_attribute_place *out);

/* ---- text ---- */

/* A text of at most limit characters; what is cut ends in "…". */
struct prb_text {
    struct prb_buf *out;
    size_t limit, chars;
    size_t cut_at; /* length of out when one more character would reach the limit */
    bool full;     /* ends in "…" already */
    bool cut;      /* something inside was left out: will end in "…" */
};
void prb_text_init(struct prb_text *text, struct prb_buf *out, size_t limit);
/* Characters that fit, and one more: what is read of a text that may be cut. */
size_t prb_text_room(const struct prb_text *text);
void prb_text_char(struct prb_text *text, unsigned code_point);
/* UTF-8. */
void prb_text_add(struct prb_text *text, const char *utf8);
void prb_text_ascii(struct prb_text *text, const char *ascii, size_t len);
void prb_text_addf(struct prb_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void prb_text_finish(struct prb_text *text);

/* Python's repr of scalars.  False when the object cannot be read. */
bool prb_int_write(struct prb_objects *objects, prb_addr object, struct prb_text *text,
                   struct prb_error *err);
bool prb_str_write(struct prb_objects *objects, prb_addr object, struct prb_text *text,
                   struct prb_error *err);
bool prb_bytes_write(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind,
                     struct prb_text *text, struct prb_error *err);
/* The same of memory that is not an object's: characters of str->width bytes, or bytes. */
bool prb_characters_write(struct prb_objects *objects, const struct prb_str *str,
                          struct prb_text *text);
bool prb_raw_bytes_write(struct prb_objects *objects, prb_addr data, uint64_t length,
                         struct prb_text *text);
/* The shortest text that reads back as value, as float.__repr__ gives it; without ".0" for the
 * parts of a complex. */
#define PRB_FLOAT_TEXT 48
void prb_float_format(double value, bool point_zero, char out[PRB_FLOAT_TEXT]);
/* 30-bit digits (least significant first, used up) to decimal; NULL when out of memory.  Free it.
 */
char *prb_int_decimal(uint32_t *digits, size_t count);

#endif
