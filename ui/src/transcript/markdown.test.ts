import { expect, test } from 'vitest';

import { ansi } from './ansi';
import { blocks, renderBlock } from './markdown';

const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '[click](javascript:alert(1))',
  '[click](data:text/html,<script>alert(1)</script>)',
  '![pixel](https://evil.example/p.png)',
  '<iframe src="https://evil.example"></iframe>',
  '<a href="https://ok.example" onclick="alert(1)">x</a>',
  '<form action="https://evil.example"><input name=x></form>',
  '<svg><script>alert(1)</script></svg>',
  '<style>body{display:none}</style>',
  '[x](JaVaScRiPt:alert(1))',
  '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
];

test.each(HOSTILE)('hostile text is harmless: %s', (text) => {
  const page = document.createElement('div');
  page.innerHTML = blocks(text)
    .map((block) => (block.kind === 'html' ? renderBlock(block.raw) : ''))
    .join('');
  expect(
    page.querySelector('script, img, iframe, form, input, svg, style, object, math'),
  ).toBeNull();
  for (const element of page.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      expect(['href', 'class']).toContain(name);
      if (name === 'href') {
        expect(value).toMatch(/^https?:/);
      }
    }
  }
});

test('an image of the web is a link with its words', () => {
  expect(renderBlock('![a plan](https://example.com/a.png)')).toContain(
    '<a href="https://example.com/a.png">a plan</a>',
  );
});

test('code is a block of its own, with its language', () => {
  expect(blocks('Look:\n\n```rust ignore\nlet a = 1;\n```\n\nDone.')).toEqual([
    { kind: 'html', raw: 'Look:' },
    { kind: 'code', language: 'rust', text: 'let a = 1;' },
    { kind: 'html', raw: 'Done.' },
  ]);
});

test('in a stream only the last block changes', () => {
  const text = '# One\n\ntwo *three*\n\n- four\n- five\n\n```js\nlet six;\n```\n\nseven';
  const whole = blocks(text);
  for (let end = 1; end <= text.length; end += 1) {
    const part = blocks(text.slice(0, end));
    expect(part.slice(0, -1)).toEqual(whole.slice(0, part.length - 1));
  }
});

test('terminal colours are classes, and foreign markup in output is text', () => {
  const html = ansi(
    '\u001b[32mok\u001b[0m <b onclick=x>no</b> \u001b]8;;javascript:alert(1)\u0007x\u001b]8;;\u0007',
  );
  expect(html).toContain('<span class="ansi-green-fg">ok</span>');
  const page = document.createElement('div');
  page.innerHTML = html;
  expect(page.querySelector('b, [onclick], [style]')).toBeNull();
  expect(page.querySelector('a')?.getAttribute('href') ?? '').not.toContain('javascript');
});
