// Accessibility as axe judges it, in both themes: nothing serious, nothing critical.
import AxeBuilder from '@axe-core/playwright';

import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

/** What axe finds serious or critical on the page as it is, in both themes. */
async function judge(desk, what) {
  for (const theme of ['light', 'dark']) {
    await desk.page.evaluate((name) => {
      document.documentElement.dataset.theme = name;
    }, theme);
    const { violations, passes } = await new AxeBuilder({ page: desk.page }).analyze();
    expect(passes.length, 'axe looked').toBeGreaterThan(10);
    const found = violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
    expect(found, `${what}, ${theme}`).toEqual([]);
  }
}

test('first run and settings', async ({ desk }) => {
  await expect(desk.page.getByRole('button', { name: 'Try the demo' })).toBeVisible();
  await judge(desk, 'first run');
  await desk.page.keyboard.press('Control+,');
  const settings = desk.page.getByRole('dialog', { name: 'Settings' });
  for (const page of ['General', 'Agent', 'Providers', 'Hosts', 'About']) {
    await settings.getByRole('button', { name: page }).click();
    await expect(settings.getByRole('heading', { name: page })).toBeVisible();
    await judge(desk, `settings, ${page}`);
  }
  await settings.getByRole('button', { name: 'Providers' }).click();
  await settings.getByRole('button', { name: 'Add a provider' }).click();
  await judge(desk, 'a provider');
  await settings.getByRole('button', { name: 'Hosts' }).click();
  await settings.getByRole('button', { name: 'Add a host' }).click();
  await judge(desk, 'a host');
});

test('a session with cards and a question', async ({ desk, stage }) => {
  await desk.openFolder(stage.project('cards', { 'a.txt': 'one\ntwo\n' }));
  await judge(desk, 'an empty session');
  await stage.model.push(
    {
      ...callStep('read_file', { path: 'a.txt' }, ['I look. `code`\n\n```js\nlet a = 1;\n```\n']),
      reasoning: ['Where is it?'],
    },
    callStep('shell', { command: 'printf "\\033[31mred\\033[0m\\n"; exit 3' }),
    callStep('edit_file', { path: 'a.txt', edits: [{ old_text: 'two', new_text: 'three' }] }),
    { text: ['All | of\n--- | ---\nit | is done.'] },
  );
  await desk.say('Change it');
  await expect(desk.approval).toContainText('printf');
  await judge(desk, 'a question about a command');
  await desk.allow.click();
  await expect(desk.approval.locator('tr.add')).toContainText('three');
  await judge(desk, 'a question about an edit');
  await desk.allow.click();
  await desk.idle();
  for (const card of await desk.cards.all()) {
    const head = card.getByRole('button').first();
    if ((await head.getAttribute('aria-expanded')) === 'false') {
      await head.click();
    }
  }
  await judge(desk, 'cards');
  await desk.page.keyboard.press('Control+k');
  await judge(desk, 'the palette');
});

test('unknown outcomes, and a page that is not synced', async ({ desk, stage, problems }) => {
  await desk.openFolder(stage.project('unknown'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'axe') }));
  await desk.say('Run it');
  await desk.allowOnce('axe-began');
  await stage.untilThere('axe-began');
  problems.outage();
  await stage.kill();
  await expect(desk.unsynced).toBeVisible();
  stage.killSupervisors();
  stage.write('axe-gate');
  await stage.untilThere('axe-effect');
  await stage.start();
  await judge(desk, 'not synced');
  await desk.enter();
  await expect(desk.banner).toBeVisible();
  await judge(desk, 'the barrier');
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('Not inspected yet');
  await judge(desk, 'the panel before an inspection');
  await desk.panel.getByRole('button', { name: 'Inspect' }).click();
  await expect(desk.panel).toContainText('Nothing is proven');
  await judge(desk, 'the panel after an inspection');
  await desk.panel.getByRole('button', { name: 'It happened' }).click();
  await expect(desk.panel.getByText('Nothing blocks any more')).toBeVisible();
  await judge(desk, 'the panel with nothing left');
});
