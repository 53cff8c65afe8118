libprb_la_SOURCES += %D%/py.h %D%/code.h %D%/object.h %D%/stack.h \
	%D%/layout/fields.def %D%/layout/traits.def %D%/layout/layout.h
