# Where the time goes, live: the model, its drawing, the terminal.
probing_SOURCES += %D%/draw.c %D%/draw.h %D%/draw_steps.c %D%/steps.c %D%/steps.h %D%/step_rows.c %D%/step_rows.h %D%/job_steps.c %D%/job_steps.h %D%/kept.c %D%/kept.h %D%/keys.c %D%/model.c %D%/screen.c %D%/screen.h %D%/top.h
