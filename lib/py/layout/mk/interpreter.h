/*
 * Where the runtime, interpreters, threads, frames and code objects keep their members, by version.
 */
static void runtime_fields(void)
{
#if PY_MINOR_VERSION >= 7
    AT(runtime, interpreters_head, _PyRuntimeState, interpreters.head);
    AT(runtime, interpreters_main, _PyRuntimeState, interpreters.main);
    PLACE(runtime, size, sizeof(_PyRuntimeState));
#if PY_MINOR_VERSION <= 8
    AT(runtime, finalizing, _PyRuntimeState, finalizing);
#else
    AT(runtime, finalizing, _PyRuntimeState, _finalizing);
#endif
#if PY_MINOR_VERSION == 7
    AT(runtime, main_thread, _PyRuntimeState, ceval.pending.main_thread);
#else
    AT(runtime, main_thread, _PyRuntimeState, main_thread);
#endif
#if PY_MINOR_VERSION <= 11
    AT(runtime, tstate_current, _PyRuntimeState, gilstate.tstate_current);
    AT(runtime, gil, _PyRuntimeState, ceval.gil);
    AT(runtime, autotsskey, _PyRuntimeState, gilstate.autoTSSkey._key);
#elif PY_MINOR_VERSION <= 14
    AT(runtime, autotsskey, _PyRuntimeState, autoTSSkey._key);
#endif
#if PY_MINOR_VERSION <= 8
    AT(runtime, tracing_possible, _PyRuntimeState, ceval.tracing_possible);
    AT(runtime, gc_collecting, _PyRuntimeState, gc.collecting);
#endif
#if PY_MINOR_VERSION >= 13
    AT(runtime, debug_offsets, _PyRuntimeState, debug_offsets);
#endif
    AT(gil, last_holder, struct _gil_runtime_state, last_holder);
    AT(gil, locked, struct _gil_runtime_state, locked);
    AT(gil, switch_number, struct _gil_runtime_state, switch_number);
    AT(gil, cond, struct _gil_runtime_state, cond);
    AT(gil, switch_cond, struct _gil_runtime_state, switch_cond);
    PLACE(gil, size, sizeof(struct _gil_runtime_state));
#endif
#if FREE_THREADED
    AT(gil, enabled, struct _gil_runtime_state, enabled);
#endif
}

#if !FREE_THREADED
#if PY_MINOR_VERSION <= 6
struct gc_generation { /* Modules/gcmodule.c */
    PyGC_Head head;
    int threshold, count;
};
#endif

static void collector_fields(void)
{
    AT(gc_generation, head, struct gc_generation, head);
    PLACE(gc_generation, size, sizeof(struct gc_generation));
    PLACE(gc_head, size, sizeof(PyGC_Head));
#if PY_MINOR_VERSION <= 7
    AT(gc_head, next, PyGC_Head, gc.gc_next);
    AT(gc_head, prev, PyGC_Head, gc.gc_prev);
#else
    AT(gc_head, next, PyGC_Head, _gc_next);
    AT(gc_head, prev, PyGC_Head, _gc_prev);
#endif
#if PY_MINOR_VERSION == 7 || PY_MINOR_VERSION == 8
    AT(runtime, gc_generations, _PyRuntimeState, gc.generations);
    AT(runtime, gc_permanent, _PyRuntimeState, gc.permanent_generation);
#elif PY_MINOR_VERSION >= 9
    size_t permanent = offsetof(PyInterpreterState, gc.permanent_generation);
    PLACE(interp, gc_permanent, permanent);
#if PY_MINOR_VERSION <= 13
    AT(interp, gc_generations, PyInterpreterState, gc.generations);
#else /* by another name before 3.14.5, but always right before the permanent one */
    PLACE(interp, gc_generations, permanent - 3 * sizeof(struct gc_generation));
#endif
#endif
}
#endif

static void interp_fields(void)
{
    AT(interp, next, PyInterpreterState, next);
    AT(interp, sysdict, PyInterpreterState, sysdict);
    AT(interp, builtins, PyInterpreterState, builtins);
    PLACE(interp, size, sizeof(PyInterpreterState));
#if PY_MINOR_VERSION >= 7
    AT(interp, id, PyInterpreterState, id);
#endif
#if PY_MINOR_VERSION <= 10
    AT(interp, threads_head, PyInterpreterState, tstate_head);
#else
    AT(interp, threads_head, PyInterpreterState, threads.head);
#endif
#if PY_MINOR_VERSION >= 13
    AT(interp, threads_main, PyInterpreterState, threads.main);
#endif
#if PY_MINOR_VERSION <= 11
    AT(interp, modules, PyInterpreterState, modules);
#else
    AT(interp, modules, PyInterpreterState, imports.modules);
    AT(interp, gil, PyInterpreterState, ceval.gil);
#endif
#if PY_MINOR_VERSION >= 9
    AT(interp, gc_collecting, PyInterpreterState, gc.collecting);
#endif
#if PY_MINOR_VERSION >= 6
    AT(interp, eval_frame, PyInterpreterState, eval_frame);
#endif
#if PY_MINOR_VERSION == 9
    AT(interp, tracing_possible, PyInterpreterState, ceval.tracing_possible);
#endif
#if PY_MINOR_VERSION >= 14
    AT(interp, code_object_generation, PyInterpreterState, _code_object_generation);
#endif
#if PY_MINOR_VERSION >= 15
    AT(interp, gc_frame, PyInterpreterState, gc.frame);
#endif
}

static void thread_fields(void)
{
    AT(thread, prev, PyThreadState, prev);
    AT(thread, next, PyThreadState, next);
    AT(thread, interp, PyThreadState, interp);
    AT(thread, thread_id, PyThreadState, thread_id);
    AT(thread, tracefunc, PyThreadState, c_tracefunc);
    AT(thread, traceobj, PyThreadState, c_traceobj);
    AT(thread, profilefunc, PyThreadState, c_profilefunc);
    AT(thread, tracing, PyThreadState, tracing);
    PLACE(thread, size, sizeof(PyThreadState));
#if PY_MINOR_VERSION <= 9
    AT(thread, use_tracing, PyThreadState, use_tracing);
#elif PY_MINOR_VERSION == 10
    PLACE(cframe, use_tracing, offsetof(CFrame, use_tracing));
#elif PY_MINOR_VERSION == 11
    PLACE(cframe, use_tracing, offsetof(_PyCFrame, use_tracing));
#endif
#if PY_MINOR_VERSION <= 10
    AT(thread, frame, PyThreadState, frame);
#elif PY_MINOR_VERSION >= 13
    AT(thread, frame, PyThreadState, current_frame);
#endif
#if PY_MINOR_VERSION <= 11
    AT(thread, current_exception, PyThreadState, curexc_type);
#else
    AT(thread, current_exception, PyThreadState, current_exception);
    AT(thread, status, PyThreadState, _status);
#endif
#if PY_MINOR_VERSION == 6
    AT(thread, exc_value, PyThreadState, exc_value);
#endif
#if PY_MINOR_VERSION >= 7
    AT(thread, id, PyThreadState, id);
    AT(thread, exc_info, PyThreadState, exc_info);
    AT(exc_stack_item, exc_value, _PyErr_StackItem, exc_value);
    AT(exc_stack_item, previous, _PyErr_StackItem, previous_item);
#endif
#if PY_MINOR_VERSION == 10
    AT(thread, cframe, PyThreadState, cframe);
    AT(cframe, previous, CFrame, previous);
#elif PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
    AT(thread, cframe, PyThreadState, cframe);
    AT(cframe, current_frame, _PyCFrame, current_frame);
    AT(cframe, previous, _PyCFrame, previous);
#endif
#if PY_MINOR_VERSION >= 11
    AT(thread, native_thread_id, PyThreadState, native_thread_id);
    AT(thread, datastack_chunk, PyThreadState, datastack_chunk);
    AT(thread, datastack_top, PyThreadState, datastack_top);
    AT(thread, datastack_limit, PyThreadState, datastack_limit);
    AT(stack_chunk, previous, _PyStackChunk, previous);
    AT(stack_chunk, size, _PyStackChunk, size);
    AT(stack_chunk, top, _PyStackChunk, top);
    AT(stack_chunk, data, _PyStackChunk, data);
#endif
#if PY_MINOR_VERSION >= 13
    AT(thread, state, PyThreadState, state);
#endif
#if PY_MINOR_VERSION >= 14
    AT(thread, holds_gil, PyThreadState, holds_gil);
#endif
#if PY_MINOR_VERSION >= 15
    AT(thread, base_frame, PyThreadState, base_frame);
    AT(thread, gil_requested, PyThreadState, gil_requested);
#endif
}

#if PY_MINOR_VERSION <= 10
static void frame_fields(void)
{
    AT(frame, previous, PyFrameObject, f_back);
    AT(frame, code, PyFrameObject, f_code);
    AT(frame, instr, PyFrameObject, f_lasti);
    AT(frame, globals, PyFrameObject, f_globals);
    AT(frame, builtins, PyFrameObject, f_builtins);
    AT(frame, locals, PyFrameObject, f_locals);
    AT(frame, valuestack, PyFrameObject, f_valuestack);
    AT(frame, gen, PyFrameObject, f_gen);
    AT(frame, localsplus, PyFrameObject, f_localsplus);
    PLACE(frame, size, sizeof(PyFrameObject));
#if PY_MINOR_VERSION <= 9
    AT(frame, stacktop, PyFrameObject, f_stacktop);
    AT(frame, state, PyFrameObject, f_executing);
#else
    AT(frame, stacktop, PyFrameObject, f_stackdepth);
    AT(frame, state, PyFrameObject, f_state);
#endif
}
#else
static void frame_fields(void)
{
    AT(frame, previous, _PyInterpreterFrame, previous);
    AT(frame, globals, _PyInterpreterFrame, f_globals);
    AT(frame, builtins, _PyInterpreterFrame, f_builtins);
    AT(frame, locals, _PyInterpreterFrame, f_locals);
    AT(frame, frame_obj, _PyInterpreterFrame, frame_obj);
    AT(frame, owner, _PyInterpreterFrame, owner);
    AT(frame, localsplus, _PyInterpreterFrame, localsplus);
    PLACE(frame, size, sizeof(_PyInterpreterFrame));
#if PY_MINOR_VERSION == 11
    AT(frame, func, _PyInterpreterFrame, f_func);
    AT(frame, is_entry, _PyInterpreterFrame, is_entry);
#else
    AT(frame, func, _PyInterpreterFrame, f_funcobj);
    AT(frame, return_offset, _PyInterpreterFrame, return_offset);
#endif
#if PY_MINOR_VERSION <= 12
    AT(frame, code, _PyInterpreterFrame, f_code);
    AT(frame, instr, _PyInterpreterFrame, prev_instr);
#else
    AT(frame, code, _PyInterpreterFrame, f_executable);
    AT(frame, instr, _PyInterpreterFrame, instr_ptr);
#endif
#if PY_MINOR_VERSION <= 13
    AT(frame, stacktop, _PyInterpreterFrame, stacktop);
#else
    AT(frame, stacktop, _PyInterpreterFrame, stackpointer);
#if FREE_THREADED
    AT(frame, tlbc_index, _PyInterpreterFrame, tlbc_index);
#endif
#endif
}
#endif

static void frame_object_fields(void)
{
    AT(frame_object, lineno, PyFrameObject, f_lineno);
#if PY_MINOR_VERSION >= 11
    AT(frame_object, frame, PyFrameObject, f_frame);
#endif
}

static void code_fields(void)
{
    AT(code, argcount, PyCodeObject, co_argcount);
    AT(code, kwonlyargcount, PyCodeObject, co_kwonlyargcount);
    AT(code, nlocals, PyCodeObject, co_nlocals);
    AT(code, flags, PyCodeObject, co_flags);
    AT(code, firstlineno, PyCodeObject, co_firstlineno);
    AT(code, consts, PyCodeObject, co_consts);
    AT(code, names, PyCodeObject, co_names);
    AT(code, filename, PyCodeObject, co_filename);
    AT(code, name, PyCodeObject, co_name);
    PLACE(code, size, sizeof(PyCodeObject));
#if PY_MINOR_VERSION >= 8
    AT(code, posonlyargcount, PyCodeObject, co_posonlyargcount);
#endif
#if PY_MINOR_VERSION <= 9
    AT(code, linetable, PyCodeObject, co_lnotab);
#else
    AT(code, linetable, PyCodeObject, co_linetable);
#endif
#if PY_MINOR_VERSION <= 10
    AT(code, bytecode, PyCodeObject, co_code);
    AT(code, varnames, PyCodeObject, co_varnames);
    AT(code, freevars, PyCodeObject, co_freevars);
    AT(code, cellvars, PyCodeObject, co_cellvars);
    AT(code, cell2arg, PyCodeObject, co_cell2arg);
    NUMBER_IS(cell2arg_bytes, sizeof(*((PyCodeObject *)0)->co_cell2arg));
#else
    AT(code, bytecode, PyCodeObject, co_code_adaptive);
    AT(code, localsplusnames, PyCodeObject, co_localsplusnames);
    AT(code, localspluskinds, PyCodeObject, co_localspluskinds);
    AT(code, nlocalsplus, PyCodeObject, co_nlocalsplus);
    AT(code, ncellvars, PyCodeObject, co_ncellvars);
    AT(code, nfreevars, PyCodeObject, co_nfreevars);
    AT(code, qualname, PyCodeObject, co_qualname);
    AT(code, exceptiontable, PyCodeObject, co_exceptiontable);
#endif
#if PY_MINOR_VERSION >= 14 && FREE_THREADED
    AT(code, tlbc, PyCodeObject, co_tlbc);
    AT(code_array, size, _PyCodeArray, size);
    PLACE(code_array, entries, offsetof(_PyCodeArray, entries));
#endif
}

static void interpreter_fields(void)
{
    runtime_fields();
    interp_fields();
    thread_fields();
    frame_fields();
    frame_object_fields();
    code_fields();
#if !FREE_THREADED
    collector_fields();
#endif
}
