libprb_la_SOURCES += %D%/object.h %D%/reader.h %D%/reader.c %D%/type.c %D%/class.c %D%/int.c %D%/float.c \
	%D%/str.c %D%/text.c %D%/dict.c %D%/hash.c %D%/sequence.c %D%/instance.c %D%/unprintable.def
EXTRA_DIST += %D%/unprintable.py
