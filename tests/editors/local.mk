# Real editors: VS Code (setup.sh makes it in BUILDDIR/editors), Emacs with dape and Helix (newer-pythons.sh), Neovim.  What is not
# there is skipped, saying so.
PYTESTS += %D%/test_vscode.py %D%/test_emacs.py %D%/test_helix.py %D%/test_nvim.py %D%/test_files.py %D%/test_view.py \
	%D%/test_extension.py
EXTRA_DIST += %D%/conftest.py %D%/workbench.py %D%/training.py %D%/setup.sh %D%/dape_session.el %D%/nvim_session.lua %D%/units.js \
	%D%/debugpy_client/package.json %D%/debugpy_client/extension.js
