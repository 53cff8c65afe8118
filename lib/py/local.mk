libprb_la_SOURCES += %D%/py.h %D%/code.h %D%/object.h %D%/stack.h %D%/walk.h %D%/locals.h \
	%D%/py.c %D%/find.c %D%/code.c %D%/line.c %D%/walk.c %D%/stack.c %D%/locals.c
libprb_la_SOURCES += %D%/object_internal.h %D%/object.c %D%/object_type.c %D%/object_class.c \
	%D%/object_int.c %D%/object_float.c %D%/object_str.c %D%/object_text.c %D%/object_dict.c \
	%D%/object_sequence.c %D%/object_instance.c %D%/object_repr.c %D%/object_repr_array.c \
	%D%/object_repr_container.c %D%/object_repr_instance.c %D%/object_repr_named.c \
	%D%/unprintable.def
EXTRA_DIST += %D%/unprintable.py
include lib/py/layout/local.mk
