// Everything by keys alone, in two languages and two themes.
import { existsSync } from 'node:fs';
import path from 'node:path';

import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

test('Enter sends, Shift+Enter breaks the line, ↑ brings back what was sent', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('lines'));
  await stage.model.push({ text: ['Understood.'] });
  await expect(desk.composer).toBeFocused();
  await desk.page.keyboard.type('one');
  await desk.page.keyboard.press('Shift+Enter');
  await desk.page.keyboard.type('two');
  await expect(desk.composer).toHaveValue('one\ntwo');
  await desk.page.keyboard.press('Enter');
  await expect(desk.composer).toHaveValue('');
  await expect(desk.log.getByText('Understood.')).toBeVisible();
  await desk.idle();
  await desk.page.keyboard.press('ArrowUp');
  await expect(desk.composer).toHaveValue('one\ntwo');
});

test('Y allows and N denies on a focused question', async ({ desk, stage }) => {
  const folder = stage.project('answers');
  await desk.openFolder(folder);
  await stage.model.push(
    callStep('write_file', { path: 'no.txt', content: 'n\n' }),
    callStep('write_file', { path: 'yes.txt', content: 'y\n' }),
    { text: ['One of two.'] },
  );
  await desk.say('Write both');
  await expect(desk.approval).toContainText('no.txt');
  // Alt+arrow goes from card to card, from the composer too.
  await desk.page.keyboard.press('Alt+ArrowUp');
  await expect(desk.approval).toBeFocused();
  await desk.page.keyboard.press('n');
  // The answered question may still stand above for a moment.
  const second = desk.approval.filter({ hasText: 'yes.txt' });
  await expect(second).toBeVisible();
  await second.focus();
  await desk.page.keyboard.press('y');
  await expect(desk.log.getByText('One of two.')).toBeVisible();
  await desk.idle();
  expect(existsSync(path.join(folder, 'no.txt'))).toBe(false);
  expect(existsSync(path.join(folder, 'yes.txt'))).toBe(true);
});

test('Esc stops what streams at once, and a running command at the second press', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('stops'));
  await stage.model.push({
    text: ['It begins ', 'and never ends.'],
    gate: { name: 'never', after: 1 },
  });
  await desk.say('Talk');
  await expect(desk.page.locator('.tail article.live')).toHaveText('It begins');
  await desk.page.keyboard.press('Escape');
  await expect(desk.log.getByText('Stopped by you')).toBeVisible();

  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'esc') }));
  await desk.say('Run it');
  await desk.allowOnce('esc-began');
  await stage.untilThere('esc-began');
  const card = desk.card('esc-began');
  await expect(desk.stateOf(card)).toHaveText('running');
  await desk.composer.focus();
  await desk.page.keyboard.press('Escape');
  await expect(desk.page.getByText('A command runs. Press Esc again to stop it.')).toBeVisible();
  await expect(desk.stateOf(card)).toHaveText('running');
  await desk.page.keyboard.press('Escape');
  await expect(desk.stateOf(card)).toHaveText('stopped');
});

test('the palette opens by Ctrl+K, finds by typing, and Escape gives the focus back', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('palette'));
  await expect(desk.composer).toBeFocused();
  await desk.page.keyboard.press('Control+k');
  const palette = desk.page.getByRole('dialog', { name: 'Commands' });
  await expect(palette.getByRole('combobox')).toBeFocused();
  await desk.page.keyboard.type('settings');
  await expect(palette.getByRole('option')).toHaveCount(1);
  await desk.page.keyboard.press('Escape');
  await expect(palette).toBeHidden();
  await expect(desk.composer).toBeFocused();
  await desk.act('new session');
  await expect(desk.tabs).toHaveCount(2);
  await desk.page.keyboard.press('Control+1');
  await expect(desk.tabs.nth(0)).toHaveAttribute('aria-selected', 'true');
});

test('language and theme change at once, and are the same after a reload', async ({ desk }) => {
  const { page } = desk;
  const html = page.locator('html');
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await expect(html).toHaveAttribute('data-theme', 'light');
  const light = await ground();
  await page.keyboard.press('Control+,');
  const settings = page.getByRole('dialog', { name: 'Settings' });
  await settings.getByLabel('Theme').selectOption('dark');
  await expect(html).toHaveAttribute('data-theme', 'dark');
  expect(await ground()).not.toBe(light);
  // A reload before the answer would take the request with it.
  const kept = page.waitForResponse(
    (reply) =>
      reply.url().endsWith('/app/save_settings') &&
      reply.request().postDataJSON().language === 'zh-CN',
  );
  await settings.getByLabel('Language').selectOption('zh-CN');
  await expect(html).toHaveAttribute('lang', 'zh-CN');
  await expect(page.getByRole('dialog', { name: '设置' })).toBeVisible();
  await expect(page.getByRole('button', { name: '试用演示' })).toBeAttached();
  await kept;
  await page.reload();
  await expect(html).toHaveAttribute('lang', 'zh-CN');
  await expect(html).toHaveAttribute('data-theme', 'dark');
});
