/*
 * Where objects keep their members, by version.
 */
static void base_fields(void)
{
#if FREE_THREADED
    AT(object, refcnt, PyObject, ob_ref_local);
#else
    AT(object, refcnt, PyObject, ob_refcnt);
#endif
    AT(object, type, PyObject, ob_type);
    PLACE(object, size, sizeof(PyObject));
    AT(varobject, size, PyVarObject, ob_size);
    AT(type, name, PyTypeObject, tp_name);
    AT(type, basicsize, PyTypeObject, tp_basicsize);
    AT(type, itemsize, PyTypeObject, tp_itemsize);
    AT(type, call, PyTypeObject, tp_call);
    AT(type, flags, PyTypeObject, tp_flags);
    AT(type, members, PyTypeObject, tp_members);
    AT(type, base, PyTypeObject, tp_base);
    AT(type, dict, PyTypeObject, tp_dict);
    AT(type, dictoffset, PyTypeObject, tp_dictoffset);
    AT(type, mro, PyTypeObject, tp_mro);
    AT(type, heap_name, PyHeapTypeObject, ht_name);
    AT(type, heap_qualname, PyHeapTypeObject, ht_qualname);
    AT(type, heap_slots, PyHeapTypeObject, ht_slots);
    AT(type, heap_cached_keys, PyHeapTypeObject, ht_cached_keys);
#if PY_MINOR_VERSION >= 9
    AT(type, heap_module, PyHeapTypeObject, ht_module);
#endif
    PLACE(type, size, sizeof(PyTypeObject));
    PLACE(type, heap_size, sizeof(PyHeapTypeObject));
}

static void scalar_fields(void)
{
#if PY_MINOR_VERSION <= 11
    AT(long, tag, struct _longobject, ob_base.ob_size);
    AT(long, digits, struct _longobject, ob_digit);
#else
    AT(long, tag, struct _longobject, long_value.lv_tag);
    AT(long, digits, struct _longobject, long_value.ob_digit);
#endif
    AT(float, value, PyFloatObject, ob_fval);
    AT(complex, real, PyComplexObject, cval.real);
    AT(complex, imag, PyComplexObject, cval.imag);
    AT(bytes, size, PyBytesObject, ob_base.ob_size);
    AT(bytes, data, PyBytesObject, ob_sval);
    AT(bytearray, size, PyByteArrayObject, ob_base.ob_size);
    AT(bytearray, start, PyByteArrayObject, ob_start);
    AT(str, length, PyASCIIObject, length);
    AT(str, state, PyASCIIObject, state);
    PLACE(str, ascii_data, sizeof(PyASCIIObject));
    PLACE(str, compact_data, sizeof(PyCompactUnicodeObject));
    AT(str, data, PyUnicodeObject, data);
#if PY_MINOR_VERSION <= 11
    AT(str, wstr, PyASCIIObject, wstr);
    AT(str, wstr_length, PyCompactUnicodeObject, wstr_length);
#endif
}

static void container_fields(void)
{
    AT(tuple, size, PyTupleObject, ob_base.ob_size);
    AT(tuple, items, PyTupleObject, ob_item);
    AT(list, size, PyListObject, ob_base.ob_size);
    AT(list, items, PyListObject, ob_item);
    AT(list, allocated, PyListObject, allocated);
    AT(dict, used, PyDictObject, ma_used);
    AT(dict, keys, PyDictObject, ma_keys);
    AT(dict, values, PyDictObject, ma_values);
    AT(set, fill, PySetObject, fill);
    AT(set, used, PySetObject, used);
    AT(set, mask, PySetObject, mask);
    AT(set, table, PySetObject, table);
    AT(slice, start, PySliceObject, start);
    AT(slice, stop, PySliceObject, stop);
    AT(slice, step, PySliceObject, step);
#if PY_MINOR_VERSION >= 11
    AT(dict_keys, log2_size, struct _dictkeysobject, dk_log2_size);
    AT(dict_keys, log2_index_bytes, struct _dictkeysobject, dk_log2_index_bytes);
    AT(dict_keys, kind, struct _dictkeysobject, dk_kind);
    AT(dict_keys, nentries, struct _dictkeysobject, dk_nentries);
    PLACE(dict_keys, indices, offsetof(struct _dictkeysobject, dk_indices));
    AT(dict_values, values, struct _dictvalues, values);
#endif
#if PY_MINOR_VERSION == 11
    PLACE(managed_dict, values,
          -4 * (long)sizeof(PyObject *)); /* _PyObject_ValuesPointer, pycore_object.h */
#endif
#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION >= 13
    PLACE(managed_dict, dict, MANAGED_DICT_OFFSET);
#elif PY_MINOR_VERSION == 12
    PLACE(managed_dict, dict,
          -3 * (long)sizeof(PyObject *)); /* _PyObject_DictOrValuesPointer, pycore_object.h */
#endif
#if PY_MINOR_VERSION >= 13
    AT(dict_values, capacity, struct _dictvalues, capacity);
    AT(dict_values, size, struct _dictvalues, size);
    AT(dict_values, valid, struct _dictvalues, valid);
#endif
}

static void callable_fields(void)
{
    AT(cell, ref, PyCellObject, ob_ref);
    AT(function, code, PyFunctionObject, func_code);
    AT(function, name, PyFunctionObject, func_name);
    AT(function, qualname, PyFunctionObject, func_qualname);
    AT(function, globals, PyFunctionObject, func_globals);
    AT(function, defaults, PyFunctionObject, func_defaults);
    AT(function, kwdefaults, PyFunctionObject, func_kwdefaults);
    AT(function, closure, PyFunctionObject, func_closure);
    AT(function, module, PyFunctionObject, func_module);
    AT(function, dict, PyFunctionObject, func_dict);
    AT(method, func, PyMethodObject, im_func);
    AT(method, self, PyMethodObject, im_self);
    AT(builtin, def, PyCFunctionObject, m_ml);
    AT(builtin, self, PyCFunctionObject, m_self);
    AT(builtin, module, PyCFunctionObject, m_module);
    AT(method_def, name, PyMethodDef, ml_name);
    AT(descr, type, PyDescrObject, d_type);
    AT(descr, name, PyDescrObject, d_name);
    AT(member_descr, member, PyMemberDescrObject, d_member);
    AT(member_def, name, PyMemberDef, name);
    AT(member_def, type, PyMemberDef, type);
    AT(member_def, offset, PyMemberDef, offset);
    PLACE(member_def, size, sizeof(PyMemberDef));
    AT(weakref, object, PyWeakReference, wr_object);
}

static void generator_fields(void)
{
#if PY_MINOR_VERSION <= 10
    AT(gen, frame, PyGenObject, gi_frame);
#else
    AT(gen, frame, PyGenObject, gi_iframe);
    AT(gen, state, PyGenObject, gi_frame_state);
#endif
#if PY_MINOR_VERSION <= 9
    AT(gen, state, PyGenObject, gi_running);
#endif
#if PY_MINOR_VERSION <= 11
    AT(gen, code, PyGenObject, gi_code);
#endif
#if PY_MINOR_VERSION >= 5
    AT(gen, name, PyGenObject, gi_name);
    AT(gen, qualname, PyGenObject, gi_qualname);
#endif
}

static void exception_fields(void)
{
    AT(exception, args, PyBaseExceptionObject, args);
    AT(exception, dict, PyBaseExceptionObject, dict);
    AT(exception, traceback, PyBaseExceptionObject, traceback);
    AT(exception, context, PyBaseExceptionObject, context);
    AT(exception, cause, PyBaseExceptionObject, cause);
    AT(traceback, next, PyTracebackObject, tb_next);
    AT(traceback, frame, PyTracebackObject, tb_frame);
    AT(traceback, lasti, PyTracebackObject, tb_lasti);
    AT(traceback, lineno, PyTracebackObject, tb_lineno);
}

/*
 * Structs of CPython's .c files: stated here, member by member as the file has them (the same in
 * all versions unless a line says so), and checked against debug information by
 * tests/layout/test_stated.py.
 */
#if PY_MINOR_VERSION <= 9
struct module_object { /* Objects/moduleobject.c: PyModuleObject; 3.10+
                          internal/pycore_moduleobject.h */
    PyObject ob_base;
    PyObject *md_dict;
    struct PyModuleDef *md_def;
    void *md_state;
    PyObject *md_weaklist;
    PyObject *md_name;
};
#endif
struct range_object { /* Objects/rangeobject.c: rangeobject */
    PyObject ob_base;
    PyObject *start, *stop, *step, *length;
};
struct mapping_proxy { /* Objects/descrobject.c: mappingproxyobject */
    PyObject ob_base;
    PyObject *mapping;
};
#if PY_MINOR_VERSION <= 4
#define DEQUE_BLOCK_ITEMS 62
#else
#define DEQUE_BLOCK_ITEMS 64
#endif
struct deque_block { /* Modules/_collectionsmodule.c: BLOCK, BLOCKLEN */
    struct deque_block *leftlink;
    PyObject *data[DEQUE_BLOCK_ITEMS];
    struct deque_block *rightlink;
};
struct deque_object { /* Modules/_collectionsmodule.c: dequeobject */
    PyVarObject ob_base;
    struct deque_block *leftblock, *rightblock;
    Py_ssize_t leftindex, rightindex;
    size_t state;
    Py_ssize_t maxlen;
};
#if PY_MINOR_VERSION <= 10
struct dict_keys { /* Objects/dict-common.h: struct _dictkeysobject; ≤3.5 Objects/dictobject.c */
    Py_ssize_t dk_refcnt, dk_size;
    void *dk_lookup;
    Py_ssize_t dk_usable;
#if PY_MINOR_VERSION >= 6
    Py_ssize_t dk_nentries;
#endif
    char dk_indices[1];
};
#endif

/* Modules/_decimal: PyDecObject with its mpd_t */
struct decimal_object {
    PyObject ob_base;
    Py_hash_t hash;
    unsigned char flags;
    Py_ssize_t exponent, digits, length, allocated;
    void *words;
};
struct array_object { /* Modules/arraymodule.c: arrayobject */
    PyVarObject ob_base;
    char *items;
    Py_ssize_t allocated;
    void *descr;
};
struct array_descr {
    char code;
};
struct dict_view { /* _PyDictViewObject */
    PyObject ob_base;
    PyObject *dict;
};
struct ctypes_data { /* Modules/_ctypes/ctypes.h: CDataObject */
    PyObject ob_base;
    char *data;
};
struct timezone_object { /* Modules/_datetimemodule.c: PyDateTime_TimeZone */
    PyObject ob_base;
    PyObject *offset, *name;
};
struct lock_object { /* Modules/_threadmodule.c: lockobject, 3.13.0 and older */
    PyObject ob_base;
    void *lock;
    PyObject *weakreflist;
    char locked;
};
struct mutex_object { /* the same of later ones */
    PyObject ob_base;
    unsigned char mutex;
};
struct rlock_object { /* Modules/_threadmodule.c: rlockobject */
    PyObject ob_base;
#if PY_MINOR_VERSION <= 13
    void *lock;
#else
    unsigned char mutex;
#endif
    unsigned long owner, count;
};

static void standard_fields(void)
{
    AT(date, data, PyDateTime_Date, data);
    AT(time, data, PyDateTime_Time, data);
    AT(time, has_zone, PyDateTime_Time, hastzinfo);
#if PY_MINOR_VERSION >= 6
    AT(time, fold, PyDateTime_Time, fold);
    AT(datetime, fold, PyDateTime_DateTime, fold);
#endif
    AT(time, zone, PyDateTime_Time, tzinfo);
    AT(datetime, data, PyDateTime_DateTime, data);
    AT(datetime, has_zone, PyDateTime_DateTime, hastzinfo);
    AT(datetime, zone, PyDateTime_DateTime, tzinfo);
    AT(timedelta, days, PyDateTime_Delta, days);
    AT(timedelta, seconds, PyDateTime_Delta, seconds);
    AT(timedelta, microseconds, PyDateTime_Delta, microseconds);
    AT(timezone, offset, struct timezone_object, offset);
    AT(timezone, name, struct timezone_object, name);
    AT(decimal, flags, struct decimal_object, flags);
    AT(decimal, exponent, struct decimal_object, exponent);
    AT(decimal, length, struct decimal_object, length);
    AT(decimal, words, struct decimal_object, words);
    AT(array, length, struct array_object, ob_base.ob_size);
    AT(array, items, struct array_object, items);
    AT(array, descr, struct array_object, descr);
    AT(array_descr, code, struct array_descr, code);
    AT(dict_view, dict, struct dict_view, dict);
    AT(ctypes, data, struct ctypes_data, data);
#if PY_MINOR_VERSION <= 13
    AT(lock, locked, struct lock_object, locked);
#endif
#if PY_MINOR_VERSION >= 13
    AT(lock, mutex, struct mutex_object, mutex);
#endif
#if PY_MINOR_VERSION >= 14
    AT(rlock, mutex, struct rlock_object, mutex);
#endif
    AT(rlock, owner, struct rlock_object, owner);
    AT(rlock, count, struct rlock_object, count);
}

static void stated_fields(void)
{
#if PY_MINOR_VERSION <= 9
    AT(module, dict, struct module_object, md_dict);
    AT(module, name, struct module_object, md_name);
#else
    AT(module, dict, PyModuleObject, md_dict);
    AT(module, name, PyModuleObject, md_name);
#endif
    standard_fields();
    AT(range, start, struct range_object, start);
    AT(range, stop, struct range_object, stop);
    AT(range, step, struct range_object, step);
    AT(mapping_proxy, mapping, struct mapping_proxy, mapping);
    AT(deque, leftblock, struct deque_object, leftblock);
    AT(deque, leftindex, struct deque_object, leftindex);
    AT(deque, rightindex, struct deque_object, rightindex);
    AT(deque, maxlen, struct deque_object, maxlen);
    AT(deque, length, struct deque_object, ob_base.ob_size);
    AT(deque, block_data, struct deque_block, data);
    AT(deque, block_right, struct deque_block, rightlink);
    NUMBER_IS(deque_block_items, DEQUE_BLOCK_ITEMS);
#if PY_MINOR_VERSION <= 10
    AT(dict_keys, size, struct dict_keys, dk_size);
    AT(dict_keys, indices, struct dict_keys, dk_indices);
#if PY_MINOR_VERSION >= 6
    AT(dict_keys, nentries, struct dict_keys, dk_nentries);
#endif
#endif
}

static void object_fields(void)
{
    base_fields();
    scalar_fields();
    container_fields();
    callable_fields();
    generator_fields();
    exception_fields();
    stated_fields();
}
