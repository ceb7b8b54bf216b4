import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';

import svelteConfig from './svelte.config.js';

export default ts.config(
  { ignores: ['dist/**', 'gallery/**', 'node_modules/**', 'src/bindings/**'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: {
      parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig },
    },
  },
  {
    rules: {
      eqeqeq: ['error', 'always'],
      'no-undef': 'off',
      'prefer-const': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      // Plain maps and sets are meant where values are replaced as a whole.
      'svelte/prefer-svelte-reactivity': 'off',
      // HTML comes from one place alone, which sanitises it.
      'svelte/no-at-html-tags': 'error',
    },
  },
);
