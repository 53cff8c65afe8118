// The rules for src: typescript-eslint's strictest sets, which need the types.
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['out/**', 'eslint.config.mjs'] },
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { project: ['tsconfig.json', 'src/webview/tsconfig.json'], tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/dot-notation': 'off', // noPropertyAccessFromIndexSignature's form
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
);
