// Sessions on another machine, beside those of this one, over a way that drops and stalls.
import { readFileSync } from 'node:fs';

import { Far } from './far.mjs';
import { callStep, expect, gatedCommand, test as base } from './fixtures.mjs';

const test = base.extend({
  far: async ({ stage }, use) => {
    const far = await Far.start(stage);
    await use(far);
    await far.close();
  },
});

/** Adds the machine as a person does. */
async function addHost(desk, far) {
  const { page } = desk;
  await desk.act('Add a host');
  const settings = page.getByRole('dialog');
  await settings.getByLabel('How it is reached').selectOption('Directly');
  await settings.getByLabel('Name', { exact: true }).fill('buildbox');
  await settings.getByLabel('Address').fill(far.url);
  await settings.getByLabel('Token').fill('wrong');
  await settings.getByRole('button', { name: 'Test' }).click();
  await expect(settings).toContainText('does not accept the token');
  await settings.getByLabel('Token').fill(far.token);
  await settings.getByRole('button', { name: 'Test' }).click();
  await expect(settings).toContainText('It answers and lets you in.');
  await settings.getByRole('button', { name: 'Save' }).click();
  await expect(settings).toContainText('connected');
  await page.keyboard.press('Escape');
  await expect(settings).toBeHidden();
  await expect(desk.projects.getByRole('region', { name: 'buildbox' })).toContainText('connected');
}

/** A session in that folder over there, in a tab. */
async function openThere(desk, folder) {
  const before = await desk.tabs.count();
  const block = desk.projects.getByRole('region', { name: 'buildbox' });
  await block.hover();
  await block.getByRole('button', { name: 'New session on buildbox' }).click();
  const dialog = desk.page.getByRole('dialog');
  await dialog.getByRole('textbox').fill(folder);
  await dialog.getByRole('button', { name: 'Start session' }).click();
  await expect(dialog).toBeHidden();
  await expect(desk.tabs).toHaveCount(before + 1);
  await expect(desk.tabs.last()).toContainText('buildbox');
  await usable(desk);
}

/** The tab's session is confirmed, so that a message can be sent. */
async function usable(desk) {
  await desk.composer.fill('?');
  await expect(desk.send).toBeEnabled();
  await desk.composer.fill('');
  await desk.idle();
}

const away = (desk) => desk.page.getByText(/buildbox is not connected/);

test('c27 a remote session is used like a local one, and a dropped connection takes nothing from it', async ({
  desk,
  stage,
  far,
}) => {
  await desk.openFolder(stage.project('here'));
  await addHost(desk, far);
  await openThere(desk, stage.project('there'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'there') }));
  await desk.say('Run it');
  await desk.allowOnce('there-began');
  await stage.untilThere('there-began');
  const card = desk.card('there-began');
  await expect(desk.stateOf(card)).toHaveText('running');
  await desk.page.evaluate(() => {
    window.sameDocument = true;
  });

  await far.cut();
  await expect(away(desk)).toBeVisible();
  await expect(desk.status).toContainText('Last known: Running');
  await expect(desk.stateOf(card)).toHaveText('running');
  await desk.composer.fill('sent later');
  await expect(desk.send).toBeDisabled();
  await expect(desk.stop).toBeDisabled();
  await desk.composer.press('Enter');
  await expect(desk.composer).toHaveValue('sent later');

  // This machine's sessions are what they were.
  await desk.tabs.first().click();
  await expect(away(desk)).toHaveCount(0);
  await expect(desk.unsynced).toHaveCount(0);
  await stage.model.push({ text: ['Hello to you.'] }, { text: ['That is done.'] });
  await desk.say('Hello here');
  await expect(desk.log.getByText('Hello to you.')).toBeVisible();
  await desk.idle();
  await desk.tabs.last().click();
  await expect(away(desk)).toBeVisible();

  // It goes on over there; then it is seen, once, without a reload.
  stage.write('there-gate');
  await stage.untilThere('there-effect');
  await far.mend();
  await desk.page.getByRole('button', { name: 'Now', exact: true }).click();
  await expect(away(desk)).toHaveCount(0);
  await expect(desk.stateOf(card)).toHaveText('done');
  await expect(desk.log.getByText('That is done.')).toHaveCount(1);
  await desk.idle();
  await expect(desk.composer).toHaveValue('sent later');
  await expect(desk.send).toBeEnabled();
  expect(await desk.page.evaluate(() => window.sameDocument), 'no reload').toBe(true);
  expect(readFileSync(stage.beside('there-effect'), 'utf8'), 'it ran once').toBe('happened\n');
});

test('c07 the host of a remote session is killed in a command: last known, then the real result', async ({
  desk,
  stage,
  far,
}) => {
  await addHost(desk, far);
  await openThere(desk, stage.project('there'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'killed') }));
  await desk.say('Run it');
  await desk.allowOnce('killed-began');
  await stage.untilThere('killed-began');
  await far.kill();
  await expect(away(desk)).toBeVisible();
  stage.write('killed-gate');
  await stage.untilThere('killed-effect');
  await far.begin();
  await desk.page.getByRole('button', { name: 'Now', exact: true }).click();
  await expect(away(desk)).toHaveCount(0);
  await expect(desk.card('killed-began')).toContainText('recovered');
  await expect(desk.banner).toHaveCount(0);
  await stage.model.push({ text: ['Here again.'] });
  await desk.say('Are you there?');
  await expect(desk.log.getByText('Here again.')).toBeVisible();
  await desk.idle();
  expect(readFileSync(stage.beside('killed-effect'), 'utf8'), 'it ran once').toBe('happened\n');
});

test('rs_36 a connection on which nothing comes through is shown as unconfirmed, and recovers by itself', async ({
  desk,
  stage,
  far,
}) => {
  await desk.openFolder(stage.project('here'));
  await addHost(desk, far);
  await openThere(desk, stage.project('there'));
  const since = Date.now();
  far.hold();
  await expect(desk.status).toContainText('Last known', { timeout: 90_000 });
  console.log(`doubted after ${((Date.now() - since) / 1_000).toFixed(1)} s`);
  await desk.composer.fill('sent later');
  await expect(desk.send).toBeDisabled();
  // It holds up nothing of this machine.
  await desk.tabs.first().click();
  await stage.model.push({ text: ['Hello to you.'] });
  await desk.say('Hello here');
  await expect(desk.log.getByText('Hello to you.')).toBeVisible();
  await desk.tabs.last().click();
  far.release();
  await expect(desk.send).toBeEnabled({ timeout: 90_000 });
  await desk.idle();
});

test('rs_36 a host that is taken off the list takes its tabs with it, and its sessions stay', async ({
  desk,
  stage,
  far,
}) => {
  await addHost(desk, far);
  await openThere(desk, stage.project('there'));
  await desk.act('Settings');
  const settings = desk.page.getByRole('dialog').first();
  await settings.getByRole('button', { name: 'Hosts', exact: true }).click();
  await settings.getByRole('button', { name: 'Remove buildbox' }).click();
  await desk.page.getByRole('button', { name: 'Remove', exact: true }).click();
  await expect(settings).toContainText('A host is another machine');
  await desk.page.keyboard.press('Escape');
  await expect(desk.tabs).toHaveCount(0);
  const reply = await fetch(`${far.url}/sessions`, {
    headers: { authorization: `Bearer ${far.token}` },
  });
  expect((await reply.json()).items).toHaveLength(1);
});
