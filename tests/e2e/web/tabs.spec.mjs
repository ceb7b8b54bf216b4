// Two projects at once, and two clients at once.
import { readFileSync } from 'node:fs';
import path from 'node:path';

import { callStep, DeskPage, expect, gatedCommand, test } from './fixtures.mjs';

test('rs_15 two tabs work at once; switching loses nothing; a question elsewhere is a badge and is answered there', async ({
  desk,
  stage,
}) => {
  const left = stage.project('left');
  stage.project('right');
  await desk.openFolder(left);
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'left') }));
  await desk.say('Run on the left');
  await desk.allowOnce('left-began');
  await stage.untilThere('left-began');
  await desk.composer.fill('a draft on the left');

  // The right one streams while the command of the left one runs.
  await desk.openFolder(path.join(stage.folder, 'right'));
  await expect(desk.composer).toHaveValue('');
  await stage.model.push({
    ...callStep('write_file', { path: 'right.txt', content: 'right\n' }, ['I write ', 'it now.']),
    gate: { name: 'right', after: 1 },
  });
  await desk.say('Write on the right');
  await expect(desk.page.locator('.tail article.live')).toHaveText('I write');
  await expect(desk.tabs.nth(0).getByRole('img', { name: 'thinking' })).toBeVisible();
  await expect(desk.tabs.nth(1).getByRole('img', { name: 'writing' })).toBeVisible();

  await desk.tabs.nth(0).click();
  await expect(desk.composer).toHaveValue('a draft on the left');
  await expect(desk.card('left-began')).toContainText('running');
  await expect(desk.approval).toHaveCount(0);
  await stage.model.release('right');
  await expect(desk.tabs.nth(1).getByRole('img', { name: 'needs you' })).toBeVisible();
  const row = desk.projects.getByRole('region', { name: 'right' });
  await expect(row.getByRole('img', { name: 'needs you' }).first()).toBeVisible();
  await expect(desk.status).toContainText('Running');

  await desk.tabs.nth(1).click();
  await expect(desk.log.getByText('I write it now.')).toBeVisible();
  await desk.allowOnce('right.txt');
  await desk.idle();
  await expect(desk.tabs.nth(1).getByRole('img')).toHaveCount(0);
  expect(readFileSync(path.join(stage.folder, 'right', 'right.txt'), 'utf8')).toBe('right\n');

  stage.write('left-gate');
  await desk.tabs.nth(0).click();
  await expect(desk.card('left-began')).toContainText('done');
  await desk.idle();
  await expect(desk.composer).toHaveValue('a draft on the left');
});

test('c16 a question is there after a reload and on a second client, and is answered once; the late answer says that it is no longer pending', async ({
  desk,
  stage,
  browser,
}) => {
  const folder = stage.project('shared');
  await desk.openFolder(folder);
  await stage.model.push(callStep('write_file', { path: 'once.txt', content: 'once\n' }));
  await desk.say('Write it once');
  await expect(desk.approval).toContainText('once.txt');
  await desk.page.reload();
  await expect(desk.approval).toContainText('once.txt');
  await expect(desk.tabs.first().getByRole('img', { name: 'needs you' })).toBeVisible();

  // Another client of the same program: another browser, let in by the token of the token file.
  const context = await browser.newContext();
  await context.addInitScript(
    (token) => window.sessionStorage.setItem('holdfast.token', token),
    stage.token,
  );
  const second = new DeskPage(await context.newPage(), stage, { outage() {} });
  // What it is told is held back, so that its answer comes late.
  let letGo;
  const held = new Promise((resolve) => {
    letGo = resolve;
  });
  await second.page.route('**/app/approve', async (route) => {
    await held;
    await route.continue();
  });
  await second.page.goto(`http://127.0.0.1:${stage.port}/`);
  await expect(second.approval).toContainText('once.txt');
  const sent = second.page.waitForRequest('**/app/approve');
  await second.approval.getByRole('button', { name: 'Deny', exact: false }).last().click();
  await sent;
  await desk.allowOnce('once.txt');
  await desk.idle();
  letGo();
  await expect(second.approval).toContainText('No longer pending');
  await second.approval.getByRole('button', { name: 'Close' }).click();
  await expect(second.approval).toHaveCount(0);
  await second.idle();
  await expect(second.card('once.txt')).toContainText('done');
  expect(readFileSync(path.join(folder, 'once.txt'), 'utf8')).toBe('once\n');
  await context.close();
});

test('a session that is moved to the trash is gone from tabs and projects, and its project stays', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('thrown'));
  await desk.say('Hello');
  await desk.idle();
  const section = desk.projects.getByRole('region', { name: 'thrown' });
  await section.getByRole('listitem').hover();
  await section.getByRole('listitem').getByRole('button').last().click();
  await desk.page.getByRole('menuitem', { name: 'Move to trash' }).click();
  await desk.page.getByRole('dialog').getByRole('button', { name: 'Move to trash' }).click();
  await expect(desk.tabs).toHaveCount(0);
  await expect(section).toContainText('No sessions yet');
  expect((await stage.call('get_layout')).tabs).toEqual([]);
});
