// The backend goes away and comes back, and the page never pretends.
import { readFileSync } from 'node:fs';
import path from 'node:path';

import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

test.use({ wired: true });

test('rs_25 while the backend is out of reach the facts stay, Send and Stop pause; then all is confirmed without a reload', async ({
  desk,
  stage,
  problems,
}) => {
  await desk.openFolder(stage.project('away'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'away') }), {
    text: ['That is done.'],
  });
  await desk.say('Run it');
  await desk.allowOnce('away-began');
  await stage.untilThere('away-began');
  const card = desk.card('away-began');
  await expect(desk.stateOf(card)).toHaveText('running');
  await desk.composer.fill('sent later');
  await desk.page.evaluate(() => {
    window.sameDocument = true;
  });

  problems.outage();
  await stage.wire.cut();
  await expect(desk.unsynced).toBeVisible();
  await expect(desk.status).toContainText('Last known: Running');
  await expect(desk.stateOf(card)).toHaveText('running');
  await expect(desk.composer).toHaveValue('sent later');
  await expect(desk.send).toBeDisabled();
  await expect(desk.stop).toBeDisabled();
  await expect(desk.tabs.locator('.unconfirmed').first()).toBeVisible();
  // Enter sends nothing, Escape stops nothing.
  await desk.composer.press('Enter');
  await desk.composer.press('Escape');
  await expect(desk.composer).toHaveValue('sent later');

  // Meanwhile it goes on without the page.
  stage.write('away-gate');
  await stage.untilThere('away-effect');
  await stage.wire.mend();
  await desk.page.getByRole('button', { name: 'Now', exact: true }).click();
  await expect(desk.unsynced).toHaveCount(0);
  await expect(desk.stateOf(card)).toHaveText('done');
  await expect(desk.log.getByText('That is done.')).toBeVisible();
  await desk.idle();
  await expect(desk.composer).toHaveValue('sent later');
  await expect(desk.send).toBeEnabled();
  expect(await desk.page.evaluate(() => window.sameDocument), 'no reload').toBe(true);
  expect(readFileSync(stage.beside('away-effect'), 'utf8'), 'it ran once').toBe('happened\n');
});

test('rs_16 a message whose answer was lost is not sent twice', async ({
  desk,
  stage,
  problems,
  page,
}) => {
  const folder = stage.project('lossy');
  await desk.openFolder(folder);
  await stage.model.push(callStep('write_file', { path: 'a.txt', content: 'a\n' }), {
    text: ['Written.'],
  });
  problems.outage();
  // The message arrives; its answer does not.
  await page.route(
    '**/app/submit',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  let sent = 0;
  page.on('request', (request) => {
    sent += Number(request.url().endsWith('/app/submit'));
  });
  await desk.composer.fill('Write it');
  await desk.composer.press('Enter');
  // The page looks its receipt up, and so the draft is not needed any more.
  await expect(desk.composer).toHaveValue('');
  await desk.allowOnce('a.txt');
  await desk.idle();
  expect(sent).toBe(1);
  await expect(desk.log.getByText('Write it', { exact: true })).toHaveCount(1);
  await expect(desk.log.getByText('Written.')).toHaveCount(1);
  expect(readFileSync(path.join(folder, 'a.txt'), 'utf8')).toBe('a\n');
});
