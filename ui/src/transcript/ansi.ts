// Terminal output with its colours as classes, sanitised like all foreign text.

import { AnsiUp } from 'ansi_up';

import { sanitise, type SafeHtml } from './markdown';

/** Characters rendered at most; the end counts for what runs, the beginning for what is done. */
export const MOST_SHOWN = 65_536;

export function ansi(text: string): SafeHtml {
  const up = new AnsiUp();
  up.use_classes = true;
  up.url_allowlist = {};
  return sanitise(up.ansi_to_html(text.slice(0, MOST_SHOWN)));
}

/** Without its colours. */
export function plain(text: string): string {
  // eslint-disable-next-line no-control-regex -- that is what escape sequences begin with
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '');
}
