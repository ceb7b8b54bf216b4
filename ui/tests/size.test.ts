// @vitest-environment node

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

import { expect, test } from 'vitest';
import { build } from 'vite';

const BUDGET = 150_000;

test('the initial JavaScript is under 150 kB gzipped, and the page has no inline script or style', async () => {
  const root = path.resolve(import.meta.dirname, '..');
  const result = await build({
    root,
    mode: 'production',
    logLevel: 'silent',
    build: { write: false },
  });
  const outputs = (Array.isArray(result) ? result : [result]).flatMap((one) =>
    'output' in one ? one.output : [],
  );
  const entry = outputs.find((output) => output.type === 'chunk' && output.isEntry);
  if (entry?.type !== 'chunk') {
    throw new Error('no entry was built');
  }
  const initial = new Set([entry.fileName, ...entry.imports]);
  const bytes = outputs
    .filter((output) => output.type === 'chunk' && initial.has(output.fileName))
    .reduce((sum, output) => sum + gzipSync(output.type === 'chunk' ? output.code : '').length, 0);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(BUDGET);
  expect(outputs.map((output) => output.fileName).join(' ')).not.toContain('gallery');
  const html = outputs.find((output) => output.fileName === 'index.html');
  const page =
    html?.type === 'asset'
      ? String(html.source)
      : readFileSync(path.join(root, 'index.html'), 'utf8');
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
}, 120_000);
