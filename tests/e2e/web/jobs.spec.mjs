// Commands in the background: counted, not shown as thinking, looked at and stopped, until they
// have really ended.
import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

test('c22 a command in the background is a count and no turn, and its card shows the real exit', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('server'));
  const command = `${gatedCommand(stage, 'server')}; exit 3`;
  await stage.model.push(callStep('shell', { command, background: true }), {
    text: ['It is up.'],
  });
  await desk.say('Start it');
  await desk.allowOnce('server-began');
  await expect(desk.log.getByText('It is up.')).toBeVisible();
  const card = desk.cards.last();
  await expect(card).toContainText('running in the background');
  await expect(card).toContainText('the model did not wait for its end');
  await expect(desk.status).toContainText('1 command still running');
  await expect(desk.stop).toHaveCount(0);
  await expect(desk.tabs.first().locator('.turns')).toHaveCount(0);

  await card.getByRole('button', { name: 'Show' }).click();
  const jobs = desk.page.getByRole('dialog', { name: 'Commands still running' });
  await expect(jobs).toContainText('in the background');
  await jobs.getByRole('button', { name: 'Output' }).click();
  await expect(jobs.getByLabel('Output', { exact: true }).last()).toContainText('at work');
  await desk.page.keyboard.press('Escape');

  stage.write('server-gate');
  await expect(card).toContainText('exit 3');
  await expect(card).toContainText('failed');
  await expect(desk.tabs.first().locator('svg.jobs')).toHaveCount(0);
});

test('c22 a running command is moved to the background by the keyboard, and stopped there', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('slow'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'slow') }), {
    text: ['I go on meanwhile.'],
  });
  await desk.say('Build it');
  await desk.allowOnce('slow-began');
  const card = desk.cards.last();
  const move = card.getByRole('button', { name: 'Move to background' });
  await move.focus();
  await desk.page.keyboard.press('Enter');
  await expect(desk.log.getByText('I go on meanwhile.')).toBeVisible();
  await expect(card).toContainText('You moved it to the background');
  await expect(move).toHaveCount(0);
  await expect(desk.status).toContainText('1 command still running');

  await card.getByRole('button', { name: 'Show' }).click();
  const jobs = desk.page.getByRole('dialog', { name: 'Commands still running' });
  await jobs.getByRole('button', { name: 'Stop' }).click();
  await expect(jobs).toContainText('No command is running.');
  await desk.page.keyboard.press('Escape');
  await expect(card).toContainText('stopped');
  await expect(desk.tabs.first().locator('svg.jobs')).toHaveCount(0);
});
