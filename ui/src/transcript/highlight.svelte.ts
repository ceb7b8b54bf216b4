// Highlighting of a few languages. It is fetched when the first code is shown; until then, and for
// all other languages, code is shown plain.

import type { HLJSApi } from 'highlight.js';

import { escapeHtml, sanitise, type SafeHtml } from './markdown';

const BY_EXTENSION: Record<string, string> = {
  rs: 'rust',
  ts: 'typescript',
  tsx: 'typescript',
  js: 'javascript',
  mjs: 'javascript',
  jsx: 'javascript',
  py: 'python',
  sh: 'bash',
  json: 'json',
  toml: 'ini',
  ini: 'ini',
  yml: 'yaml',
  yaml: 'yaml',
  css: 'css',
  html: 'xml',
  svelte: 'xml',
  xml: 'xml',
  go: 'go',
  md: 'markdown',
};
/** Longer text is shown plain: highlighting it would hold up the page. */
const MOST = 40_000;

class Loaded {
  api = $state.raw<HLJSApi | null>(null);
}
const loaded = new Loaded();
let loading = false;

function ask(): void {
  if (!loading) {
    loading = true;
    void import('./languages').then(({ highlighter }) => {
      loaded.api = highlighter;
    });
  }
}

/** The language of a file, by its name; empty when it is none of ours. */
export function languageOf(path: string): string {
  return BY_EXTENSION[path.split('.').at(-1)?.toLowerCase() ?? ''] ?? '';
}

export function highlight(text: string, language: string): SafeHtml {
  const name = BY_EXTENSION[language] ?? language;
  ask();
  const api = loaded.api;
  if (api === null || text.length > MOST || api.getLanguage(name) === undefined) {
    return sanitise(escapeHtml(text));
  }
  return sanitise(api.highlight(text, { language: name, ignoreIllegals: true }).value);
}
