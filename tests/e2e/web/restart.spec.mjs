// The host is killed in the middle of things, and started again on the same data.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

const DRAFT = 'half a thought, kept for later';

test('kill -9 in a command: tab, draft, the real result and the truthful state are back', async ({
  desk,
  stage,
  problems,
}) => {
  await desk.openFolder(stage.project('killed'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'one') }));
  await desk.say('Run it');
  await desk.allowOnce('at work');
  await stage.untilThere('one-began');
  // Kept is what was answered.
  const kept = desk.page.waitForResponse(
    (reply) =>
      reply.url().endsWith('/app/save_draft') && reply.request().postDataJSON().text === DRAFT,
  );
  await desk.composer.fill(DRAFT);
  expect((await kept).ok()).toBe(true);
  const before = await stage.call('get_layout');

  problems.outage();
  await stage.kill();
  await expect(desk.unsynced).toBeVisible();
  await expect(desk.status).toContainText('Last known');
  // What is typed while nobody can store it is not lost either.
  const longer = `${DRAFT}, and more that nobody could store`;
  await desk.composer.fill(longer);
  await stage.start();
  // The new program does not know the page, which says so.
  await expect(desk.page.getByText(/open the link that it prints/)).toBeVisible();
  // The command is still at work: the supervisor holds it, and the page says so.
  await desk.enter();
  await expect(desk.composer).toHaveValue(longer);
  const after = await stage.call('get_layout');
  expect(after.tabs[0].tabId).toBe(before.tabs[0].tabId);
  expect(after.tabs[0].sessionPath).toBe(before.tabs[0].sessionPath);
  await expect(desk.log.getByText('Interrupted: the program ended during this turn')).toBeVisible();
  await expect(desk.status).toContainText('command still running');

  stage.write('one-gate');
  await stage.untilThere('one-effect');
  const card = desk.card('at work');
  await expect(card).toContainText('recovered');
  await expect(desk.banner).toHaveCount(0);
  await card.getByRole('button').first().click();
  await expect(card).toContainText('The real result, found after a restart.');
  await expect(card.getByLabel('Output')).toHaveText(/at work\s+over/);
  expect(readFileSync(stage.beside('one-effect'), 'utf8'), 'it ran once').toBe('happened\n');
});

test('a command that ended while nobody looked is recovered with its real result', async ({
  desk,
  stage,
  problems,
}) => {
  await desk.openFolder(stage.project('ended'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'two') }));
  await desk.say('Run it');
  await desk.allowOnce('at work');
  await stage.untilThere('two-began');
  problems.outage();
  await stage.kill();
  stage.write('two-gate');
  await stage.untilThere('two-effect');
  await stage.start();
  await desk.enter();
  await expect(desk.card('at work')).toContainText('recovered');
  await expect(desk.banner).toHaveCount(0);

  await stage.model.push(callStep('write_file', { path: 'next.txt', content: 'on\n' }));
  await desk.say('Go on');
  await desk.allowOnce('next.txt');
  await desk.idle();
  expect(existsSync(path.join(stage.folder, 'ended', 'next.txt'))).toBe(true);
});
