// The model's text as blocks: code blocks apart, all else as sanitised HTML.
//
// Guarantees: no script, style, form, frame or image of the model's reaches the page; raw HTML is
// shown as text; images are links; links are http or https and open outside.

import DOMPurify from 'dompurify';
import { Marked, type Token } from 'marked';

declare const safe: unique symbol;
/** HTML that went through the sanitiser, and nothing else. */
export type SafeHtml = string & { [safe]: true };

export type Block =
  { kind: 'code'; language: string; text: string } | { kind: 'html'; raw: string };

const TAGS = [
  'a', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'li',
  'ol', 'p', 'pre', 'span', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul',
]; // prettier-ignore
const LINK = /^https?:/i;

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => escapes[character] ?? character);
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    image({ href, text }) {
      const words = escapeHtml(text || href);
      return LINK.test(href) ? `<a href="${escapeHtml(href)}">${words}</a>` : words;
    },
    link({ href, tokens }) {
      const words = this.parser.parseInline(tokens);
      return LINK.test(href) ? `<a href="${escapeHtml(href)}">${words}</a>` : words;
    },
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

/** Only these tags, no attributes but a link's address and classes. */
export function sanitise(html: string): SafeHtml {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'class'],
    ALLOWED_URI_REGEXP: LINK,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  }) as SafeHtml;
}

/** Top-level blocks; equal text gives equal blocks, so that only the last one changes in a stream. */
export function blocks(text: string): Block[] {
  const found: Block[] = [];
  for (const token of marked.lexer(text)) {
    if (isCode(token)) {
      const [language = ''] = (token.lang ?? '').trim().split(/\s+/);
      found.push({ kind: 'code', language, text: token.text });
    } else if (token.type !== 'space') {
      found.push({ kind: 'html', raw: token.raw });
    }
  }
  return found;
}

export function renderBlock(raw: string): SafeHtml {
  return sanitise(marked.parse(raw, { async: false }));
}

function isCode(token: Token): token is Token & { type: 'code'; lang?: string; text: string } {
  return token.type === 'code';
}
