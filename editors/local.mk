# Front ends: a VS Code extension (`make vsix`, which needs npm), and files for other editors, installed as they are.
editorsdir = $(pkgdatadir)/editors
editorsnvimdir = $(editorsdir)/nvim-dap
editorsdapedir = $(editorsdir)/dape
editorszeddir = $(editorsdir)/zed
editorshelixdir = $(editorsdir)/helix
dist_editors_DATA = %D%/README.md
dist_editorsnvim_DATA = %D%/nvim-dap/probing.lua %D%/nvim-dap/README.md
dist_editorsdape_DATA = %D%/dape/probing.el %D%/dape/README.md
dist_editorszed_DATA = %D%/zed/debug.json %D%/zed/README.md
dist_editorshelix_DATA = %D%/helix/languages.toml %D%/helix/README.md

VSCODE_FILES = %D%/vscode/package.json %D%/vscode/package-lock.json %D%/vscode/tsconfig.json %D%/vscode/pack.py %D%/vscode/build.sh \
	%D%/vscode/README.md %D%/vscode/eslint.config.mjs \
	%D%/vscode/src/adapter.ts %D%/vscode/src/address.ts %D%/vscode/src/commands.ts %D%/vscode/src/configuration.ts \
	%D%/vscode/src/extension.ts %D%/vscode/src/inline.ts %D%/vscode/src/processes.ts %D%/vscode/src/rows.ts \
	%D%/vscode/src/tool.ts %D%/vscode/src/tensor/ask.ts %D%/vscode/src/tensor/view.ts \
	%D%/vscode/src/tensor/types.d.ts \
	%D%/vscode/src/page/actions.ts %D%/vscode/src/page/assets.ts %D%/vscode/src/page/frames.ts %D%/vscode/src/page/messages.d.ts \
	%D%/vscode/src/page/panel.ts %D%/vscode/src/page/server.ts \
	%D%/vscode/src/webview/bridge.ts %D%/vscode/src/webview/tensor.ts %D%/vscode/src/webview/tsconfig.json \
	%D%/vscode/media/icon.png %D%/vscode/media/icon.svg %D%/vscode/media/tensor.css %D%/vscode/media/view.py \
	%D%/vscode/walkthrough/tool.md %D%/vscode/walkthrough/page.md %D%/vscode/walkthrough/attach.md %D%/vscode/walkthrough/break.md \
	%D%/vscode/walkthrough/tensor.md %D%/vscode/walkthrough/leave.md
EXTRA_DIST += $(VSCODE_FILES)

VSIX = probing-$(PACKAGE_VERSION).vsix
vsix: $(VSIX)
$(VSIX): $(VSCODE_FILES) $(top_srcdir)/LICENSE
	$(AM_V_GEN)$(srcdir)/%D%/vscode/build.sh $@
vsix-clean:
	rm -rf vsix.dir $(VSIX)
clean-local: vsix-clean
.PHONY: vsix vsix-clean

# The pictures in README.md.  terminal.svg is made here; vscode.png is the test's extension-tensor-dark.png, with fewer colours.
EXTRA_DIST += %D%/pictures/terminal.py %D%/pictures/terminal.svg %D%/pictures/vscode.png
.PHONY: pictures
pictures: all
	$(AM_V_GEN)PROBING='$(abs_top_builddir)/.libs/probing' PYTHON='$(abs_top_builddir)/venv/bin/python' \
		$(PYTHON) $(srcdir)/%D%/pictures/terminal.py $(srcdir)/%D%/pictures/terminal.svg
