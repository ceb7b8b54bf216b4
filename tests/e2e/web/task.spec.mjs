// One task in a folder of the person's own: streamed, approved, tested, stopped, gone on with.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

const BUGGY = 'greet() {\n  echo "Helo, $1"\n}\n';
const MENDED = 'greet() {\n  echo "Hello, $1"\n}\n';
const CHECK =
  '. ./greet.sh\n[ "$(greet you)" = "Hello, you" ] && echo passed || { echo FAILED; exit 1; }\n';

test('a change is asked for, streams, is approved with its diff, and its tests go from failing to passing', async ({
  desk,
  stage,
}) => {
  const folder = stage.project('greeting', { 'greet.sh': BUGGY, 'check.sh': CHECK });
  const file = path.join(folder, 'greet.sh');
  await desk.openFolder(folder);
  await stage.model.push(
    {
      ...callStep('shell', { command: 'sh check.sh' }, ['I run ', 'the tests ', 'first.']),
      gate: { name: 'words', after: 2 },
    },
    callStep('edit_file', {
      path: 'greet.sh',
      edits: [{ old_text: 'Helo', new_text: 'Hello' }],
    }),
    callStep('shell', { command: 'sh ./check.sh' }),
    { text: ['Both words are right now.'] },
  );
  await desk.say('Mend the greeting');
  // Half of the answer stands there while the other half is held back.
  const live = desk.page.locator('.tail article.live');
  await expect(live).toHaveText('I run the tests');
  await expect(desk.status).toContainText('Writing');
  await stage.model.release('words');

  await desk.allowOnce('sh check.sh');
  const failing = desk.card('sh check.sh');
  await expect(failing).toContainText('exit 1');
  await expect(failing).toContainText('FAILED');

  const edit = desk.approval.filter({ hasText: 'Make this change?' });
  await expect(edit.locator('tr.del')).toContainText('Helo');
  await expect(edit.locator('tr.add')).toContainText('Hello');
  expect(readFileSync(file, 'utf8'), 'nothing is written before the answer').toBe(BUGGY);
  await desk.allow.click();

  await desk.allowOnce('sh ./check.sh');
  expect(readFileSync(file, 'utf8')).toBe(MENDED);
  const passing = desk.card('sh ./check.sh');
  await expect(passing).toContainText('done');
  await expect(passing).toContainText('passed');
  await expect(desk.log.getByText('Both words are right now.')).toBeVisible();
  await desk.idle();
});

test('a running command is stopped, says so, and the next write is admitted', async ({
  desk,
  stage,
}) => {
  const folder = stage.project('long');
  await desk.openFolder(folder);
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'long') }));
  await desk.say('Run it');
  await desk.allowOnce('at work');
  await stage.untilThere('long-began');
  const card = desk.card('at work');
  await expect(card).toContainText('running');
  await expect(desk.status).toContainText('Running');
  await desk.stop.click();
  await expect(card).toContainText('stopped');
  await expect(desk.log.getByText('Stopped by you')).toBeVisible();
  await expect(desk.stop).toHaveCount(0);
  await expect(desk.banner).toHaveCount(0);

  await stage.model.push(callStep('write_file', { path: 'note.txt', content: 'went on\n' }), {
    text: ['It is written.'],
  });
  await desk.say('Write the note');
  await desk.allowOnce('note.txt');
  await expect(desk.log.getByText('It is written.')).toBeVisible();
  await desk.idle();
  expect(readFileSync(path.join(folder, 'note.txt'), 'utf8')).toBe('went on\n');
  expect(existsSync(stage.beside('long-effect')), 'the stopped command did nothing more').toBe(
    false,
  );
});

test('a denied write is not done, and the model reads why', async ({ desk, stage }) => {
  const folder = stage.project('denied');
  await desk.openFolder(folder);
  await stage.model.push(callStep('write_file', { path: 'no.txt', content: 'no\n' }), {
    text: ['Then I leave it.'],
  });
  await desk.say('Write it');
  await desk.approval.getByRole('button', { name: 'Deny with a reason' }).click();
  await desk.approval.getByRole('textbox').fill('not in this folder');
  await desk.page.keyboard.press('Enter');
  await expect(desk.card('no.txt')).toContainText('denied');
  await expect(desk.log.getByText('Then I leave it.')).toBeVisible();
  await desk.idle();
  expect(existsSync(path.join(folder, 'no.txt'))).toBe(false);
  const requests = await stage.model.requests();
  expect(JSON.stringify(requests.at(-1).json.messages)).toContain('not in this folder');
});
