// Rules that hold for the whole UI, read off its sources.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from 'vitest';

import { OPERATIONS } from '../src/port/port';
import { en } from '../src/messages/en';
import { format, type Message } from '../src/messages/messages';
import { zhCN } from '../src/messages/zh-CN';

const SRC = path.resolve(import.meta.dirname, '../src');

function sources(...endings: string[]): { name: string; text: string }[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => endings.some((ending) => name.endsWith(ending)))
    .filter((name) => !name.startsWith('bindings'))
    .map((name) => ({ name, text: readFileSync(path.join(SRC, name), 'utf8') }));
}

test('the operations are exactly those of the backend’s table', () => {
  const table = readFileSync(
    path.resolve(SRC, '../../src-tauri/crates/api/src/app.rs'),
    'utf8',
  ).split(/\napp_operations! \{/)[1];
  const names = [...(table ?? '').matchAll(/^ {4}([a-z_]+)\(/gm)].map((match) => match[1]);
  expect(names.length).toBeGreaterThan(0);
  expect([...OPERATIONS].sort()).toEqual(names.sort());
});

test('only the window’s port imports @tauri-apps', () => {
  const importing = sources('.ts', '.svelte').filter(({ text }) => /from '@tauri-apps/.test(text));
  expect(importing.map(({ name }) => name.replaceAll('\\', '/'))).toEqual(['port/tauri.ts']);
});

test('colours and sizes are literal in tokens.css alone', () => {
  const found = sources('.svelte', '.css')
    .filter(({ name }) => !name.endsWith('tokens.css'))
    .flatMap(({ name, text }) => {
      const styles = name.endsWith('.css')
        ? text
        : [...text.matchAll(/<style>([\s\S]*?)<\/style>/g)].map((m) => m[1]).join('');
      const bare = styles.replace(/\/\*[\s\S]*?\*\//g, '');
      return [
        ...bare.matchAll(
          /#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|oklch|color)\(|\b[\d.]*[1-9][\d.]*(?:px|rem|pt)\b/gi,
        ),
      ].map((match) => `${name}: ${match[0]}`);
    });
  expect(found).toEqual([]);
});

test('both languages have equal keys and equal parameters', () => {
  expect(Object.keys(zhCN).sort()).toEqual(Object.keys(en).sort());
  const parameters = (message: Message) =>
    [
      ...new Set(
        [...(typeof message === 'string' ? message : message.other).matchAll(/\{(\w+)\}/g)].map(
          (match) => match[1],
        ),
      ),
    ].sort();
  for (const key of Object.keys(en) as (keyof typeof en)[]) {
    expect(parameters(zhCN[key]), key).toEqual(parameters(en[key]));
  }
});

test('every key is used by the UI', () => {
  const text = sources('.ts', '.svelte')
    .filter(({ name }) => !name.startsWith('messages'))
    .map((source) => source.text)
    .join('\n');
  // Keys that are made from a word on the wire.
  const made =
    /^(?:host\.state|host\.way|recovery\.by|queue\.reason|recovery\.retryCode|state|line|tool|mode|diff|settings\.theme|settings\.language|time|jobs\.kind)\./;
  const unused = Object.keys(en).filter((key) => !made.test(key) && !text.includes(`'${key}'`));
  expect(unused).toEqual([]);
});

test('numbers choose the plural form, and unknown parameters stay visible', () => {
  expect(format({ one: '1 file', other: '{n} files' }, 'en', { n: 1 })).toBe('1 file');
  expect(format({ one: '1 file', other: '{n} files' }, 'en', { n: 0 })).toBe('0 files');
  expect(format({ other: '{n} 个文件' }, 'zh-CN', { n: 1 })).toBe('1 个文件');
  expect(format('in {folder}', 'en', {})).toBe('in {folder}');
});

/** WCAG contrast of two colours. */
function contrast(a: string, b: string): number {
  const light = (colour: string) => {
    const [r = 0, g = 0, blue = 0] = [1, 3, 5].map((at) => {
      const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [high = 0, low = 0] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

test('text meets AA on every surface it stands on, in both themes', () => {
  const css = readFileSync(path.join(SRC, 'kit/tokens.css'), 'utf8');
  const themes = [...css.matchAll(/:root\[data-theme='(\w+)'\] \{([\s\S]*?)\n\}/g)];
  expect(themes.map((match) => match[1])).toEqual(['light', 'dark']);
  const low: string[] = [];
  for (const [, theme, body = ''] of themes) {
    const token = new Map(
      [...body.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map((m) => [m[1], m[2]]),
    );
    const pairs = [
      ...['--bg', '--bg-side', '--bg-raised', '--bg-inset', '--bg-code', '--bg-hover'].flatMap(
        (ground) => ['--text', '--text-2', '--text-3'].map((text) => [text, ground]),
      ),
      ...['--bg', '--bg-raised'].flatMap((ground) =>
        ['--accent', '--amber-text', '--red-text', '--violet-text'].map((text) => [text, ground]),
      ),
      ['--text-2', '--bg-selected'],
      ['--on-accent', '--accent'],
      ['--text', '--amber-soft'],
      ['--text-3', '--amber-soft'],
      ['--violet-text', '--violet-soft'],
      ['--text-2', '--violet-soft'],
      ['--red-text', '--red-soft'],
      ['--add-text', '--add-bg'],
      ['--del-text', '--del-bg'],
      ...[
        '--code-keyword',
        '--code-string',
        '--code-number',
        '--code-comment',
        '--code-title',
        '--code-type',
      ].flatMap((text) => ['--bg-code', '--add-bg', '--del-bg'].map((ground) => [text, ground])),
    ];
    for (const [text = '', ground = ''] of pairs) {
      const ratio = contrast(token.get(text) ?? '', token.get(ground) ?? '');
      if (!(ratio >= 4.5)) {
        low.push(`${theme}: ${text} on ${ground} ${ratio.toFixed(2)}`);
      }
    }
  }
  expect(low).toEqual([]);
});
