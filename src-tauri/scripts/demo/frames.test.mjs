// Proves that events survive any cut of their bytes, and that only whole ones are given out.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FrameParser } from './frames.mjs';

const TEXT = ': comment\n\nid: e.1\ndata: {"a":1}\n\nid: e.2\r\ndata: x\r\ndata:y\r\n\r\ndata: cut';
const EVENTS = [
  { id: 'e.1', data: '{"a":1}' },
  { id: 'e.2', data: 'x\ny' },
];

test('a stream cut at every place gives the same events', () => {
  for (let at = 0; at <= TEXT.length; at += 1) {
    const parser = new FrameParser();
    const events = [TEXT.slice(0, at), TEXT.slice(at)].flatMap((piece) => parser.push(piece));
    assert.deepEqual(events, EVENTS, `cut at ${at}`);
  }
});

test('a stream that comes character by character gives the same events', () => {
  const parser = new FrameParser();
  assert.deepEqual(
    [...TEXT].flatMap((piece) => parser.push(piece)),
    EVENTS,
  );
});
